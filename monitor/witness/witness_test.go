package witness_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"proctor/monitor"
	"proctor/monitor/witness"
)

var (
	_ monitor.Witness = witness.None{}
	_ monitor.Witness = (*witness.Watcher)(nil)
)

// open opens a watcher on this very machine's root, by a child's pid.
func open(t *testing.T, paths ...string) *witness.Watcher {
	t.Helper()
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = child.Process.Kill() // it may have ended
		_ = child.Wait()
	})
	w, err := witness.Open(child.Process.Pid, paths)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the witness cannot be tested: %v", err)
		}
		t.Skipf("NOT TESTED, the witness needs CAP_SYS_ADMIN: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// TestSeesDisguisedOpens opens a protected file in ways that hide its name.
func TestSeesDisguisedOpens(t *testing.T) {
	dir := t.TempDir()
	eval := filepath.Join(dir, ".eval")
	secret := filepath.Join(eval, "deep", "x.json")
	if err := os.MkdirAll(filepath.Dir(secret), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{secret, filepath.Join(dir, "other")} {
		if err := os.WriteFile(p, []byte("s"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	w := open(t, eval, filepath.Join(dir, "absent"))
	if w.Kind() != witness.Full {
		t.Errorf("kind %s", w.Kind())
	}
	cases := []struct {
		name, script string
		sees         bool
	}{
		{"cat", "cat .eval/deep/x.json", true},
		{"glob", "cat .e*/d*/x*", true},
		{"link", "ln -sfn .eval l; cat l/deep/x.json", true},
		{"concatenated", "a=.ev; b=al; head -1 $a$b/deep/x.json", true},
		{"another file", "cat other", false},
		{"nothing", "true", false},
	}
	for _, tc := range cases {
		end := w.Begin(1)
		cmd := exec.Command("sh", "-c", tc.script)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", tc.name, err, out)
		}
		if got := end(); slices.Contains(got, secret) != tc.sees || !tc.sees && len(got) > 0 {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
	end := w.Begin(2)
	if _, err := os.ReadFile(secret); err != nil {
		t.Fatal(err)
	}
	if got := end(); len(got) > 0 {
		t.Errorf("our own read counts: %v", got)
	}
}

func TestCloseTwice(t *testing.T) {
	w := open(t, t.TempDir())
	for range 2 {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	if got := w.Begin(1)(); len(got) > 0 {
		t.Errorf("a closed watcher sees %v", got)
	}
}

func TestNone(t *testing.T) {
	if w := (witness.None{}); w.Kind() != witness.Off || w.Begin(1)() != nil {
		t.Error("None sees something")
	}
}
