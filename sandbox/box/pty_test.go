package box_test

import (
	"strings"
	"testing"
	"time"

	"proctor/sandbox"
	"proctor/sandbox/box"
)

// spawnTTY starts a command on a terminal and gives its handle.
func (b *testBox) spawnTTY(command string, rows, cols int) string {
	b.t.Helper()
	res := b.do(sandbox.Call{Op: sandbox.OpSpawn, Command: command, PTY: true, Rows: rows, Cols: cols})
	if res.Handle == "" {
		b.t.Fatalf("%q: %+v %s", command, res, res.Output)
	}
	return res.Handle
}

// sees polls a terminal until it shows text.
func (b *testBox) sees(handle, text string) string {
	b.t.Helper()
	var got sandbox.Result
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); {
		got = b.do(sandbox.Call{Op: sandbox.OpOutput, Handle: handle, Wait: time.Second})
		if strings.Contains(string(got.Output), text) {
			return string(got.Output)
		}
	}
	b.t.Fatalf("%s never shows %q, but %q", handle, text, got.Output)
	return ""
}

// types presses keys after text.
func (b *testBox) types(handle, text string, keys ...string) {
	b.t.Helper()
	if res := b.do(sandbox.Call{Op: sandbox.OpInput, Handle: handle, Text: text, Keys: keys}); res.Exit != nil {
		b.t.Fatalf("input %q %q: %s", text, keys, res.Output)
	}
}

func TestTTY(t *testing.T) {
	b := newBox(t, box.Init{Workdir: "/tmp", Env: []string{"PATH=/usr/bin:/bin"}})
	h := b.spawnTTY(`tty; stty size; echo "TERM=$TERM"; read -r line; echo "got <$line>"; exit 4`, 0, 0)
	out := b.sees(h, "TERM=xterm")
	if !strings.Contains(out, "/dev/pts/") || !strings.Contains(out, "24 80") || !strings.Contains(out, "[screen of 24 rows and 80 cols, cursor at row 4, col 1]") {
		t.Errorf("%q", out)
	}
	b.types(h, "wrod", "backspace", "backspace", "backspace", "o", "r", "d", "enter")
	b.sees(h, "got <word>")
	end := b.do(sandbox.Call{Op: sandbox.OpOutput, Handle: h, Wait: 5 * time.Second})
	if end.Exit == nil || *end.Exit != 4 || end.Handle != "" || strings.Contains(string(end.Output), "[screen") {
		t.Errorf("%+v %s", end, end.Output)
	}
}

func TestTTYSignalsAndSize(t *testing.T) {
	b := newBox(t, box.Init{Workdir: "/tmp", Env: []string{"PATH=/usr/bin:/bin"}})
	h := b.spawnTTY(`trap 'echo INT' INT; trap 'echo "size $(stty size)"' WINCH; echo ready; while :; do sleep 0.05; done`, 10, 40)
	b.sees(h, "ready")
	b.types(h, "", "ctrl-c")
	b.sees(h, "INT")
	if res := b.do(sandbox.Call{Op: sandbox.OpInput, Handle: h, Rows: 12, Cols: 50}); res.Exit != nil {
		t.Errorf("resize: %s", res.Output)
	}
	if out := b.sees(h, "size 12 50"); !strings.Contains(out, "[screen of 12 rows and 50 cols") {
		t.Errorf("%q", out)
	}
	b.do(sandbox.Call{Op: sandbox.OpKill, Handle: h})
	if res := b.do(sandbox.Call{Op: sandbox.OpOutput, Handle: h}); res.Exit == nil {
		t.Errorf("after the kill: %+v", res)
	}
}

func TestTTYRefuses(t *testing.T) {
	b := newBox(t, box.Init{Workdir: "/tmp", Env: []string{"PATH=/usr/bin:/bin"}})
	h := b.spawnTTY("cat", 0, 0)
	pipe := b.do(sandbox.Call{Op: sandbox.OpSpawn, Command: "cat; echo over"}).Handle
	for name, call := range map[string]sandbox.Call{
		"an unknown key":     {Op: sandbox.OpInput, Handle: h, Keys: []string{"hyper-x"}},
		"a huge screen":      {Op: sandbox.OpInput, Handle: h, Rows: 10000},
		"a negative size":    {Op: sandbox.OpInput, Handle: h, Cols: -1},
		"a huge one at once": {Op: sandbox.OpSpawn, Command: "true", PTY: true, Cols: 10000},
		"keys without one":   {Op: sandbox.OpInput, Handle: pipe, Keys: []string{"up"}},
		"size without one":   {Op: sandbox.OpInput, Handle: pipe, Rows: 3},
	} {
		if res := b.do(call); res.Exit == nil || *res.Exit != 1 || len(res.Output) == 0 {
			t.Errorf("%s: %+v %s", name, res, res.Output)
		}
	}
	for range 7 {
		b.spawnTTY("cat", 0, 0)
	}
	if res := b.do(sandbox.Call{Op: sandbox.OpSpawn, Command: "cat", PTY: true}); res.Exit == nil {
		t.Error("a ninth terminal")
	}
	b.types(pipe, "text\n", "ctrl-d") // the end of its input
	b.sees(pipe, "over")
}

// A program that draws as hard as it can neither holds up the others nor grows the agent.
func TestTTYHostile(t *testing.T) {
	b := newBox(t, box.Init{Workdir: "/tmp", Env: []string{"PATH=/usr/bin:/bin"}})
	for _, command := range []string{
		`yes "$(printf '\033[6n\033[c\033[?1049h\033[999999b\033[65535X\033]8;;%065536d\033\\x\033[?1049l' 1)"`,
		`printf '\033[?1049h'; exec yes`, `stty raw -echo; exec cat /dev/urandom`,
	} {
		h := b.spawnTTY(command, sandbox.MaxRows, sandbox.MaxCols)
		for range 3 {
			began := time.Now()
			res := b.do(sandbox.Call{Op: sandbox.OpOutput, Handle: h, Wait: 300 * time.Millisecond})
			if took := time.Since(began); took > 5*time.Second || len(res.Output) > sandbox.OutputLimit+8<<10 {
				t.Errorf("%.60q: %d bytes after %s", command, len(res.Output), took)
			}
		}
		b.talk(step{"echo well", "well\n", nil, 0})
		b.do(sandbox.Call{Op: sandbox.OpKill, Handle: h})
	}
}

// What a hostile root puts in the way of the terminal is not opened.
func TestTTYReplaced(t *testing.T) {
	b := newBox(t, box.Init{Workdir: "/tmp", Env: []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin"}})
	b.out("mount -t tmpfs none /dev/pts && echo secret > /dev/pts/ptmx")
	if res := b.do(sandbox.Call{Op: sandbox.OpSpawn, Command: "echo hi", PTY: true}); res.Handle != "" {
		out := b.do(sandbox.Call{Op: sandbox.OpOutput, Handle: res.Handle, Wait: time.Second})
		if strings.Contains(string(out.Output), "secret") {
			t.Errorf("%+v %s", out, out.Output)
		}
	}
	b.talk(step{"echo well", "well\n", nil, 0})
}
