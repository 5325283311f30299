package main

import (
	"encoding/json"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"proctor/internal/rollouts"
)

// The Python client's own tests: a real HTTP server that hangs up, is busy, answers with a proxy's page.
func TestPythonClient(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
	inToyWorld(t, needPython(t), toyWorld(t), "../../clients/python/tests/test_adapters.py")
}

// The client names the fields of a create request, a group and a fork as the server takes them.
func TestPythonClientFields(t *testing.T) {
	const program = `import json, sys; sys.path.insert(0, "../../clients/python")
from proctor_client import _types as t
print(json.dumps({k.__name__: sorted(k.__annotations__) for k in (t.Policy, t.CreateOptions, t.GroupOptions, t.ForkOptions)}))`
	out, err := exec.Command(needPython(t), "-c", program).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var client map[string][]string
	if err := json.Unmarshal(out, &client); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		body any
		own  []string // arguments of their own
	}{
		"Policy":        {rollouts.Policy{}, nil},
		"CreateOptions": {rollouts.CreateRequest{}, []string{"task_id"}},
		"GroupOptions":  {rollouts.GroupRequest{}, []string{"task_id", "n"}},
		"ForkOptions":   {rollouts.ForkRequest{}, []string{"n"}},
	} {
		want := slices.DeleteFunc(jsonFields(reflect.TypeOf(c.body)), func(f string) bool { return slices.Contains(c.own, f) })
		slices.Sort(want)
		if got := client[name]; !slices.Equal(got, want) {
			t.Errorf("%s of clients/python/proctor_client/_types.py has %v, the server takes %v", name, got, want)
		}
	}
}

// jsonFields gives the names of a struct's fields in JSON, those of embedded ones too.
func jsonFields(of reflect.Type) []string {
	var names []string
	for i := range of.NumField() {
		f := of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			names = append(names, jsonFields(f.Type)...)
		case name != "-" && name != "":
			names = append(names, name)
		}
	}
	return names
}
