package sandboxtest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"proctor/sandbox"
)

// WantDeath checks that a sandbox is dead by class, for a reason that holds words.
func WantDeath(t *testing.T, s sandbox.Session, class, words string) {
	t.Helper()
	var dead *sandbox.DeadError
	for deadline := time.Now().Add(15 * time.Second); dead == nil && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		errors.As(s.Alive(context.Background()), &dead)
	}
	if dead == nil || dead.Class != class || !strings.Contains(dead.Reason, words) {
		t.Fatalf("%v, want a death by %s: %s", dead, class, words)
	}
	var again *sandbox.DeadError
	if _, err := s.Do(context.Background(), sandbox.Call{ID: "late", Op: sandbox.OpShell, Command: "true"}); !errors.As(err, &again) || again.Class != class {
		t.Errorf("a call afterwards: %v", err)
	}
}

// severing takes the agent's socket away again and again.
const severing = `(python3 -c 'import os
while True:
    try: os.rename("/run/init/ctl", "/run/init/x")
    except OSError: pass' >/dev/null 2>&1 &) ; sleep 0.5`

// WantSevered has a sandbox take its agent's socket away, and makes calls as a server that lost its connection. The agent
// makes the socket again, so that a host now and then gets through: what it finds is served or ended as severed, and
// before long ended.
func WantSevered(t *testing.T, s sandbox.Session) {
	t.Helper()
	if got, err := s.Do(context.Background(), sandbox.Call{ID: "sever", Op: sandbox.OpShell, Command: severing}); err != nil || got.Exit == nil || *got.Exit != 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	var err error
	for range 20 {
		if err := s.Detach(); err != nil {
			t.Fatal(err)
		}
		if _, err = s.Do(context.Background(), sandbox.Call{ID: "x", Op: sandbox.OpShell, Command: "true"}); err != nil {
			break
		}
	}
	var dead *sandbox.DeadError
	if !errors.As(err, &dead) || dead.Class != sandbox.FailureModel || !strings.Contains(dead.Reason, "cut off from inside") {
		t.Fatalf("%v", err)
	}
}
