package sandboxtest

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"
	"testing"

	"proctor/sandbox"
)

// fresh gives a session of a fake with a file /work/a.
func fresh(t *testing.T, f *Fake) *FakeSession {
	t.Helper()
	s, err := f.Create(context.Background(), sandbox.Spec{Name: "r_1", Image: "any", Workdir: "/work"})
	if err != nil {
		t.Fatal(err)
	}
	fake := s.(*FakeSession)
	fake.SetFile("a", []byte("one\ntwo\n"))
	return fake
}

func TestFakeAnswersBuiltInCommands(t *testing.T) {
	s := fresh(t, &Fake{})
	for _, step := range []struct {
		call   sandbox.Call
		output string
		exit   int
	}{
		{sandbox.Call{Op: sandbox.OpShell, Command: "true"}, "", 0},
		{sandbox.Call{Op: sandbox.OpShell, Command: "exit 7"}, "", 7},
		{sandbox.Call{Op: sandbox.OpShell, Command: "cat a"}, "one\ntwo\n", 0},
		{sandbox.Call{Op: sandbox.OpShell, Command: "cd sub"}, "", 0},
		{sandbox.Call{Op: sandbox.OpShell, Command: "pwd"}, "/work/sub\n", 0},
		{sandbox.Call{Op: sandbox.OpShell, Command: "nope"}, "bash: nope: command not found\n", 127},
		{sandbox.Call{Op: sandbox.OpReplace, Path: "/work/a", Old: "two", New: "2"}, "replaced\n", 0},
		{sandbox.Call{Op: sandbox.OpInsert, Path: "/work/a", Line: 1, New: "mid"}, "inserted\n", 0},
		{sandbox.Call{Op: sandbox.OpView, Path: "/work/a"}, "one\nmid\n2\n", 0},
		{sandbox.Call{Op: sandbox.OpUndo, Path: "/work/a"}, "undone\n", 0},
		{sandbox.Call{Op: sandbox.OpView, Path: "/work/a"}, "one\n2\n", 0},
		{sandbox.Call{Op: sandbox.OpReplace, Path: "/work/a", Old: "absent"}, "/work/a: the text occurs 0 times, not once\n", 1},
		{sandbox.Call{Op: sandbox.OpKill, Handle: "none"}, "no such handle: none\n", 1},
	} {
		got, err := s.Do(context.Background(), step.call)
		if err != nil || string(got.Output) != step.output || got.Exit == nil || *got.Exit != step.exit {
			t.Errorf("%+v: %q %v %v, want %q %d", step.call, got.Output, got.Exit, err, step.output, step.exit)
		}
	}
}

func TestFakeRunsAnIDOnce(t *testing.T) {
	var ran atomic.Int32
	gate := make(chan struct{})
	f := &Fake{OnDo: func(context.Context, *FakeSession, sandbox.Call) (sandbox.Result, error) {
		ran.Add(1)
		<-gate
		return sandbox.Result{Output: []byte("once")}, nil
	}}
	s := fresh(t, f)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			got, err := s.Do(context.Background(), sandbox.Call{ID: "same", Op: sandbox.OpShell})
			if err != nil || string(got.Output) != "once" {
				t.Errorf("%q %v", got.Output, err)
			}
		})
	}
	close(gate)
	group.Wait()
	if ran.Load() != 1 || len(s.Calls()) != 1 {
		t.Errorf("ran %d times, recorded %d, want once", ran.Load(), len(s.Calls()))
	}
	if state, _ := s.State(context.Background(), "same"); state != sandbox.CallDone {
		t.Errorf("state %q", state)
	}
}

func TestFakeDiesAndGoes(t *testing.T) {
	f := &Fake{}
	s := fresh(t, f)
	if again, err := f.Attach(context.Background(), s.ID()); err != nil || again != sandbox.Session(s) {
		t.Fatalf("attach: %v", err)
	}
	s.Die(sandbox.FailureModel, "its own doing")
	var dead *sandbox.DeadError
	if _, err := s.Do(context.Background(), sandbox.Call{Op: sandbox.OpShell}); !errors.As(err, &dead) || dead.Class != sandbox.FailureModel {
		t.Errorf("a call to a dead sandbox: %v", err)
	}
	if err := s.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if _, err := f.Attach(context.Background(), s.ID()); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("attach after close: %v", err)
	}
}

func TestFakePullAndPush(t *testing.T) {
	s, other := fresh(t, &Fake{}), fresh(t, &Fake{})
	stream, err := s.Pull(context.Background(), "/work")
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Push(context.Background(), "/copy", stream); err != nil {
		t.Fatal(err)
	}
	if got := string(other.File("/copy/work/a")); got != "one\ntwo\n" {
		t.Errorf("copied %q", got)
	}
	if _, err := s.Pull(context.Background(), "/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("pull of nothing: %v", err)
	}
	stream, _ = s.Pull(context.Background(), "/work/a")
	if head, err := tar.NewReader(stream).Next(); err != nil || head.Name != "a" {
		t.Errorf("a file's name in its stream: %v %v", head, err)
	}
	_, _ = io.Copy(io.Discard, stream)
}

func TestFakeRefuses(t *testing.T) {
	if _, err := (&Fake{}).Create(context.Background(), sandbox.Spec{Image: "no-such-image"}); !errors.Is(err, sandbox.ErrNoImage) {
		t.Errorf("an image that does not exist: %v", err)
	}
	if _, err := (&Fake{Down: sandbox.ErrUnavailable}).Create(context.Background(), sandbox.Spec{Image: "x"}); !errors.Is(err, sandbox.ErrUnavailable) {
		t.Errorf("a stopped engine: %v", err)
	}
}
