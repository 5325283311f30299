package sandboxtest

import (
	"context"
	"errors"
	"strings"
	"time"

	"proctor/sandbox"
)

var shellTests = []test{
	{name: "state lives on between calls", run: func(b *box) {
		b.wants("mkdir -p '/tmp/a b' && cd '/tmp/a b'; plain='x  y'; export OUT='z*'; f() { echo f$1; return 9; }; alias hi='echo hi'; set -f", "", 0)
		b.wants(`echo "$PWD|$plain|$OUT"; sh -c 'echo "${plain-unset}|$OUT"'; hi; echo /*; f 1`, "/tmp/a b|x  y|z*\nunset|z*\nhi\n/*\nf1\n", 9)
	}},
	{name: "no way to end the shell loses the sandbox", run: func(b *box) {
		for command, exit := range map[string]int{
			"exit 3": 3, "set -euo pipefail; false | cat; echo never": 1, "kill -9 $$": 137, "exec false": 1, "exec true": 0,
			"if then )) fi": 2, "kill -STOP 1; kill -9 1; kill -TERM 1": -2, "exec 0<&- 1>&- 2>&-": -2, "trap '' TERM; kill $$": -2,
		} {
			b.out("mkdir -p /tmp/kept && cd /tmp/kept && export KEPT='a b'")
			got := b.sh(command)
			if exit != -2 && exitOf(got) != exit {
				b.t.Errorf("%q: exit %s, want %d; output %q", command, exitText(got), exit, got.Output)
			}
			b.wants(`echo "$PWD|$KEPT"`, "/tmp/kept|a b\n", 0)
			b.alive()
		}
	}},
	{name: "heredocs, many lines and long commands work (4)", run: func(b *box) {
		b.wants("cat <<'EOF'\nIt's \"q\" $HOME `x` \\\nEOF\nx=7\ncat <<-EOF\n\tx is $x\n\tEOF\n", "It's \"q\" $HOME `x` \\\nx is 7\n", 0)
		b.wants("x="+strings.Repeat("a", 1<<20)+"; echo ${#x}", "1048576\n", 0)
		b.wants("wc -c <<'EOF'\n"+strings.Repeat("a line of 16 b.\n", 1<<16)+"EOF\n", "1048576\n", 0)
		b.sh("echo 'open")
		b.alive()
	}},
	{name: "a NUL byte is refused with words (4)", run: func(b *box) {
		got := b.sh("echo a\x00b")
		if exitOf(got) != 1 || len(got.Output) == 0 {
			b.t.Errorf("exit %s output %q, want 1 and words", exitText(got), got.Output)
		}
		b.alive()
	}},
	{name: "stdin is empty and nothing waits for a person", run: func(b *box) {
		b.wants("cat; read x; wc -c", "0\n", 0)
		b.wants("seq 3000 | ${PAGER:-less} | tail -n 1; echo $DEBIAN_FRONTEND,$GIT_TERMINAL_PROMPT; ${EDITOR:-vi} /tmp/x", "3000\nnoninteractive,0\n", 0)
	}},
	{name: "exit codes arrive as they are; could-not-start differs (8)", run: func(b *box) {
		for _, code := range []int{0, 1, 2, 126, 127, 128, 255} {
			b.wants("(exit "+itoa(code)+")", "", code)
		}
		b.wants("sh -c 'kill -15 $$'; exit $?", "Terminated\n", 143)
		if _, exit := b.exec("sh", "-c", "exit 127"); exit != 127 {
			b.t.Errorf("a program's own 127 came as %d", exit)
		}
		for _, argv := range [][]string{{"/no/such"}, {"no-such-program"}, {"/etc"}, {}} {
			if _, err := b.Exec(context.Background(), sandbox.Exec{Argv: argv}); !errors.Is(err, sandbox.ErrStart) {
				b.t.Errorf("exec %q: %v, want ErrStart", argv, err)
			}
		}
	}},
	{name: "background commands have handles; control calls do not queue (22)", run: func(b *box) {
		got := b.do(sandbox.Call{Op: sandbox.OpSpawn, Command: "read line; echo got:$line; exit 7"})
		if got.Handle == "" || got.Exit != nil {
			b.t.Fatalf("spawn: %+v", got)
		}
		busy := make(chan struct{})
		go func() {
			defer close(busy)
			b.do(sandbox.Call{ID: "busy", Op: sandbox.OpShell, Command: "sleep 3", Timeout: 20 * time.Second})
		}()
		began := time.Now()
		b.do(sandbox.Call{Op: sandbox.OpInput, Handle: got.Handle, Text: "words\n"})
		text, exit := "", -1
		for exit < 0 && time.Since(began) < 10*time.Second {
			poll := b.do(sandbox.Call{Op: sandbox.OpOutput, Handle: got.Handle, Wait: time.Second})
			text, exit = text+string(poll.Output), exitOf(poll)
		}
		if text != "got:words\n" || exit != 7 || time.Since(began) > 2500*time.Millisecond {
			b.t.Errorf("polled %q, exit %d after %v", text, exit, time.Since(began))
		}
		<-busy
		if refused := b.do(sandbox.Call{Op: sandbox.OpOutput, Handle: "none"}); exitOf(refused) != 1 || len(refused.Output) == 0 {
			b.t.Errorf("an unknown handle: %+v", refused)
		}
	}},
	{name: "kill ends the whole tree of a handle", run: func(b *box) {
		got := b.do(sandbox.Call{Op: sandbox.OpSpawn, Command: "env MARK=" + mark + " sh -c 'sleep 300 & setsid sleep 300'"})
		b.waitFor(mark, true)
		b.do(sandbox.Call{Op: sandbox.OpKill, Handle: got.Handle})
		b.waitFor(mark, false)
	}},
	{name: "a job in the background of the shell returns at once", run: func(b *box) {
		began := time.Now()
		b.sh("(sleep 2; echo later) & echo now")
		if took := time.Since(began); took > 1500*time.Millisecond {
			b.t.Errorf("took %v", took)
		}
		time.Sleep(2500 * time.Millisecond)
		if got := b.do(sandbox.Call{Op: sandbox.OpOutput, Handle: "shell", Wait: time.Second}); string(got.Output) != "later\n" {
			b.t.Errorf("later output %q", got.Output)
		}
	}},
}
