package box_test

import (
	"os/exec"
	"strings"
	"testing"

	"proctor/sandbox"
	"proctor/sandbox/box"
)

// onMachine makes sure that a program is on this machine, whose files a test box shares. The base image has neither editor nor
// debugger, so that these tests are of what a developer's machine has.
func onMachine(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("NOT TESTED, %s is not on this machine: %v", program, err)
	}
}

func TestTTYVim(t *testing.T) {
	onMachine(t, "vim")
	b := newBox(t, box.Init{Workdir: "/tmp", Env: []string{"PATH=/usr/bin:/bin", "HOME=/tmp"}})
	b.put("/tmp/text", strings.Repeat("a line\n", 40)+"the last\n")
	h := b.spawnTTY("vim -u NONE text", 12, 40)
	b.sees(h, "a line\na line\n")
	b.types(h, "Gofound in \u00e9t\u00e9", "esc")
	if out := b.sees(h, "found in \u00e9t\u00e9"); !strings.Contains(out, "the last\nfound in") || strings.Count(out, "\n") > 13 {
		t.Errorf("%q", out)
	}
	b.types(h, "gg", "down", "down")
	b.types(h, "dd", "ctrl-v")
	b.types(h, "", "esc")
	b.types(h, ":1,35d", "enter")
	b.sees(h, "35 fewer lines")
	if res := b.do(sandbox.Call{Op: sandbox.OpInput, Handle: h, Rows: 20, Cols: 60}); res.Exit != nil {
		t.Errorf("resize: %s", res.Output)
	}
	b.sees(h, "screen of 20 rows and 60 cols")
	b.types(h, ":wq", "enter")
	b.ends(h)
	if got := b.get("/tmp/text"); got != strings.Repeat("a line\n", 4)+"the last\nfound in \u00e9t\u00e9\n" {
		t.Errorf("%q", got)
	}
}

func TestTTYGdb(t *testing.T) {
	onMachine(t, "gdb")
	b := newBox(t, box.Init{Workdir: "/tmp", Env: []string{"PATH=/usr/bin:/bin", "HOME=/tmp"}})
	h := b.spawnTTY("gdb -q -nx /bin/true", 0, 0)
	b.sees(h, "(gdb)")
	b.types(h, "print 6 * 7", "enter")
	b.sees(h, "$1 = 42")
	b.types(h, "", "up", "backspace", "9", "enter") // 6 * 9
	b.sees(h, "$2 = 54")
	b.types(h, "quit", "enter")
	b.ends(h)
}

// ends polls until a command has ended.
func (b *testBox) ends(handle string) {
	b.t.Helper()
	for range 20 {
		if res := b.do(sandbox.Call{Op: sandbox.OpOutput, Handle: handle, Wait: 1e9}); res.Exit != nil {
			return
		}
	}
	b.t.Fatalf("%s does not end", handle)
}
