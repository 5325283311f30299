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

// runnableDocs are the pages whose console blocks are run.
var runnableDocs = []string{"rule-author-guide.md"}

// TestDocsCommands runs the ```console blocks of pages, in order, in a folder of their own. A block
// after a comment `<!-- file: NAME -->` is written to that file first. After "$ command" stands the
// output: "..." for any lines, runs of blanks count as one, and "(exit status N)" where it is not 0.
func TestDocsCommands(t *testing.T) {
	for _, name := range runnableDocs {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("../../docs", name))
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			ran := 0
			for _, b := range docBlocks(string(text)) {
				switch {
				case b.file != "":
					if err := os.WriteFile(filepath.Join(dir, b.file), []byte(b.text), 0o644); err != nil {
						t.Fatal(err)
					}
				case b.lang == "console":
					ran += runConsole(t, name, dir, b)
				}
			}
			if ran == 0 {
				t.Error("the page holds no command")
			}
		})
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

// runConsole runs the commands of one block and holds their output against the page.
func runConsole(t *testing.T, page, dir string, b docBlock) int {
	t.Helper()
	var command string
	var want []string
	ran, at := 0, b.line
	check := func() {
		if command == "" {
			return
		}
		ran++
		cmd := exec.Command("bash", "-c", command)
		cmd.Dir = dir
		got, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			got = fmt.Appendf(got, "(exit status %d)\n", exit.ExitCode())
		} else if err != nil {
			t.Fatal(err)
		}
		if !sameOutput(want, strings.Split(strings.TrimRight(string(got), "\n"), "\n")) {
			t.Errorf("docs/%s:%d: $ %s\nwant:\n%s\ngot:\n%s", page, at, command, strings.Join(want, "\n"), got)
		}
	}
	for i, line := range strings.Split(strings.TrimRight(b.text, "\n"), "\n") {
		if next, ok := strings.CutPrefix(line, "$ "); ok {
			check()
			command, want, at = next, nil, b.line+i
			continue
		}
		want = append(want, line)
	}
	check()
	return ran
}

// sameOutput compares lines; "..." stands for any number of them, and runs of blanks count as one.
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
	squeeze := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	return len(got) > 0 && squeeze(want[0]) == squeeze(got[0]) && sameOutput(want[1:], got[1:])
}

func TestSameOutput(t *testing.T) {
	for _, c := range []struct {
		want, got string
		same      bool
	}{{"a|b", "a|b", true}, {"a", "a|b", false}, {"...|b", "x|y|b", true}, {"a|...", "a", true}, {"a|...|c", "a|b|c|d", false},
		{"a  b", "a b", true}, {"", "", true}, {"...", "", true}, {"a", "", false}} {
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
