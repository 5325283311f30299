package oci

import (
	"os"
	"testing"
	"time"

	"proctor/sandbox"
	"proctor/sandbox/sandboxtest"
)

// runscExceptions are the points of the contract that gVisor's runsc of Debian 12 (release 20221219) cannot hold, by
// the suite's names, each with the reason. The suite reads them.
var runscExceptions = map[string]string{}

// TestContractRunsc runs the suite under gVisor. On its ptrace platform each system call costs some fifty times what it
// does on Linux: behind a switch, since it takes minutes.
func TestContractRunsc(t *testing.T) {
	if os.Getenv("PROCTOR_RUNSC") == "" {
		t.Skip("NOT TESTED, takes minutes: make runsc")
	}
	l := lab(t, "runsc")
	l.Except = runscExceptions
	sandboxtest.Run(t, l)
}

// TestRunscRuns makes sure that a sandbox under gVisor comes up, makes calls, is found again and goes.
func TestRunscRuns(t *testing.T) {
	if _, err := findRuntime("runsc"); err != nil {
		t.Skipf("NOT TESTED, optional: %v", err)
	}
	needRuntime(t, "runsc")
	owner := newOwner(t)
	s := makeBox(t, newEngine(t, Options{Owner: owner, Runtime: "runsc"}), sandbox.Spec{})
	if got := shell(t, s, "id -u; ls /sys/class/net 2>/dev/null; cat /proc/version | cut -d' ' -f1-3"); got != "0\nLinux version 4.4.0\n" {
		t.Errorf("%q", got)
	}
	cut, err := s.Do(t.Context(), sandbox.Call{ID: "cut", Op: sandbox.OpShell, Command: "sleep 300", Timeout: time.Second})
	if err != nil || !cut.TimedOut {
		t.Errorf("%+v %v", cut, err)
	}
	shell(t, s, "cd /tmp; x=kept")
	if err := s.Detach(); err != nil {
		t.Fatal(err)
	}
	again := reattach(t, s)
	if got := shell(t, again, `echo "$PWD $x"`); got != "/tmp kept\n" {
		t.Errorf("found again: %q", got)
	}
	if _, err := again.InitPID(t.Context()); err == nil {
		t.Error("the host has a process to look at")
	}
	if err := again.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if left := leftovers(t, owner); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
