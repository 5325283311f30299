package normalize_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"proctor/monitor/normalize"
	"proctor/monitor/normalize/corpus"
	"proctor/rules"
)

// What the normaliser says is run has to hold what bash runs. Real bash is the judge: each command is
// given to `bash -x` in an empty root without network, where no program is there to be run: a name that is not found
// counts as one that ran, printed nothing and succeeded. Every simple command that the trace shows has to be
// among the normaliser's, its words equal or marked opaque. The other way round nothing is asked: the
// normaliser reads both branches of an if.

// emptyRoot makes a root folder with bash, its libraries and nothing else.
func emptyRoot(t *testing.T) string {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err == nil {
		err = exec.CommandContext(t.Context(), "unshare", "--pid", "--fork", "--mount", "--net", "--ipc", "true").Run()
	}
	if err != nil {
		msg := fmt.Sprintf("comparing with bash needs bash and the right to unshare: %v", err)
		if os.Getenv("CI") == "true" && os.Getuid() == 0 {
			t.Fatal(msg)
		}
		t.Skip(msg)
	}
	root := t.TempDir()
	ldd, err := exec.CommandContext(t.Context(), "ldd", bash).Output()
	if err != nil {
		t.Fatal(err)
	}
	files := []string{bash}
	for _, w := range strings.Fields(string(ldd)) {
		if strings.HasPrefix(w, "/") {
			files = append(files, w)
		}
	}
	for _, f := range files {
		to := filepath.Join(root, f)
		if f == bash {
			to = filepath.Join(root, "bin/bash")
		}
		copyFile(t, f, to)
	}
	for _, d := range []string{"tmp", "dev", "testbed", "workspace", "root"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "dev/null"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return root
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err == nil {
		err = os.WriteFile(to, in, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// prelude makes names that are not found count as programs; cd always works. 9 is the trace.
const prelude = `command_not_found_handle() { return 0; }
cd() { return 0; }
ulimit -f 64 -v 400000 -u 64
PS4='+'
BASH_ARGV0=bash
BASH_XTRACEFD=9
set -x
`

// traced runs a command under bash -x and gives the simple commands that it ran.
func traced(t *testing.T, root, command string) [][]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "unshare", "--pid", "--fork", "--kill-child", "--mount", "--net", "--ipc", "--root="+root, "--wd=/testbed", "/bin/bash", "-s")
	cmd.Env = []string{"HOME=/root", "PWD=/testbed", "PATH=/usr/bin:/bin"}
	cmd.Stdin = strings.NewReader(prelude + "eval \"$(builtin printf '%s' " + quoted(command) + ")\" </dev/null\n")
	cmd.ExtraFiles = []*os.File{w, w, w, w, w, w, w} // 3 to 9
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	var trace bytes.Buffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&trace, io.LimitReader(r, 1<<18))
		_ = r.Close()
	}()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	// Its status says nothing: most commands are not there.
	if err := cmd.Wait(); err != nil && errors.Is(err, exec.ErrWaitDelay) {
		t.Log(err)
	}
	<-read
	return simpleCommands(trace.String())
}

// quoted gives s as one word of shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// simpleCommands reads a trace: a line of plus signs and a simple command in quotes that can be read
// again. What is of the prelude, and lines of for, case and [[, are left out.
func simpleCommands(trace string) [][]string {
	var out [][]string
	for _, entry := range strings.Split("\n"+trace, "\n+") {
		entry = strings.TrimLeft(entry, "+ ")
		f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(entry), "")
		if err != nil || len(f.Stmts) != 1 {
			continue
		}
		call, ok := f.Stmts[0].Cmd.(*syntax.CallExpr)
		if !ok || len(call.Args) == 0 {
			continue
		}
		var words []string
		for _, w := range call.Args {
			s, ok := plainWord(w)
			if !ok {
				words = nil
				break
			}
			words = append(words, s)
		}
		switch {
		case len(words) == 0, words[0] == "return", words[0] == "eval", words[0] == "command_not_found_handle", words[0] == "case":
		case words[0] == "builtin" && len(words) > 1 && words[1] == "printf":
		default:
			out = append(out, words)
		}
	}
	return out
}

// plainWord gives the text of a word of a trace.
func plainWord(w *syntax.Word) (string, bool) {
	var b strings.Builder
	for _, p := range w.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			b.WriteString(strings.ReplaceAll(p.Value, `\`, ""))
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false
			}
			b.WriteString(p.Value)
		default:
			return "", false
		}
	}
	return b.String(), true
}

// said tells whether the event has a command that may be these words.
func said(ev *rules.Event, words []string) bool {
	return slices.ContainsFunc(ev.Commands, func(c rules.Command) bool {
		// A function and a wrapper are read through: they stand in the way of what they ran.
		if slices.Contains(c.Via, "function:"+words[0]) || slices.Contains(c.Via, words[0]) || slices.Contains(c.Via, "alias:"+words[0]) {
			return true
		}
		if c.Opaque {
			return c.Program == path.Base(words[0]) || strings.ContainsAny(c.Program, "$`<*?[{")
		}
		if c.Program != path.Base(words[0]) {
			return false
		}
		// Blanks at the ends of a word are not compared: the trace of a multi-line word loses them.
		// A pipe of a process substitution has a name of its own in each.
		same := func(a, b string) bool {
			return strings.TrimSpace(a) == strings.TrimSpace(b) || strings.HasPrefix(a, "/dev/fd/") && strings.HasPrefix(b, "/dev/fd/")
		}
		return slices.EqualFunc(c.Args, words[1:], same)
	})
}

// compareWithBash runs the commands and gives how many traced commands the normaliser has.
func compareWithBash(t *testing.T, root string, commands []string) (agreed, all int, missed []string) {
	t.Helper()
	for _, command := range commands {
		for _, dir := range []string{"testbed", "tmp", "workspace"} { // what another command left
			_ = os.RemoveAll(filepath.Join(root, dir))
			_ = os.Mkdir(filepath.Join(root, dir), 0o755)
		}
		n := normalize.New(testTask(), nil)
		ev := n.Event(t.Context(), normalize.Call{Tool: "bash", Command: command})
		for _, words := range traced(t, root, command) {
			all++
			if said(&ev, words) {
				agreed++
			} else if len(missed) < 400 {
				missed = append(missed, fmt.Sprintf("%q in %.200q", words, command))
			}
		}
	}
	return agreed, all, missed
}

// everyNth gives the bash commands of corpora, one of n.
func everyNth(t *testing.T, n int, files ...string) []string {
	t.Helper()
	var out []string
	at := 0
	for _, file := range files {
		for row, err := range corpus.Open(file) {
			if err != nil {
				t.Fatal(err)
			}
			if call := row.Call.Normal(); call.Tool == "bash" && len(call.Command) < 8192 && !strings.Contains(call.Command, "\x00") {
				if at++; at%n == 0 {
					out = append(out, call.Command)
				}
			}
		}
	}
	return out
}

// TestRunsWhatBashRuns compares on the project's own commands and, where they lie beside the project, a sample of
// real agents' and people's; BASH_TRACE=1
// takes more of them, BASH_FULL=1 all.
func TestRunsWhatBashRuns(t *testing.T) {
	root := emptyRoot(t)
	own := []string{
		`git log --oneline | head -3`, `x=git; y="log --all"; $x $y`, `for f in a b; do cat $f; done`, `bash_cmd='cat x'; eval "$bash_cmd"`,
		`g() { git "$@"; }; g show HEAD~1`, `shopt -s expand_aliases; echo hi`, `cat {a,b}.txt`, `echo $((1+2))`, `v=abcdef; cat ${v:1:3} ${v#ab} ${v/cd/X} ${v^^}`,
		`a=(x "y z"); cat "${a[@]}"`, `printf -v q '%s' cat; $q f`, `read w <<< cat; $w f`, `if true; then cat a; else cat b; fi`, `(cat a); { cat b; }`,
		`cat $'\x61b'`, `set -- p q; cat "$2" "$1"`, `i=0; while [ $i -lt 2 ]; do cat f$i; i=$((i+1)); done`, `n=cat; v=n; ${!v} f`, `cat a && cat b || cat c`,
		`case x in x) cat a;; esac`, `c=ca; c+=t; $c f`, `IFS=:; p=a:b; cat $p`, `mapfile -t m <<< $'a\nb'; cat "${m[0]}"`, `declare -A h; h[k]=cat; ${h[k]} f`,
		`cat <(echo a)`, `! cat a`, `time cat a`, `command cat a`, `local_x=1 cat a`, `cat a > /tmp/o 2>&1 < /dev/null`, `f=*.py; cat "$f"`, `trap 'cat bye' EXIT`,
	}
	agreed, all, missed := compareWithBash(t, root, own)
	for _, m := range missed {
		t.Errorf("bash runs %s", m)
	}
	t.Logf("own: %d of %d", agreed, all)
	n := 150
	if os.Getenv("BASH_TRACE") != "" {
		n = 12
	}
	if os.Getenv("BASH_FULL") != "" {
		n = 1
	}
	if testing.Short() {
		return
	}
	for glob, least := range map[string]float64{"../../../*/data/swe_agent_commands*.jsonl*": 0.97, "../../../*/data/nl2bash*.jsonl*": 0.95} {
		files, _ := filepath.Glob(glob) // the pattern is sound
		if len(files) == 0 {
			if os.Getenv("CI") == "true" {
				t.Errorf("no corpus %s", glob)
				continue
			}
			t.Logf("no corpus %s: not compared", glob)
			continue
		}
		agreed, all, missed := compareWithBash(t, root, everyNth(t, n, files...))
		rate := float64(agreed) / float64(max(all, 1))
		t.Logf("%s: %d of %d commands that bash ran (%.4f)", filepath.Base(files[0]), agreed, all, rate)
		for _, m := range missed {
			t.Logf("missed %s", m)
		}
		if rate < least {
			t.Errorf("%s: %.4f of what bash runs is read, want %.2f", glob, rate, least)
		}
	}
}
