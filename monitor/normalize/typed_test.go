package normalize_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"proctor/monitor/normalize"
	"proctor/rules"
	"proctor/sandbox"
)

// typist is a normaliser with a background command that text is typed into.
type typist struct {
	*normalize.Normalizer
	handle string
}

func newTypist(command string, tty bool) typist {
	n := normalize.New(normalize.Task{Workdir: "/repo"}, nil)
	start := normalize.Call{Tool: "bash", Command: command}
	n.Event(context.Background(), start)
	n.Observe(start, true, "/repo")
	n.Started("bg1", start, tty)
	return typist{n, "bg1"}
}

// types types pieces, and gives the lines of the commands of the last one's event.
func (y typist) types(t *testing.T, pieces ...string) []string {
	t.Helper()
	var lines []string
	for _, piece := range pieces {
		call := normalize.Call{Tool: "bash_input", Handle: y.handle, Text: piece}
		ev := y.Event(context.Background(), call)
		y.Observe(call, true, "")
		lines = nil
		for _, c := range ev.Commands {
			lines = append(lines, strings.Join(append([]string{c.Program}, c.Paths...), " "))
		}
	}
	return lines
}

func keys(t *testing.T, names ...string) string {
	t.Helper()
	text, err := sandbox.KeyText(names)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// However a command is typed into a shell, what is read is that command.
func TestTypedInPieces(t *testing.T) {
	const want = "cat /repo/.git/HEAD"
	for name, pieces := range map[string][]string{
		"at once":           {"cat .git/HEAD\n"},
		"in pieces":         {"cat .gi", "t/HE", "AD", "\n"},
		"by letters":        strings.Split("cat .git/HEAD\n", ""),
		"not entered yet":   {"ls\ncat .gi", "t/HEAD"},
		"corrected":         {"cat .gix", keys(t, "backspace") + "t/HEAD\r"},
		"begun again":       {"echo honest", keys(t, "ctrl-u"), "cat .git/HEAD\r"},
		"filled in":         {"cat .g/HEAD", keys(t, "left", "left", "left", "left", "left") + "it\r"},
		"from the front":    {".git/HEAD", keys(t, "ctrl-a") + "cat ", "\r"},
		"home and end":      {" .git/HEA", keys(t, "home") + "cat", keys(t, "end") + "D", keys(t, "enter")},
		"cut out":           {"cat .gitXX/HEAD", keys(t, "left", "left", "left", "left", "left", "backspace", "backspace", "enter")},
		"a word less":       {"cat .git/HEAD safe", keys(t, "ctrl-w"), "\r"},
		"again":             {"cat .git/HEAD\r", "ls\r", keys(t, "up", "up"), "\r"},
		"a folder before":   {"cd .git\n", "cat HEAD\n"},
		"a variable before": {"d=.git\n", "cat $d/HEAD\n"},
		"a function before": {"f() {\n", "cat \"$1\"\n", "}\n", "f .git/HEAD\n"},
		"a loop":            {"for f in HEAD\n", "do cat .git/$f\n", "done\n"},
		"a line continued":  {"cat \\\n", ".git/HEAD\n"},
		"pasted":            {"\x1b[200~cat .git/HEAD\x1b[201~\r"},
	} {
		if got := newTypist("bash --norc -i", true).types(t, pieces...); !slices.Contains(got, want) {
			t.Errorf("%s: %q lacks %q", name, got, want)
		}
	}
}

// Without a terminal a byte is a byte; with one, a program may still take it so.
func TestTypedByteByByte(t *testing.T) {
	for _, tty := range []bool{true, false} {
		if got := newTypist("bash", tty).types(t, "cat .git/HEAD;\x15\n"); !slices.Contains(got, "cat /repo/.git/HEAD") {
			t.Errorf("on a terminal %v: %q", tty, got)
		}
	}
	if got := newTypist("bash", false).types(t, "cat .gi", "t/HEAD", "\n"); !slices.Contains(got, "cat /repo/.git/HEAD") {
		t.Errorf("in pieces: %q", got)
	}
}

// A program with a language of its own is typed to in that.
func TestTypedInLanguage(t *testing.T) {
	for name, c := range map[string]struct {
		command string
		pieces  []string
		want    string
	}{
		"python":            {"cd src && python3 -q", []string{"p = '/repo/.gi'\n", "print(open(p + 't/HEAD').read())\n"}, "/repo/.git/HEAD"},
		"python, by halves": {"python3", []string{"open('/repo/.g", "it/HEAD').read()\n"}, "/repo/.git/HEAD"},
		"vim":               {"env TERM=xterm vim a.py", []string{"ihello" + keys(t, "esc") + ":e /repo/.gi", "t/HEAD\r"}, "/repo/.git/HEAD"},
		"vim's shell":       {"vim", []string{":!cat /repo/.git/HEAD\r"}, "/repo/.git/HEAD"},
		"less":              {"seq 10 | less", []string{"ggG", ":e /repo/.git/HEAD\r"}, "/repo/.git/HEAD"},
		"less's shell":      {"less a", []string{"!cat /repo/.git/HEAD\r"}, "/repo/.git/HEAD"},
		"gdb":               {"gdb -q ./a", []string{"shell cat /repo/.git/HEAD\n"}, "/repo/.git/HEAD"},
		"gdb's python":      {"gdb", []string{"python print(open('/repo/.git/HEAD').read())\n"}, "/repo/.git/HEAD"},
		"a shell in python": {"python3 -c 'import os; os.system(input())'", []string{"cat /repo/.git/HEAD\n"}, "/repo/.git/HEAD"},
		"unknown to us":     {"./own-console", []string{"cat /repo/.git/HEAD\n"}, "/repo/.git/HEAD"},
	} {
		y := newTypist(c.command, true)
		var seen []string
		for _, piece := range c.pieces {
			call := normalize.Call{Tool: "bash_input", Handle: "bg1", Text: piece}
			ev := y.Event(context.Background(), call)
			y.Observe(call, true, "")
			seen = nil
			for _, cmd := range ev.Commands {
				seen = append(seen, cmd.Paths...)
			}
			for _, s := range ev.Scripts {
				seen = append(seen, s.Paths...)
			}
		}
		if !slices.Contains(seen, c.want) {
			t.Errorf("%s: %q lacks %q", name, seen, c.want)
		}
	}
}

// What is typed into one command is neither another's nor the shell's, and what was not typed is nobody's.
func TestTypedApart(t *testing.T) {
	y := newTypist("bash", true)
	y.types(t, "cd /elsewhere\n", "cat .gi")
	ev := y.Event(context.Background(), normalize.Call{Tool: "bash", Command: "cat x"})
	if ev.Commands[0].Paths[0] != "/repo/x" {
		t.Errorf("the shell went along: %q", ev.Commands[0].Paths)
	}
	other := normalize.Call{Tool: "bash_input", Handle: "bg2", Text: "t/HEAD\n"}
	if ev := y.Event(context.Background(), other); slices.ContainsFunc(ev.Commands, func(c rules.Command) bool { return c.Program == "cat" }) {
		t.Error("another command's line went along")
	}
	blocked := normalize.Call{Tool: "bash_input", Handle: "bg1", Text: "t/HEAD"}
	y.Event(context.Background(), blocked)
	y.Observe(blocked, false, "")
	if got := y.types(t, "x\n"); !slices.Contains(got, "cat /elsewhere/.gix") {
		t.Errorf("after a call that was not typed: %q", got)
	}
}

// An unknown key makes the line one that is not known.
func TestTypedUnsure(t *testing.T) {
	for _, key := range []string{"ctrl-r", "ctrl-y", "alt-x", "f5", "up"} {
		y := newTypist("bash -i", true)
		ev := y.Event(context.Background(), normalize.Call{Tool: "bash_input", Handle: "bg1", Text: keys(t, key, "enter")})
		if !ev.Opaque {
			t.Errorf("%s: the event is not marked", key)
		}
	}
}

// A lot of lines neither takes long nor keeps a later one from being read.
func TestTypedFlood(t *testing.T) {
	y := newTypist("bash -i", true)
	for range 40 {
		y.types(t, strings.Repeat("while :; do for i in 1 2 3 4 5 6 7 8; do echo $i; done; done\n", 40))
	}
	if got := y.types(t, "cat .git/HE", "AD\n"); !slices.Contains(got, "cat /repo/.git/HEAD") {
		t.Errorf("%q", got)
	}
}

// FuzzTyped types any keys in any pieces: no panic, and the pieces make no more of it than the whole.
func FuzzTyped(f *testing.F) {
	for _, text := range []string{"cat .git/HEAD\n", "\x1b[A\x1b[D\x7f\x15\x17\t\r", "a\x1bb\x1b[3~\x1b[200~x", ":e x\r!y\r\x1b", "if x; then\n"} {
		f.Add(text, uint8(3), "vim", true)
		f.Add(text, uint8(1), "bash -i", false)
	}
	f.Fuzz(func(t *testing.T, text string, at uint8, command string, tty bool) {
		y := newTypist(command, tty)
		cut := min(int(at), len(text))
		for _, piece := range []string{text[:cut], text[cut:], text} {
			call := normalize.Call{Tool: "bash_input", Handle: "bg1", Text: piece}
			ev := y.Event(context.Background(), call)
			if slices.ContainsFunc(ev.Notes, func(n string) bool { return strings.HasPrefix(n, "normaliser:") }) {
				t.Fatalf("%q: %q", piece, ev.Notes)
			}
			y.Observe(call, true, "")
		}
	})
}
