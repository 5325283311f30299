package sandboxtest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"proctor/sandbox"
)

// mark is in the environment of processes that a test looks for.
const mark = "lookfor4711"

const leaveSession = `import os, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
os.closerange(0, 256); time.sleep(300)`

// marked gives the processes that have text in their environment, as the sandbox's root sees them.
func (b *box) marked(text string) []string {
	b.t.Helper()
	got, err := b.Exec(context.Background(), sandbox.Exec{User: "root", Argv: []string{"sh", "-c",
		"grep -l '[" + text[:1] + "]" + text[1:] + "' /proc/[0-9]*/environ 2>/dev/null; true"}})
	if err != nil {
		b.t.Fatalf("look for %s: %v", text, err)
	}
	return strings.Fields(string(got.Stdout))
}

// waitFor waits until there are, or are no, processes with text in their environment.
func (b *box) waitFor(text string, there bool) {
	b.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for len(b.marked(text)) > 0 != there {
		if time.Now().After(deadline) {
			b.t.Fatalf("processes with %s: %v, want any: %v", text, b.marked(text), there)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// cutOff runs a call that has to be cut off after due, its tree dead by then, its output kept.
func (b *box) cutOff(call sandbox.Call, due time.Duration, output string) {
	b.t.Helper()
	began := time.Now()
	got := b.do(call)
	took := time.Since(began)
	if left := b.marked(mark); len(left) > 0 {
		b.t.Errorf("%.80q: processes left when the answer came: %v", call.Command, left)
	}
	if !got.TimedOut || got.Exit != nil || took < due*9/10 || took > due+8*time.Second {
		b.t.Errorf("%.80q: timed out %v, exit %s after %v, want a cut-off after %v", call.Command, got.TimedOut, exitText(got), took, due)
	}
	if !strings.Contains(string(got.Output), output) {
		b.t.Errorf("%.80q: output %.200q lacks %q", call.Command, got.Output, output)
	}
	b.alive()
}

var timeoutTests = []test{
	{name: "a timeout kills the whole tree, and only it (1)", run: func(b *box) {
		b.sh("env MARK=survivor8 sleep 300 >/dev/null 2>&1 &")
		b.waitFor("survivor8", true)
		sleep := "env MARK=" + mark + " sleep 300"
		for _, command := range []string{
			sleep, sleep + " | cat", "(" + sleep + " &); " + sleep, "nohup " + sleep + " >/dev/null 2>&1 & wait",
			"setsid " + sleep, "MARK=" + mark + " " + python(leaveSession) + "; " + sleep,
			"(trap '' TERM INT HUP; " + sleep + ")", sleep + " & kill -STOP $!; wait", "while :; do :; done", "kill -STOP $$",
		} {
			b.cutOff(sandbox.Call{Op: sandbox.OpShell, Command: command, Timeout: time.Second}, time.Second, "")
		}
		if len(b.marked("survivor8")) == 0 {
			b.t.Error("the server that an earlier call left in the background is dead")
		}
	}},
	{name: "deadlines are wall-clock; silence has its own (2)", run: func(b *box) {
		b.cutOff(sandbox.Call{Op: sandbox.OpShell, Command: "while :; do echo tick; sleep 0.1; done", Timeout: 2 * time.Second}, 2*time.Second, "tick\ntick\n")
		b.cutOff(sandbox.Call{Op: sandbox.OpShell, Command: "echo first; sleep 300", Timeout: time.Minute, Idle: time.Second}, time.Second, "first\n")
		got := b.do(sandbox.Call{Op: sandbox.OpShell, Command: "for i in 1 2 3 4; do printf .; sleep 0.6; done; (exit 4)", Idle: 1500 * time.Millisecond, Timeout: 20 * time.Second})
		if got.TimedOut || exitOf(got) != 4 || string(got.Output) != "...." {
			b.t.Errorf("a busy command: %q, exit %s", got.Output, exitText(got))
		}
	}},
	{name: "what was printed before a timeout is kept, and so is the shell (3)", run: func(b *box) {
		b.out("mkdir -p /tmp/kept && cd /tmp/kept && export KEPT='a b'")
		b.cutOff(sandbox.Call{Op: sandbox.OpShell, Command: "echo first; echo second >&2; printf unfinished; sleep 300", Timeout: time.Second}, time.Second, "first\nsecond\nunfinished")
		b.wants(`echo "$PWD|$KEPT"`, "/tmp/kept|a b\n", 0)
	}},
	{name: "an exec's timeout kills its tree", run: func(b *box) {
		began := time.Now()
		got, err := b.Exec(context.Background(), sandbox.Exec{Timeout: time.Second,
			Argv: []string{"sh", "-c", "echo begun; MARK=" + mark + " setsid sleep 300 & MARK=" + mark + " sleep 300"}})
		if err != nil || !got.TimedOut || got.Exit != nil || string(got.Stdout) != "begun\n" || time.Since(began) > 9*time.Second {
			b.t.Errorf("%+v %v after %v", got, err, time.Since(began))
		}
		if left := b.marked(mark); len(left) > 0 {
			b.t.Errorf("processes left: %v", left)
		}
	}},
	{name: "a caller that leaves does not end the call", run: func(b *box) {
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		call := sandbox.Call{ID: "left", Op: sandbox.OpShell, Command: "sleep 1.5; echo ended", Timeout: 20 * time.Second}
		if _, err := b.Do(ctx, call); err == nil || ctx.Err() == nil {
			b.t.Fatalf("the caller got %v", err)
		}
		if state, err := b.State(context.Background(), "left"); state != sandbox.CallRunning || err != nil {
			b.t.Errorf("state %q %v, want running", state, err)
		}
		if got := b.do(call); string(got.Output) != "ended\n" {
			b.t.Errorf("joined: %q", got.Output)
		}
	}},
	{name: "zombies are reaped", run: func(b *box) {
		b.out("for i in 1 2 3; do (sleep 0.2 &); done; sleep 1")
		if text := b.out("grep -h ') Z ' /proc/[0-9]*/stat 2>/dev/null; true"); text != "" {
			b.t.Errorf("zombies: %s", text)
		}
	}},
}

// repeats counts how often a command ran, by lines in a file.
func (b *box) repeats(id string, want int) {
	b.t.Helper()
	if got := strings.TrimSpace(b.out("wc -l < /tmp/ran-" + id)); got != fmt.Sprint(want) {
		b.t.Errorf("%s ran %s times, want %d", id, got, want)
	}
}
