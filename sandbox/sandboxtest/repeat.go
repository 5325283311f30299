package sandboxtest

import (
	"context"
	"sync"
	"time"

	"proctor/sandbox"
)

// once is a call that leaves a line each time that it runs.
func once(id, then string) sandbox.Call {
	return sandbox.Call{ID: id, Op: sandbox.OpShell, Command: "echo x >> /tmp/ran-" + id + "; " + then, Timeout: 30 * time.Second}
}

// reattached gives the sandbox as a new engine of the same owner finds it.
func (b *box) reattached() *box {
	b.t.Helper()
	engine := b.lab.Engine(b.t, b.lab.Owner)
	b.t.Cleanup(func() { _ = engine.Close() })
	session, err := engine.Attach(context.Background(), b.ID())
	if err != nil {
		b.t.Fatalf("attach: %v", err)
	}
	b.t.Cleanup(func() { _ = session.Detach() })
	return &box{Session: session, t: b.t, lab: b.lab, ids: b.ids + 1000}
}

var repeatTests = []test{
	{name: "an ID runs once, from eight callers at once (9)", run: func(b *box) {
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				got, err := b.Do(context.Background(), once("eight", "sleep 0.3; echo done; exit 5"))
				if err != nil || string(got.Output) != "done\n" || exitOf(got) != 5 {
					b.t.Errorf("%q %s %v", got.Output, exitText(got), err)
				}
			})
		}
		group.Wait()
		b.repeats("eight", 1)
	}},
	{name: "an ID runs once for an exec as well", run: func(b *box) {
		for range 2 {
			got, err := b.Exec(context.Background(), sandbox.Exec{ID: "one", Argv: []string{"sh", "-c", "echo x >> /tmp/ran-one; echo done"}})
			if err != nil || string(got.Stdout) != "done\n" {
				b.t.Errorf("%q %v", got.Stdout, err)
			}
		}
		b.repeats("one", 1)
	}},
	{name: "a new engine finds finished results and running calls (9, 14)", run: func(b *box) {
		b.do(once("finished", "echo old; exit 4"))
		left, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		_, _ = b.Do(left, once("running", "sleep 1.5; echo late")) // its caller dies with the server
		cancel()
		if err := b.Detach(); err != nil {
			b.t.Fatal(err)
		}
		again := b.reattached()
		if state, err := again.State(context.Background(), "running"); state != sandbox.CallRunning || err != nil {
			b.t.Errorf("state of the running call %q %v", state, err)
		}
		if state, err := again.State(context.Background(), "never"); state != sandbox.CallUnknown || err != nil {
			b.t.Errorf("state of a call never made %q %v", state, err)
		}
		if got := again.do(once("finished", "echo old; exit 4")); string(got.Output) != "old\n" || exitOf(got) != 4 {
			b.t.Errorf("the finished call: %q %s", got.Output, exitText(got))
		}
		if got := again.do(once("running", "sleep 1.5; echo late")); string(got.Output) != "late\n" {
			b.t.Errorf("the running call: %q", got.Output)
		}
		again.repeats("finished", 1)
		again.repeats("running", 1)
	}},
	{name: "the shell outlives a detachment", run: func(b *box) {
		b.out("cd /tmp; plain=kept")
		if err := b.Detach(); err != nil {
			b.t.Fatal(err)
		}
		b.reattached().wants(`echo "$PWD $plain"`, "/tmp kept\n", 0)
	}},
}
