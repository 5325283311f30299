package link

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"proctor/sandbox"
	"proctor/sandbox/box"
)

// fakeConn is a connection with function fields; nil ones give nothing.
type fakeConn struct {
	Conn
	do     func(sandbox.Call) (sandbox.Result, error)
	exec   func(sandbox.Exec) (sandbox.ExecResult, error)
	closed bool
}

func (f *fakeConn) Do(_ context.Context, c sandbox.Call) (sandbox.Result, error) { return f.do(c) }
func (f *fakeConn) Exec(_ context.Context, e sandbox.Exec) (sandbox.ExecResult, error) {
	return f.exec(e)
}
func (f *fakeConn) Close() error { f.closed = true; return nil }

// fakeMachine is a sandbox whose fate the test decides.
type fakeMachine struct {
	fate   error
	killed *sandbox.DeadError
}

func (m *fakeMachine) Fate(context.Context) error       { return m.fate }
func (m *fakeMachine) PID(context.Context) (int, error) { return 42, nil }
func (m *fakeMachine) Kill(_ context.Context, dead *sandbox.DeadError) error {
	m.killed = dead
	return nil
}

// dials gives connections, or errors, one after another; the last over and over.
func dials(t *testing.T, answers ...any) Dial {
	return func(_ context.Context, socket string, pid int, _ box.Init) (Conn, error) {
		if socket != "/s" || pid != 42 {
			t.Errorf("dialled %s, process %d", socket, pid)
		}
		answer := answers[0]
		if len(answers) > 1 {
			answers = answers[1:]
		}
		if err, failed := answer.(error); failed {
			return nil, err
		}
		return answer.(Conn), nil
	}
}

func newLink(t *testing.T, m *fakeMachine, answers ...any) *Link {
	return New(Options{Engine: "fake", ID: "x", Socket: "/s", Machine: m, Dial: dials(t, answers...)})
}

// lost is what package box gives over a connection that broke.
func lost() error { return &sandbox.DeadError{Reason: "box agent lost: EOF"} }

func answers(result string, err error, ids *[]string) func(sandbox.Call) (sandbox.Result, error) {
	return func(c sandbox.Call) (sandbox.Result, error) {
		*ids = append(*ids, c.ID)
		return sandbox.Result{Output: []byte(result)}, err
	}
}

func TestABrokenConnectionIsMadeAnew(t *testing.T) {
	var ids []string
	first, second := &fakeConn{do: answers("", lost(), &ids)}, &fakeConn{do: answers("joined", nil, &ids)}
	l := newLink(t, &fakeMachine{}, first, second)
	got, err := l.Do(t.Context(), sandbox.Call{ID: "c"})
	if err != nil || string(got.Output) != "joined" || len(ids) != 2 || ids[0] != ids[1] || !first.closed || second.closed {
		t.Errorf("%q %v, IDs %v, first closed %v", got.Output, err, ids, first.closed)
	}
	if err := l.End(); err != nil || !second.closed {
		t.Errorf("%v, closed %v", err, second.closed)
	}
	if _, err := l.Do(t.Context(), sandbox.Call{ID: "late"}); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("after the end: %v", err)
	}
}

func TestAnExecWithoutAnIDIsNotRunTwice(t *testing.T) {
	ran := 0
	conn := &fakeConn{exec: func(sandbox.Exec) (sandbox.ExecResult, error) { ran++; return sandbox.ExecResult{}, lost() }}
	_, err := newLink(t, &fakeMachine{}, conn).Exec(t.Context(), sandbox.Exec{Argv: []string{"x"}})
	if !errors.Is(err, sandbox.ErrUnavailable) || ran != 1 {
		t.Errorf("%v, ran %d times", err, ran)
	}
}

func TestToolErrorsAreNoBreaks(t *testing.T) {
	var ids []string
	refused := errors.New("refused")
	conn := &fakeConn{do: answers("", refused, &ids)}
	if _, err := newLink(t, &fakeMachine{}, conn).Do(t.Context(), sandbox.Call{}); !errors.Is(err, refused) || conn.closed || len(ids) != 1 {
		t.Errorf("%v, closed %v", err, conn.closed)
	}
}

func TestTheFirstWordOnADeathStands(t *testing.T) {
	var ids []string
	m := &fakeMachine{}
	l := newLink(t, m, &fakeConn{do: answers("", lost(), &ids)})
	m.fate = nil
	if _, err := l.connection(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.fate = &sandbox.DeadError{Class: sandbox.FailureModel, Reason: "first"}
	for _, want := range []string{"first", "first"} {
		_, err := l.Do(t.Context(), sandbox.Call{ID: "c"})
		var dead *sandbox.DeadError
		if !errors.As(err, &dead) || dead.Reason != want {
			t.Errorf("%v, want %s", err, want)
		}
		m.fate = &sandbox.DeadError{Class: sandbox.FailureInfra, Reason: "second"}
	}
	if err := l.Condemn(t.Context(), &sandbox.DeadError{Reason: "third"}); err.(*sandbox.DeadError).Reason != "first" {
		t.Errorf("%v", err)
	}
}

// A sandbox that runs but whose agent cannot be reached is ended, by the agent's own doing.
func TestSevered(t *testing.T) {
	var ids []string
	twice := &fakeConn{do: answers("", lost(), &ids)}
	for name, l := range map[string]func(m *fakeMachine) (*Link, error){
		"broken twice": func(m *fakeMachine) (*Link, error) {
			l := newLink(t, m, twice)
			_, err := l.Do(t.Context(), sandbox.Call{ID: "c"})
			return l, err
		},
		"an impostor": func(m *fakeMachine) (*Link, error) {
			l := newLink(t, m, box.ErrImpostor)
			return l, l.Resume(t.Context(), 20*time.Millisecond)
		},
		"no socket any more": func(m *fakeMachine) (*Link, error) {
			l := newLink(t, m, &net.OpError{Op: "dial", Err: syscall.ENOENT})
			return l, l.Resume(t.Context(), 20*time.Millisecond)
		},
	} {
		m := &fakeMachine{}
		_, err := l(m)
		var dead *sandbox.DeadError
		if !errors.As(err, &dead) || dead.Class != sandbox.FailureModel || m.killed == nil || !strings.Contains(m.killed.Reason, "cut off from inside") {
			t.Errorf("%s: %v, killed for %v", name, err, m.killed)
		}
	}
}

func TestNotReadyTellsWhy(t *testing.T) {
	m := &fakeMachine{}
	l := newLink(t, m, fs.ErrNotExist)
	if err := l.NotReady(t.Context(), sandbox.ErrNoShell); !errors.Is(err, sandbox.ErrNoShell) {
		t.Error(err)
	}
	if err := l.NotReady(t.Context(), errors.New("slow")); !errors.Is(err, sandbox.ErrUnavailable) {
		t.Error(err)
	}
	m.fate = &sandbox.DeadError{Class: sandbox.FailureModel, Reason: "memory"}
	if err := l.NotReady(t.Context(), errors.New("reset")); !errors.As(err, new(*sandbox.DeadError)) {
		t.Error(err)
	}
}

func TestInit(t *testing.T) {
	got := Init(sandbox.Spec{Env: map[string]string{"A": "spec"}, Workdir: "/w"}, sandbox.Image{Env: []string{"A=image", "B=b"}, User: "me"})
	if strings.Join(got.Env, " ") != "A=spec B=b" || got.User != "me" || got.Workdir != "/w" {
		t.Errorf("%+v", got)
	}
	if got := Init(sandbox.Spec{User: "other"}, sandbox.Image{User: "me"}); got.User != "other" {
		t.Errorf("%+v", got)
	}
}
