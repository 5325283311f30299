package oci

import (
	"os"
	"testing"
	"time"

	"proctor/sandbox"
	"proctor/sandbox/sandboxtest"
)

// runscExceptions are the points of the contract that gVisor's runsc of Debian 12 (release 20221219) cannot hold, by
// the suite's names, each with the reason. The suite reads them. Its statx refuses what stat and ls of today ask for,
// so the suite looks at files by find.
var runscExceptions = map[string]string{
	"the first process is closed to root inside":                                         "prctl(PR_SET_DUMPABLE) does not close /proc/1; what is there is the agent, no secret of the host's",
	"files of the kernel and of the first process are closed":                            "the same; and /proc/sys is its own kernel's, not this machine's",
	"signals from inside neither end nor stop the agent":                                 "kill -9 and kill -STOP reach the first process: the sandbox dies, by the agent's doing",
	"no way to end the shell loses the sandbox":                                          "the same",
	"no strong capability, no new privileges, seccomp (13)":                              "its /proc/self/status has no line on seccomp, and it lets root make user namespaces and device nodes of its own kernel, which lead nowhere",
	"system calls that lead out are refused, one by one":                                 "the same: its kernel answers, and this machine's sees none of them",
	"a memory hog is told apart, and the rest goes on (10)":                              "to this machine the whole sandbox is one process: short of memory, it dies as a whole, by the agent's doing",
	"limits show in cgroup files, and nproc agrees (11)":                                 "it has no cgroup files inside; the limits hold, and nproc agrees",
	"programs that ask /proc for memory are told the limit, and there is no swap (11)":   "its /proc is its own kernel's",
	"who listens in the agent's place hears nothing":                                     "its gofer listens for whoever asks inside: the host is sure of the sandbox, not of the program in it",
	"a terminal is the user's, a shell on it has job control, and a kill ends all on it": "its terminals answer EAGAIN where Linux waits",
	"a terminal outlives a detachment, screen and all":                                   "the same",
	"a pager on a terminal: keys, screen, resize":                                        "the same",
	"a python console on a terminal":                                                     "the same",
}

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
