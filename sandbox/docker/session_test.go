package docker

import (
	"context"
	"errors"
	"testing"

	"proctor/sandbox"
	"proctor/sandbox/box"
	"proctor/sandbox/box/link"
)

// fakeConn is a connection with function fields; nil ones give nothing.
type fakeConn struct {
	link.Conn
	do     func(sandbox.Call) (sandbox.Result, error)
	exec   func(sandbox.Exec) (sandbox.ExecResult, error)
	closed bool
}

func (f *fakeConn) Do(_ context.Context, c sandbox.Call) (sandbox.Result, error) { return f.do(c) }
func (f *fakeConn) Exec(_ context.Context, e sandbox.Exec) (sandbox.ExecResult, error) {
	return f.exec(e)
}
func (f *fakeConn) Close() error { f.closed = true; return nil }

// lost is what package box gives over a connection that broke.
func lost() error { return &sandbox.DeadError{Reason: "box agent lost: EOF"} }

// afterBreak gives a session of a live container whose connection is first, and second once that broke.
func afterBreak(t *testing.T, first, second *fakeConn) *session {
	t.Helper()
	cli := needDocker(t)
	engine := newEngine(t, newOwner(t, cli))
	s := makeBox(t, engine, sandbox.Spec{})
	if err := s.Detach(); err != nil {
		t.Fatal(err)
	}
	conns := []*fakeConn{first, second}
	engine.dial = func(context.Context, string, int, box.Init) (link.Conn, error) {
		conn := conns[0]
		conns = conns[1:]
		return conn, nil
	}
	return engine.newSession(s.id, s.folder)
}

func TestABrokenConnectionIsMadeAnew(t *testing.T) {
	var ids []string
	answer := func(result string, err error) func(sandbox.Call) (sandbox.Result, error) {
		return func(c sandbox.Call) (sandbox.Result, error) {
			ids = append(ids, c.ID)
			return sandbox.Result{Output: []byte(result)}, err
		}
	}
	first, second := &fakeConn{do: answer("", lost())}, &fakeConn{do: answer("joined", nil)}
	s := afterBreak(t, first, second)
	got, err := s.Do(context.Background(), sandbox.Call{ID: "c"})
	if err != nil || string(got.Output) != "joined" || len(ids) != 2 || ids[0] != ids[1] || !first.closed {
		t.Errorf("%q %v, IDs %v, first closed %v", got.Output, err, ids, first.closed)
	}
}

func TestAnExecWithoutAnIDIsNotRunTwice(t *testing.T) {
	ran := 0
	broken := func(sandbox.Exec) (sandbox.ExecResult, error) { ran++; return sandbox.ExecResult{}, lost() }
	s := afterBreak(t, &fakeConn{exec: broken}, &fakeConn{exec: broken})
	if _, err := s.Exec(context.Background(), sandbox.Exec{Argv: []string{"x"}}); !errors.Is(err, sandbox.ErrUnavailable) || ran != 1 {
		t.Errorf("%v, ran %d times", err, ran)
	}
}
