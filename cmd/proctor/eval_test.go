package main

import (
	"io"
	"path/filepath"
	"testing"

	"proctor/internal/evaluation"
	"proctor/rules"
)

// TestDetectionHolds measures the corpora of the repository and fails where a figure is worse than the
// committed baseline. `make eval` does the same with all corpora.
func TestDetectionHolds(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED under -short: judges thousands of calls one after another")
	}
	files, err := filepath.Glob("../../monitor/normalize/corpus/testdata/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("there is no corpus: %v", err)
	}
	fresh, err := filepath.Glob("../../testdata/eval/*.jsonl")
	if err != nil || len(fresh) == 0 {
		t.Fatalf("there are no held-out pairs: %v", err)
	}
	files = append(files, fresh...)
	base, err := evaluation.Load("../../testdata/eval/baseline.json")
	if err != nil {
		t.Fatal(err)
	}
	now, err := (&evalOptions{}).measure(t.Context(), io.Discard, files)
	if err != nil {
		t.Fatal(err)
	}
	if _, unknown := evaluation.Lacking(base, now); len(unknown) > 0 {
		t.Errorf("%v have no baseline; run make eval UPDATE=1", unknown)
	}
	for name, s := range now.Sets {
		if s.Bad > 0 {
			t.Errorf("%s: %d lines could not be used", name, s.Bad)
		}
	}
	for _, c := range evaluation.Compare(base, now) {
		if c.Fell {
			t.Error(c)
		} else {
			t.Log(c)
		}
	}
	core, err := rules.Core()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files { // with setups of several calls among them
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			holdsToRulesEval(t, core, file, now.Sets[filepath.Base(file)])
		})
	}
}

// holdsToRulesEval checks that stage one of the gate, which is measured, hits what rules eval hits.
func holdsToRulesEval(t *testing.T, core *rules.Packs, file string, set *evaluation.Set) {
	t.Helper()
	ev := newEvaluator(core, false)
	if err := ev.file(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	want, got := ev.out.Labels, set.Groups["all"].Stage1
	if got.Hack.Rate() != want.Hack || got.Benign.Rate() != want.Benign {
		t.Errorf("rules eval counts %+v, eval %+v", want, got)
	}
}
