package box_test

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"proctor/sandbox"
	"proctor/sandbox/box"
)

const (
	sleep        = "env PROBE=MARK sleep 300"
	leaveSession = `perl -e 'use POSIX; exit if fork; setsid(); sleep 300' MARK`
	doubleFork   = `perl -e 'use POSIX; exit if fork; setsid(); exit if fork; POSIX::close($_) for 0..255; sleep 300' MARK`
	hop          = `perl -e 'use POSIX; for (1..1000) { exit if fork; setsid(); select(undef, undef, undef, 0.02) }' MARK`
	untag        = `sh -c 'echo 0x33 > /proc/self/coredump_filter; setsid env PROBE=MARK sleep 300 & sleep 0.1'`
	bomb         = "bomb() { if [ $1 -gt 0 ]; then bomb $(($1 - 1)) & bomb $(($1 - 1)) & fi; while :; do sleep 0.05 & done; }; bomb 5; wait"
)

const theMark = "probe8c1f6a"

// marked gives the files of processes that carry the mark.
func (b *testBox) marked() []string {
	b.t.Helper()
	res := b.sh("grep -l '[p]" + theMark[1:] + "' /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null")
	return strings.Fields(string(res.Output))
}

func TestTimeouts(t *testing.T) {
	if _, err := exec.LookPath("perl"); err != nil {
		t.Fatal("perl is needed for daemons that escape")
	}
	cases := map[string]struct {
		command, output string
		limit, idle     time.Duration
	}{
		"plain":         {command: sleep},
		"pipeline":      {command: sleep + " | env PROBE=MARK cat"},
		"subshell":      {command: "(" + sleep + " &); " + sleep},
		"nohup":         {command: "nohup " + sleep + " >/dev/null 2>&1 & wait"},
		"setsid":        {command: leaveSession + "; " + sleep},
		"double fork":   {command: doubleFork + "; " + sleep},
		"changed tag":   {command: untag + "; " + sleep},
		"deaf":          {command: "(trap '' TERM INT HUP; " + sleep + ")"},
		"stopped":       {command: sleep + " & kill -STOP $!; wait"},
		"hopping":       {command: hop + "; " + sleep},
		"loop":          {command: "while :; do :; done"},
		"stopped shell": {command: "kill -STOP $$"},
		"deaf shell":    {command: "trap '' TERM INT; while :; do sleep 0.1; done"},
		"next command":  {command: sleep + "; " + sleep + "; echo ne''ver"},
		"partial":       {command: "echo first; echo second >&2; printf unfinished; sleep 300", output: "first\nsecond\nunfinished\n["},
		"wall clock":    {command: "while :; do echo tick; sleep 0.1; done", output: "tick\ntick\n"},
		"idle":          {command: "echo first; " + sleep, output: "first\n[", limit: time.Minute, idle: 700 * time.Millisecond},
		"long":          {command: ": '" + strings.Repeat("x", 5000) + "'; " + sleep},
		"fork bomb":     {command: "(" + bomb + ")"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if name == "fork bomb" && testing.Short() {
				t.Skip("SKIPPED under -short: takes the processors of all other tests")
			}
			b := newBox(t, box.Init{})
			b.talk(keep, step{"sleep 300 & (setsid sleep 300 &) ; plain=1", "", nil, 0})
			limit := c.limit
			if limit == 0 {
				limit = 700 * time.Millisecond
			}
			began := time.Now()
			res := b.do(sandbox.Call{Op: sandbox.OpShell, Command: strings.ReplaceAll(c.command, "MARK", theMark), Timeout: limit, Idle: c.idle})
			took := time.Since(began)
			if left := b.marked(); len(left) > 0 {
				t.Errorf("processes left when the answer came: %v", left)
			}
			out := string(res.Output)
			if !res.TimedOut || res.Exit != nil || !strings.Contains(out, c.output) || strings.Contains(out, "never") {
				t.Errorf("timed out %t, exit %d, output %.300q; want a time-out with %q", res.TimedOut, code(res), out, c.output)
			}
			lines := strings.Split(strings.TrimSpace(out), "\n")
			word := "limit of"
			if c.idle > 0 {
				word = "idle limit"
			}
			if last := lines[len(lines)-1]; !strings.Contains(last, word) {
				t.Errorf("the last line is %q, not about the %s", last, word)
			}
			slack := 8 * time.Second
			if name == "fork bomb" { // without a pids limit or a CPU share of our own: 2 s, 26 s were seen where 15 wait for two cores
				slack = time.Minute
			}
			if took < 600*time.Millisecond || took > slack {
				t.Errorf("cut off after %s", took)
			}
			b.talk(kept, alive, match("cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -o '[s]leep 300' | wc -l", `^ *2\n$`, 0))
			if left := b.marked(); len(left) > 0 {
				t.Errorf("processes left later: %v", left)
			}
		})
	}
}

// A server that an earlier call left goes on, and so do the processes that it starts during the call.
func TestTimeoutSparesEarlierServers(t *testing.T) {
	b := newBox(t, box.Init{})
	b.talk(step{"(while :; do sleep 0.05 & (setsid sleep 0.3 &) ; wait; echo x >> /tmp/alive; done) >/dev/null 2>&1 &", "", nil, 0})
	res := b.do(sandbox.Call{Op: sandbox.OpShell, Command: "sleep 300", Timeout: 500 * time.Millisecond})
	if !res.TimedOut {
		t.Fatalf("%+v", res)
	}
	b.talk(match("a=$(wc -l </tmp/alive); for i in $(seq 40); do sleep 0.5; b=$(wc -l </tmp/alive); [ $b -gt $a ] && echo go''es on && break; done", "goes on\n", 0))
}

func TestIdleSparesBusyCommand(t *testing.T) {
	b := newBox(t, box.Init{})
	res := b.do(sandbox.Call{Op: sandbox.OpShell, Command: "for i in 1 2 3 4 5 6; do printf .; sleep 0.3; done; (exit 4)",
		Timeout: 20 * time.Second, Idle: time.Second})
	if code(res) != 4 || string(res.Output) != "......" {
		t.Errorf("exit %d, output %q", code(res), res.Output)
	}
}

// A caller that leaves does not end its call; one who comes again gets its result.
func TestCallerLeaves(t *testing.T) {
	b := newBox(t, box.Init{})
	call := sandbox.Call{ID: "left", Op: sandbox.OpShell, Command: "echo run >> /tmp/runs; sleep 0.5; wc -l < /tmp/runs; (exit 6)"}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if _, err := b.Do(ctx, call); err == nil {
		t.Fatal("a result after 100 ms")
	}
	if s, err := b.State(context.Background(), "left"); s != sandbox.CallRunning || err != nil {
		t.Errorf("state %q, %v", s, err)
	}
	for range 2 {
		res, err := b.Do(context.Background(), call)
		if err != nil || code(res) != 6 || strings.TrimSpace(string(res.Output)) != "1" {
			t.Errorf("exit %d, output %q, %v", code(res), res.Output, err)
		}
	}
}

// A kill that has to stop everything for several rounds lets those go on that are not to be killed, and leaves
// those stopped that stopped themselves.
func TestKillLetsOthersGoOn(t *testing.T) {
	b := newBox(t, box.Init{Workdir: "/tmp", Env: []string{"PATH=/usr/bin:/bin"}})
	b.out("sh -c 'kill -STOP $$' >/dev/null 2>&1 & echo $! > /tmp/stopped; sleep 0.1")
	for round := range 5 {
		res := b.do(sandbox.Call{Op: sandbox.OpSpawn, Command: "for i in $(seq 150); do (while :; do sleep 0.01; done) & done; wait"})
		time.Sleep(200 * time.Millisecond)
		b.do(sandbox.Call{Op: sandbox.OpKill, Handle: res.Handle})
		began := time.Now()
		b.talk(step{"echo well", "well\n", nil, 0})
		if took := time.Since(began); took > 5*time.Second {
			t.Fatalf("round %d: the shell was left stopped, for %s", round, took)
		}
	}
	b.talk(step{"cut -d' ' -f3 /proc/$(cat /tmp/stopped)/stat; kill -CONT $(cat /tmp/stopped)", "T\n", nil, 0})
}
