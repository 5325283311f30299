package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"proctor/tasks/grading/predictions"
)

// Predictions of every kind for the demo task, on the engine that ships; and again, where nothing is left
// to be graded.
func TestGradePredictions(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED under -short: needs docker and " + baseImage)
	}
	if out, err := exec.Command("docker", "image", "inspect", baseImage).CombinedOutput(); err != nil {
		if os.Getenv("CI") == "true" || os.Getenv("PROCTOR_REQUIRE_DOCKER") == "1" {
			t.Fatalf("needs docker and %s (make image): %s", baseImage, out)
		}
		t.Skipf("SKIPPED: needs docker and %s (make image): %s", baseImage, out)
	}
	bin, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PROCTOR_BOXD", filepath.Join(bin, "boxd"))
	t.Setenv("PROCTOR_LOG_LEVEL", "error")
	dir := t.TempDir()
	gold, err := os.ReadFile("../../testdata/tasks/interval-merge/solution/gold.patch")
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	enc := json.NewEncoder(&file)
	for _, p := range []map[string]any{
		{"instance_id": "interval-merge", "model_name_or_path": "org/good", "model_patch": string(gold)},
		{"instance_id": "interval-merge", "model_name_or_path": "empty", "model_patch": ""},
		{"instance_id": "interval-merge", "model_name_or_path": "stale", "model_patch": "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"},
		{"instance_id": "interval-merge", "model_name_or_path": "forger", "model_patch": "--- a/intervals/__init__.py\n+++ b/intervals/__init__.py\n@@ -0,0 +1 @@\n+import os; os._exit(0)\n"},
		{"instance_id": "nobody", "model_name_or_path": "org/good", "model_patch": ""},
	} {
		if err := enc.Encode(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "p.jsonl"), file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	grade := func() gradeSummary {
		cmd := newRoot()
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(&bytes.Buffer{})
		cmd.SetArgs([]string{"grade", "--json", "--data", filepath.Join(dir, "data"), "--out", filepath.Join(dir, "out"), "--tasks", "../../testdata/tasks/interval-merge", filepath.Join(dir, "p.jsonl")})
		err := cmd.ExecuteContext(t.Context())
		var exit *exitError
		if !errors.As(err, &exit) || exit.status != exitUsage {
			t.Errorf("%v, want the status of bad rows", err)
		}
		var s gradeSummary
		if err := json.Unmarshal(out.Bytes(), &s); err != nil {
			t.Fatalf("%v: %s", err, out.Bytes())
		}
		return s
	}
	s := grade()
	if body, err := os.ReadFile(filepath.Join(dir, "out", "report.html")); err != nil || !bytes.Contains(body, []byte("5 predictions of 4 models")) {
		t.Errorf("the page: %v, %.300s", err, body)
	}
	if s.Rows != 5 || s.Resolved != 1 || s.Outcomes["empty_patch"] != 1 || s.Outcomes["patch_failed"] == 0 || s.Classes[predictions.ClassUnknown] != 1 || s.Known != 0 {
		t.Errorf("%+v", s)
	}
	if got := s.Models["org/good"]; !slices.Equal(got.ResolvedIDs, []string{"interval-merge"}) || got.Schema != 2 {
		t.Errorf("%+v", got)
	}
	for _, r := range s.Results {
		if r.Model == "org/good" && r.Grade != nil && (r.Grade.Review == nil || !slices.Contains(r.Grade.Witnesses, "second run: agrees")) {
			t.Errorf("%+v", r.Grade)
		}
		if r.Model == "forger" && r.Grade.Outcome == "resolved" {
			t.Errorf("%+v", r.Grade)
		}
	}
	if s := grade(); s.Known != 4 || s.Resolved != 1 {
		t.Errorf("again: %d known, %d resolved", s.Known, s.Resolved)
	}
	if _, err := os.Stat(filepath.Join(dir, "out/logs/run_evaluation/proctor/org__good/interval-merge/report.json")); err != nil {
		t.Error(err)
	}
}
