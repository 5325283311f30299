package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"proctor/rules"
)

// The gate's benchmark counts setup calls, names the slowest call and orders its quantiles.
func TestBenchGate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.jsonl")
	rows := `{"id": "a", "command": "ls", "setup": [{"tool": "bash", "arguments": {"command": "cd src"}}]}
{"id": "b", "task": {"id": "t"}, "call": {"tool": "create", "arguments": {"path": "a.py", "file_text": "x = 1\n"}}}
`
	if err := os.WriteFile(file, []byte(rows), 0o600); err != nil {
		t.Fatal(err)
	}
	core, err := rules.Core()
	if err != nil {
		t.Fatal(err)
	}
	n := len(core.Rules()) + 3
	got, err := benchGate(t.Context(), n, []string{file}, "")
	if err != nil {
		t.Fatal(err)
	}
	if got.Rules != n || got.Calls != 3 || got.P50 > got.P99 || got.P99 > got.Max || got.CPUP99 > got.CPUMax || got.CPUMax <= 0 || got.Slowest == "" || got.Corpora[0] != "c.jsonl" {
		t.Errorf("%+v", got)
	}
	for text, want := range map[string]string{"": "no calls", "{": "c.jsonl:1: bad row"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := benchGate(t.Context(), 1, []string{file}, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

func TestCoreAndMade(t *testing.T) {
	few, err := coreAndMade(1)
	if err != nil {
		t.Fatal(err)
	}
	many, err := coreAndMade(500)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(few.Rules()); n < 2 || n > 499 || len(many.Rules()) != 500 {
		t.Errorf("%d and %d rules", n, len(many.Rules()))
	}
}
