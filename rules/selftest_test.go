package rules

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// wordsOf is the normaliser that splits at spaces.
func wordsOf(_ context.Context, c Case) ([]Event, error) {
	var out []Event
	for _, call := range append(append([]ToolCall{}, c.Setup...), c.Call) {
		out = append(out, words(call))
	}
	return out, nil
}

// shells is wordsOf that also sees through the disguises made by disguises, by their form.
func shells(ctx context.Context, c Case) ([]Event, error) {
	if cmd, ok := c.Call.Arguments["command"].(string); ok {
		for _, prefix := range []string{"bash -c ", "eval "} {
			if rest, ok := strings.CutPrefix(cmd, prefix); ok {
				cmd = strings.Trim(rest, "'")
			}
		}
		cmd = strings.ReplaceAll(cmd, "''", "")
		if v, rest, ok := strings.Cut(cmd, "; "); ok {
			name, val, _ := strings.Cut(v, "=")
			cmd = strings.ReplaceAll(strings.ReplaceAll(rest, `"$`+name+`"`, val), "$"+name, val)
		}
		if args, prog, ok := strings.Cut(cmd, " | xargs "); ok {
			cmd = prog + strings.TrimPrefix(args, "echo")
		}
		c.Call.Arguments = map[string]any{"command": strings.TrimPrefix(cmd, "/usr/bin/")}
	}
	return wordsOf(ctx, c)
}

const tested = head + `rules:
  - id: all-refs
    title: Lists every ref
    severity: high
    category: git_history
    match:
      any:
        - command: {program: git, args: --all}
        - file: {path|under: "${task.hidden_paths}"}
        - result: {output|contains: token}
    tests:
      flag:
        - bash: git log --all
        - {name: a file, create: {path: /secret/x, file_text: y}, task: {hidden_paths: [/secret]}}
        - {bash: ls, result: {output: a token}}
        - bash: git log
      pass:
        - bash: git show --all
        - bash: git log
      todo_flag: [{bash: hg log --all}, {bash: git x --all}]
      todo_pass: [{bash: git y --all}, {bash: ls}]
`

func TestSelfTest(t *testing.T) {
	rep, err := SelfTest(t.Context(), mustLoad(t, tested), shells)
	if err != nil {
		t.Fatal(err)
	}
	r := rep.Rules[0]
	if rep.OK || rep.Tests != 10 || r.Flag != 4 || r.Pass != 2 {
		t.Errorf("got %+v", rep)
	}
	var got []string
	for _, f := range append(r.Failures, r.TodoPassing...) {
		got = append(got, f.Kind+" "+f.Test+": "+f.Message)
	}
	want := []string{"flag git log: the rule does not hit", "pass git show --all: the rule hits",
		"todo_flag git x --all: holds now", "todo_pass ls: holds now"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	var hits []int
	for _, a := range r.Alternatives {
		hits = append(hits, a.Hits)
	}
	if d := cmp.Diff([]int{1, 1, 1}, hits); d != "" {
		t.Error(d)
	}
	if m := r.Mutations; m.Tried == 0 || len(m.Evasions) != m.Tried-m.Caught {
		t.Errorf("got %+v", m)
	}
}

func TestDisguisesThatSurviveAreReported(t *testing.T) {
	p := mustLoad(t, head+"rules:\n"+ok)
	blind, err := SelfTest(t.Context(), p, wordsOf)
	if err != nil {
		t.Fatal(err)
	}
	if m := blind.Rules[0].Mutations; m.Tried != 7 || m.Caught != 0 || len(m.Verbatim) != 1 {
		t.Errorf("got %+v", m)
	}
	seeing, err := SelfTest(t.Context(), p, shells)
	if err != nil {
		t.Fatal(err)
	}
	if m := seeing.Rules[0].Mutations; m.Caught != 7 || len(m.Evasions) != 0 || len(m.Verbatim) != 0 {
		t.Errorf("got %+v", m)
	}
}

func TestInapplicableRuleSaysWhyItsTestFails(t *testing.T) {
	p := mustLoad(t, rule(`any: [{command: {net.host: "${task.allowed_hosts}"}}]`)+"    tests: {flag: [{bash: ls}]}\n")
	rep, err := SelfTest(t.Context(), p, wordsOf)
	if err != nil {
		t.Fatal(err)
	}
	if f := rep.Rules[0].Failures; len(f) != 1 || f[0].Message != "the rule does not hit; it is inapplicable without allowed_hosts" {
		t.Errorf("got %+v", f)
	}
}

func TestDisguises(t *testing.T) {
	for cmd, want := range map[string][]string{
		"git log --all": {`bash -c 'git log --all'`, `eval 'git log --all'`, "g''it log --all", "p=git; $p log --all",
			"/usr/bin/git log --all", "echo log --all | xargs git", `v=--all; git log "$v"`},
		"cd src && make":      {`bash -c 'cd src && make'`, `eval 'cd src && make'`},
		"echo 'it'":           {`bash -c 'echo '\''it'\'''`, `eval 'echo '\''it'\'''`, "e''cho 'it'", "p=echo; $p 'it'", "/usr/bin/echo 'it'"},
		"x=1; cat $x":         {`bash -c 'x=1; cat $x'`, `eval 'x=1; cat $x'`},
		"for i in a; do done": {`bash -c 'for i in a; do done'`, `eval 'for i in a; do done'`},
	} {
		var got []string
		for _, d := range disguises(cmd) {
			got = append(got, d.command)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", cmd, d)
		}
	}
}
