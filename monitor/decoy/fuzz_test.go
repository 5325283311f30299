package decoy

import (
	"context"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"proctor/rules"
	"proctor/sandbox"
)

// FuzzSplice cuts arbitrary spans out of arbitrary text: it must not panic, what is typed must parse
// where the text did, and the cut command must not be in it.
func FuzzSplice(f *testing.F) {
	f.Add("cd src && cat x; echo", 10, 15, true)
	f.Add("bash -c 'cat x | head'", 0, 22, false)
	f.Add("for i in 1; do cat $i; done <<EOF\na\nEOF\n", 15, 21, true)
	f.Add("cat <<A <<B\n1\nA\n2\nB\n", 0, 3, true)
	f.Add("x=`cat x`", 3, 8, true)
	f.Fuzz(func(t *testing.T, text string, start, end int, exact bool) {
		c := rules.Command{Program: "cat", Args: []string{"x"}, Line: "cat x", Hidden: []string{"/w/x"}, Span: rules.Span{Start: start, End: end, Exact: exact}}
		ev := rules.Event{Call: rules.CallFacts{Text: text, Cwd: "/w"}, Commands: []rules.Command{c}}
		a := New(Options{}).Answer(context.Background(), Request{Tool: "bash", Event: ev, Hits: []rules.Hit{{Class: rules.HiddenArtifact, Entity: "command"}},
			Call: sandbox.Call{Op: sandbox.OpShell, Command: text}})
		if !a.Run || a.Rewrite != nil {
			return
		}
		if _, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(a.Command), ""); err != nil {
			t.Errorf("%q became %q, which does not parse: %v", text, a.Command, err)
		}
	})
}

// TestFilterOutput checks the filter for programs without GNU's options.
func TestFilterOutput(t *testing.T) {
	denied := []string{"/w/.eval"}
	got := string(withoutLines([]byte("a.txt\ndrwx 2 root .eval\n./.eval/x: y\n.evaluate\n./src/.eval2\n"), denied))
	if want := "a.txt\n.evaluate\n./src/.eval2\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	busybox := func(_ context.Context, e sandbox.Exec) (sandbox.ExecResult, error) {
		code := 0
		if e.Argv[len(e.Argv)-1] == "--version" {
			code = 1
		}
		return sandbox.ExecResult{Stdout: []byte(".eval\na.txt\n"), Exit: &code}, nil
	}
	m := New(Options{Vars: rules.Vars{"hidden_paths": {"/w/.eval"}}, Run: busybox})
	a := m.Answer(context.Background(), blocked(eventOf(t, "ls -A", "/w"), rules.HiddenArtifact, func(rules.Command) bool { return true }))
	if strings.Contains(a.Command, "ignore") || strings.Contains(a.Command, ".eval") || !strings.Contains(a.Command, "a.txt") {
		t.Errorf("typed %s", a.Command)
	}
}
