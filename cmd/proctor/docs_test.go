package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// runnablePages are the pages whose console blocks are run, in folders of their own.
var runnablePages = []string{"docs/rule-author-guide.md", "docs/security-guide.md", "docs/credit.md"}

// servedPages are run beside a server that holds the demo task, whose data folder is .proctor. They
// share one, and the evaluator guide reads the rollout that the trainer guide made.
var servedPages = []string{"README.md", "docs/operations.md", "docs/trainer-guide.md", "docs/evaluator-guide.md"}

// TestDocsCommands runs the ```console blocks of pages, in order. A block after a comment
// `<!-- file: NAME -->` is written to that file first. After "$ command" stands the output: "..."
// for any lines, "…" for any text in a line, runs of blanks count as one, and "(exit status N)"
// where it is not 0. A command that ends in a backslash goes on in the next line. Variables and
// functions of a command live on in those after it.
func TestDocsCommands(t *testing.T) {
	for _, name := range runnablePages {
		t.Run(name, func(t *testing.T) { runPage(t, name, t.TempDir()) })
	}
}

func TestDocsCommandsOfAServer(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := startServer(t, filepath.Join(dir, ".proctor"), "--tasks", filepath.Join(root, "testdata", "tasks", "interval-merge"))
	for _, program := range []string{"curl", "python3"} {
		if _, err := exec.LookPath(program); err != nil {
			words := "the pages' commands need " + program + ": " + err.Error()
			if os.Getenv("CI") == "true" {
				t.Fatal(words)
			}
			t.Skip("SKIPPED, LOUDLY: " + words)
		}
	}
	bin, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{"testdata", "clients"} {
		if err := os.Symlink(filepath.Join(root, link), filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "PROCTOR_URL=" + s.client.URL}
	for _, name := range servedPages {
		t.Run(name, func(t *testing.T) { runPage(t, name, dir, env...) })
	}
}

// runPage runs the commands of one page in dir.
func runPage(t *testing.T, name, dir string, env ...string) {
	text, err := os.ReadFile(filepath.Join("../..", name))
	if err != nil {
		t.Fatal(err)
	}
	shell := &docShell{page: name, dir: dir, env: append(os.Environ(), env...), state: filepath.Join(t.TempDir(), "state")}
	ran := 0
	for _, b := range docBlocks(string(text)) {
		switch {
		case b.file != "":
			path := filepath.Join(dir, b.file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(b.text), 0o644); err != nil {
				t.Fatal(err)
			}
		case b.lang == "console":
			ran += shell.block(t, b)
		}
	}
	if ran == 0 {
		t.Error("the page holds no command")
	}
}

// docBlock is a fenced block of a page.
type docBlock struct {
	lang, file, text string
	line             int // of its first line
}

var fileMark = regexp.MustCompile(`^<!-- file: (\S+) -->$`)

// docBlocks finds the fenced blocks of a page.
func docBlocks(text string) []docBlock {
	var out []docBlock
	var open *docBlock
	file := ""
	for i, line := range strings.Split(text, "\n") {
		switch {
		case open != nil && strings.HasPrefix(line, "```"):
			out = append(out, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		case strings.HasPrefix(line, "```"):
			open = &docBlock{lang: strings.TrimPrefix(line, "```"), file: file, line: i + 2}
			file = ""
		default:
			if m := fileMark.FindStringSubmatch(line); m != nil {
				file = m[1]
			}
		}
	}
	return out
}

// docShell runs a page's commands one by one and carries variables and functions along.
type docShell struct {
	page, dir string
	env       []string
	state     string // file that holds what the commands before left
}

// run gives a command's output, with its exit status where that is not 0.
func (d *docShell) run(t *testing.T, command string) string {
	t.Helper()
	const wrap = "[ ! -e \"$1\" ] || . \"$1\"; set -a\n%s\nstatus=$?; { export -p; declare -f; } >\"$1\"; exit $status"
	cmd := exec.CommandContext(t.Context(), "bash", "-c", fmt.Sprintf(wrap, command), "bash", d.state)
	cmd.Dir, cmd.Env = d.dir, d.env
	got, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = fmt.Appendf(got, "(exit status %d)\n", exit.ExitCode())
	} else if err != nil {
		t.Fatal(err)
	}
	return string(got)
}

// block runs the commands of one block and holds their output against the page.
func (d *docShell) block(t *testing.T, b docBlock) int {
	t.Helper()
	lines := strings.Split(strings.TrimRight(b.text, "\n"), "\n")
	ran := 0
	for i := 0; i < len(lines); {
		command, ok := strings.CutPrefix(lines[i], "$ ")
		at := b.line + i
		if !ok {
			t.Fatalf("%s:%d: a console block starts with a command", d.page, at)
		}
		for i++; strings.HasSuffix(command, "\\") && i < len(lines); i++ {
			command += "\n" + lines[i]
		}
		start := i
		for i < len(lines) && !strings.HasPrefix(lines[i], "$ ") {
			i++
		}
		want, got := lines[start:i], d.run(t, command)
		if !sameOutput(want, strings.Split(strings.TrimRight(got, "\n"), "\n")) {
			t.Errorf("%s:%d: $ %s\nwant:\n%s\ngot:\n%s", d.page, at, command, strings.Join(want, "\n"), got)
		}
		ran++
	}
	return ran
}

// sameOutput compares lines; "..." stands for any number of them, "…" for any text in one, and runs
// of blanks count as one.
func sameOutput(want, got []string) bool {
	if len(want) == 0 {
		return len(got) == 0 || len(got) == 1 && got[0] == ""
	}
	if want[0] == "..." {
		for i := range len(got) + 1 {
			if sameOutput(want[1:], got[i:]) {
				return true
			}
		}
		return false
	}
	return len(got) > 0 && sameLine(want[0], got[0]) && sameOutput(want[1:], got[1:])
}

func sameLine(want, got string) bool {
	squeeze := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	pattern := strings.ReplaceAll(regexp.QuoteMeta(squeeze(want)), "…", ".*")
	return regexp.MustCompile("^" + pattern + "$").MatchString(squeeze(got))
}

func TestSameOutput(t *testing.T) {
	for _, c := range []struct {
		want, got string
		same      bool
	}{{"a|b", "a|b", true}, {"a", "a|b", false}, {"...|b", "x|y|b", true}, {"a|...", "a", true}, {"a|...|c", "a|b|c|d", false},
		{"a  b", "a b", true}, {"", "", true}, {"...", "", true}, {"a", "", false},
		{"a … c", "a b c", true}, {"a …", "b c", false}, {"a.c", "abc", false}} {
		split := func(s string) []string {
			if s == "" {
				return nil
			}
			return strings.Split(s, "|")
		}
		if got := sameOutput(split(c.want), split(c.got)); got != c.same {
			t.Errorf("%q and %q: got %t", c.want, c.got, got)
		}
	}
}
