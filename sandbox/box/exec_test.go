package box_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"proctor/sandbox"
	"proctor/sandbox/box"
)

func TestExec(t *testing.T) {
	b := newBox(t, box.Init{Workdir: "/tmp", Env: []string{"GIVEN=g", "PAGER=mine", "PATH=/usr/bin:/bin"}})
	b.talk(step{"cd /; export GIVEN=shell", "", nil, 0}) // the shell's state is not an Exec's
	sh := func(text string) []string { return []string{"sh", "-c", text} }
	for name, c := range map[string]struct {
		x           sandbox.Exec
		out, errOut string
		code        int
	}{
		"streams apart": {sandbox.Exec{Argv: sh("echo o; echo e >&2; exit 7")}, "o\n", "e\n", 7},
		"environment":   {sandbox.Exec{Argv: sh(`echo "$PWD $GIVEN $PAGER $EDITOR $MORE $HOME"`), Env: []string{"MORE=m"}}, "/tmp g mine true m /root\n", "", 0},
		"overridden":    {sandbox.Exec{Argv: sh(`echo $GIVEN`), Env: []string{"GIVEN=x"}}, "x\n", "", 0},
		"folder":        {sandbox.Exec{Argv: []string{"pwd"}, Dir: "/usr"}, "/usr\n", "", 0},
		"stdin":         {sandbox.Exec{Argv: []string{"tr", "a-z", "A-Z"}, Stdin: []byte("abc\x00\xff")}, "ABC\x00\xff", "", 0},
		"no stdin":      {sandbox.Exec{Argv: []string{"cat"}}, "", "", 0},
		"unread stdin":  {sandbox.Exec{Argv: []string{"true"}, Stdin: bytes.Repeat([]byte("x"), 1<<20)}, "", "", 0},
		"own 127":       {sandbox.Exec{Argv: sh("exit 127")}, "", "", 127},
		"signal":        {sandbox.Exec{Argv: sh("kill -9 $$")}, "", "", 137},
		"user":          {sandbox.Exec{Argv: sh("id -u; id -g"), User: "daemon"}, "1\n1\n", "", 0},
		"numbers":       {sandbox.Exec{Argv: sh("id -u; id -g"), User: "77:88"}, "77\n88\n", "", 0},
		"left behind":   {sandbox.Exec{Argv: sh("sleep 300 & echo up")}, "up\n", "", 0},
	} {
		began := time.Now()
		res, err := b.Exec(context.Background(), c.x)
		if err != nil || res.Exit == nil || *res.Exit != c.code || string(res.Stdout) != c.out || string(res.Stderr) != c.errOut {
			t.Errorf("%s: %+v %q %q %v", name, res, res.Stdout, res.Stderr, err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s took %s", name, took)
		}
	}
}

func TestExecNotStarted(t *testing.T) {
	b := newBox(t, box.Init{})
	b.out("echo x > /tmp/plain; mkdir /tmp/dir")
	for _, c := range []struct {
		x    sandbox.Exec
		word string
	}{
		{sandbox.Exec{Argv: []string{"no-such-program"}}, "not found"}, {sandbox.Exec{Argv: []string{"/no/such"}}, "no such file"},
		{sandbox.Exec{Argv: []string{"/tmp/plain"}}, "permission denied"}, {sandbox.Exec{Argv: []string{"/tmp/dir"}}, "permission denied"},
		{sandbox.Exec{}, "empty argv"}, {sandbox.Exec{Argv: []string{""}}, "empty"}, {sandbox.Exec{Argv: []string{"a\x00b"}}, ""},
		{sandbox.Exec{Argv: []string{"true"}, Dir: "/no/dir"}, "/no/dir"}, {sandbox.Exec{Argv: []string{"true"}, User: "nobody-such"}, "nobody-such"},
	} {
		res, err := b.Exec(context.Background(), c.x)
		if !errors.Is(err, sandbox.ErrStart) || !strings.Contains(err.Error(), c.word) {
			t.Errorf("%v: %+v %v; want ErrStart with %q", c.x, res, err, c.word)
		}
	}
}

func TestExecTimeoutAndLimit(t *testing.T) {
	b := newBox(t, box.Init{})
	res, err := b.Exec(context.Background(), sandbox.Exec{Timeout: 400 * time.Millisecond,
		Argv: []string{"sh", "-c", "echo part; " + strings.ReplaceAll(doubleFork, "MARK", theMark) + "; sleep 300"}})
	if err != nil || !res.TimedOut || res.Exit != nil || string(res.Stdout) != "part\n" {
		t.Errorf("%+v %v", res, err)
	}
	if left := b.marked(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	res, err = b.Exec(context.Background(), sandbox.Exec{Limit: 1000, Argv: []string{"head", "-c", "5000000", "/dev/zero"}})
	if err != nil || !res.Truncated || len(res.Stdout) != 1000 || *res.Exit != 0 {
		t.Errorf("truncated %t, %d bytes, %v", res.Truncated, len(res.Stdout), err)
	}
}

// One ID runs once, for eight callers at once and for a host that comes back.
func TestOnce(t *testing.T) {
	b := newBox(t, box.Init{})
	ctx := context.Background()
	var all sync.WaitGroup
	outs := make([]string, 8)
	for n := range outs {
		all.Go(func() {
			res, err := b.Exec(ctx, sandbox.Exec{ID: "once", Argv: []string{"sh", "-c", "echo x >> /tmp/runs; sleep 0.2; wc -l < /tmp/runs"}})
			outs[n] = fmt.Sprint(strings.TrimSpace(string(res.Stdout)), err)
		})
	}
	all.Wait()
	for _, out := range outs {
		if out != "1<nil>" {
			t.Errorf("%q", outs)
		}
	}
	if _, err := b.Do(ctx, sandbox.Call{ID: "once", Op: sandbox.OpShell, Command: "true"}); err == nil {
		t.Error("the ID of an Exec was taken for a Do")
	}
}

func TestForget(t *testing.T) {
	b := newBox(t, box.Init{})
	ctx := context.Background()
	call := sandbox.Call{ID: "f", Op: sandbox.OpShell, Command: "echo x >> /tmp/runs"}
	if s, err := b.State(ctx, "f"); s != sandbox.CallUnknown || err != nil {
		t.Errorf("%q %v", s, err)
	}
	if _, err := b.Do(ctx, call); err != nil {
		t.Fatal(err)
	}
	if err := b.Forget(ctx, "f", "unknown"); err != nil {
		t.Fatal(err)
	}
	if s, err := b.State(ctx, "f"); s != sandbox.CallDone || err != nil {
		t.Errorf("%q %v", s, err)
	}
	if _, err := b.Do(ctx, call); !errors.Is(err, box.ErrForgotten) {
		t.Errorf("%v", err)
	}
	b.talk(match("wc -l < /tmp/runs", `^ *1\n`, 0))
	for _, id := range []string{"", strings.Repeat("x", 129)} {
		if _, err := b.Do(ctx, sandbox.Call{ID: id, Op: sandbox.OpShell}); err == nil {
			t.Errorf("an ID of %d bytes was taken", len(id))
		}
	}
}

// A host that died finds running commands and finished results again.
func TestReconnect(t *testing.T) {
	b := newBox(t, box.Init{Workdir: "/tmp", Env: []string{"A=1"}})
	ctx := context.Background()
	done := sandbox.Call{ID: "done", Op: sandbox.OpShell, Command: "echo $A $RANDOM; export B=2"}
	first, err := b.Do(ctx, done)
	if err != nil {
		t.Fatal(err)
	}
	bg := b.do(sandbox.Call{Op: sandbox.OpSpawn, Command: "sleep 0.5; echo bg; exit 3"})
	running := sandbox.Call{ID: "running", Op: sandbox.OpShell, Command: "sleep 0.5; echo $A $B; exit 4"}
	gone := make(chan error, 1)
	go func() { _, err := b.Do(ctx, running); gone <- err }()
	time.Sleep(100 * time.Millisecond)
	b.Close()
	var dead *sandbox.DeadError
	if err := <-gone; !errors.As(err, &dead) {
		t.Errorf("the caller of a closed client: %v", err)
	}
	again, err := b.dial(box.Init{Workdir: "/usr", Env: []string{"A=9"}})
	if err != nil || !again.Resumed() {
		t.Fatal(err)
	}
	b.Client = again
	if s, err := b.State(ctx, "running"); s != sandbox.CallRunning || err != nil {
		t.Errorf("%q %v", s, err)
	}
	if res, err := b.Do(ctx, done); err != nil || string(res.Output) != string(first.Output) {
		t.Errorf("%q, first %q, %v", res.Output, first.Output, err)
	}
	if res, err := b.Do(ctx, running); err != nil || string(res.Output) != "1 2\n" || code(res) != 4 {
		t.Errorf("%q %v", res.Output, err)
	}
	if out, last := b.poll(bg.Handle); out != "bg\n" || code(last) != 3 {
		t.Errorf("%q exit %d", out, code(last))
	}
}
