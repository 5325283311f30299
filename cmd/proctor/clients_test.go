package main

import (
	"os/exec"
	"testing"
)

// The Python client's own tests: a real HTTP server that hangs up, is busy, answers with a proxy's page.
func TestPythonClient(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatalf("the Python client cannot be tested: %v", err)
	}
	if out, err := exec.Command(python, "../../clients/python/tests/test_client.py").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// Every trainer's adapter, by its example, on a server whose sandboxes alone are none.
func TestPythonAdapters(t *testing.T) {
	inToyWorld(t, needPython(t), toyWorld(t), "../../clients/python/tests/test_adapters.py")
}
