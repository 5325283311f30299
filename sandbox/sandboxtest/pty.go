package sandboxtest

import (
	"context"
	"strings"
	"time"

	"proctor/sandbox"
)

// terminal starts a command on a terminal; the engine says whether it has any.
func (b *box) terminal(command string, rows, cols int) string {
	b.t.Helper()
	engine := b.lab.Engine(b.t, b.lab.Owner)
	defer engine.Close()
	if caps, err := engine.Capabilities(context.Background()); err != nil || !caps.PTY {
		b.t.Skipf("the engine has no terminals: %+v %v", caps, err)
	}
	got := b.do(sandbox.Call{Op: sandbox.OpSpawn, Command: command, PTY: true, Rows: rows, Cols: cols})
	if got.Handle == "" {
		b.t.Fatalf("%q on a terminal: %s", command, got.Output)
	}
	return got.Handle
}

// screen polls a terminal until it shows text, and gives all that it shows.
func (b *box) screen(handle, text string) string {
	b.t.Helper()
	var got sandbox.Result
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		got = b.do(sandbox.Call{Op: sandbox.OpOutput, Handle: handle, Wait: time.Second})
		if strings.Contains(string(got.Output), text) {
			return string(got.Output)
		}
	}
	b.t.Fatalf("%s never shows %q, but %q", handle, text, got.Output)
	return ""
}

// types writes text and presses keys.
func (b *box) types(handle, text string, keys ...string) {
	b.t.Helper()
	if got := b.do(sandbox.Call{Op: sandbox.OpInput, Handle: handle, Text: text, Keys: keys}); got.Exit != nil {
		b.t.Fatalf("%q %q: %s", text, keys, got.Output)
	}
}

var terminalTests = []test{
	{name: "a python console on a terminal", run: func(b *box) {
		h := b.terminal("python3 -q", 0, 0)
		b.screen(h, ">>>")
		b.types(h, "6 * 7\n")
		b.screen(h, "42")
		b.types(h, "print('for' 'ever')\nwhile True: pass", "enter")
		b.screen(h, "...")
		b.types(h, "", "enter")
		time.Sleep(200 * time.Millisecond) // a key pressed while the console turns to its program is lost, as anywhere
		b.types(h, "", "ctrl-c")
		b.screen(h, "KeyboardInterrupt")
		b.types(h, "exit(3)", "enter")
		for deadline := time.Now().Add(20 * time.Second); ; {
			got := b.do(sandbox.Call{Op: sandbox.OpOutput, Handle: h, Wait: time.Second})
			if got.Exit != nil && *got.Exit == 3 {
				return
			}
			if time.Now().After(deadline) {
				b.t.Fatalf("exit %s, %q", exitText(got), got.Output)
			}
		}
	}},
	{name: "a pager on a terminal: keys, screen, resize", run: func(b *box) {
		h := b.terminal("seq 1000 | less", 10, 40)
		b.screen(h, "\n9\n")
		b.types(h, "", "pagedown", "down", "up")
		b.screen(h, "\n18\n")
		b.types(h, "/555\n")
		b.screen(h, "555\n")
		if got := b.do(sandbox.Call{Op: sandbox.OpInput, Handle: h, Rows: 20, Cols: 60}); got.Exit != nil {
			b.t.Errorf("resize: %s", got.Output)
		}
		if text := b.screen(h, "screen of 20 rows and 60 cols"); !strings.Contains(b.screen(h, "573"), "555") {
			b.t.Errorf("after a resize: %q", text)
		}
		b.types(h, "q")
		b.alive()
	}},
	{name: "a terminal is the user's, a shell on it has job control, and a kill ends all on it", run: func(b *box) {
		other := b.another(sandbox.Spec{Image: b.lab.NonRoot})
		h := other.terminal("PS1='$ ' exec bash --norc -i", 0, 0)
		other.screen(h, "$")
		other.types(h, "stat -c %U $(tty); sleep 31415", "enter")
		other.screen(h, "www-data")
		other.types(h, "", "ctrl-z")
		other.screen(h, "Stopped")
		sleeping := func() string { out, _ := other.exec("sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"); return out }
		if !strings.Contains(sleeping(), "sleep 31415") {
			b.t.Error("the stopped job is gone")
		}
		other.do(sandbox.Call{Op: sandbox.OpKill, Handle: h})
		if left := sleeping(); strings.Contains(left, "sleep 31415") {
			b.t.Errorf("left after the kill: %s", left)
		}
		other.alive()
	}},
	{name: "a terminal outlives a detachment, screen and all", run: func(b *box) {
		h := b.terminal("echo drawn; read -r line; echo read:$line; sleep 60", 0, 0)
		b.screen(h, "drawn")
		if err := b.Detach(); err != nil {
			b.t.Fatal(err)
		}
		again := b.reattached()
		again.screen(h, "drawn")
		again.types(h, "word", "enter")
		again.screen(h, "read:word")
	}},
	{name: "a terminal that is flooded stays small, and the rest goes on", run: func(b *box) {
		h := b.terminal(`yes "$(printf '\033[?1049h\033[6n\033[999b\033[?1049l\033[999X x')"`, sandbox.MaxRows, sandbox.MaxCols)
		b.do(sandbox.Call{Op: sandbox.OpOutput, Handle: h, Wait: time.Second})
		b.alive()
		b.do(sandbox.Call{Op: sandbox.OpKill, Handle: h})
		b.alive()
	}},
}
