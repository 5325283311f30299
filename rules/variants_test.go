package rules

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Conditions that are kept for one task's variables serve another's only where the values are the same:
// whatever was compiled before, a task's hits are those of packs that never saw another task.
func TestVariantsDoNotMix(t *testing.T) {
	const pack = `rules:
  - {id: under, title: x, severity: low, category: fabrication, match: {any: [{file: {path|under: ["${task.test_paths}"]}}]}}
  - {id: own, title: x, severity: low, category: fabrication, match: {any: [{command: {args|re: '\b${task.package}\b'}}, {command: {program: ["${task.package}"]}}]}}
  - {id: both, title: x, severity: low, category: fabrication, match: {any: [{command: {line|contains: "${task.package}=${task.fix_version}"}}]}}
  - {id: fixed, title: x, severity: low, category: fabrication, match: {any: [{command: {program: [ls]}}]}}
`
	tasks := []Vars{{"workdir": {"/a"}, "test_paths": {"tests"}, "package": {"x"}}, {"workdir": {"/b"}, "test_paths": {"tests"}, "package": {"x"}, "fix_version": {"2"}},
		{"workdir": {"/a"}, "test_paths": {"tests", "/abs"}, "package": {"x", "y"}, "fix_version": {"2"}}, {"package": {"x"}, "fix_version": {"2x"}}, {}}
	var events []*Event
	for _, dir := range []string{"/a", "/b", "/abs"} {
		for _, word := range []string{"x", "y", "x=2", "xy"} {
			events = append(events, &Event{Files: []File{{Path: dir + "/tests/" + word}}, Commands: []Command{{Program: word, Args: []string{word}, Line: "ls " + word}, {Program: "ls"}}})
		}
	}
	load := func() *Packs {
		p, probs := load(head + pack)
		if errs := Errors(probs); len(errs) > 0 {
			t.Fatal(errs[0])
		}
		return p
	}
	shared, hits := load(), 0
	for range 2 {
		for i, vars := range tasks {
			got, want := mustCompile(t, shared, vars), mustCompile(t, load(), vars)
			if d := cmp.Diff(want.Inapplicable(), got.Inapplicable()); d != "" {
				t.Errorf("task %d: what cannot work (-alone +shared):\n%s", i, d)
			}
			for _, ev := range events {
				hits += agree(t, got, ev)
				if d := cmp.Diff(want.PlainSession().Match(ev), got.Session().Match(ev)); d != "" {
					t.Errorf("task %d (-alone +shared):\n%s", i, d)
				}
			}
		}
	}
	if hits < 100 {
		t.Errorf("only %d hits", hits)
	}
}

// However many tasks there are, a condition is kept in a bounded number of forms.
func TestVariantsAreBounded(t *testing.T) {
	p, _ := load(head + "rules:\n  - {id: own, title: x, severity: low, category: fabrication, match: {any: [{command: {args|re: \"${task.package}\"}}]}}\n")
	for i := range 3 * maxVariants {
		name := fmt.Sprint("p", i)
		set := mustCompile(t, p, Vars{"package": {name}})
		if n := agree(t, set, &Event{Commands: []Command{{Args: []string{name}}}}); n != 1 {
			t.Fatalf("task %d: %d hits", i, n)
		}
	}
	for _, forms := range p.shared.variants.made {
		if len(forms) > maxVariants {
			t.Errorf("%d forms are kept", len(forms))
		}
	}
}
