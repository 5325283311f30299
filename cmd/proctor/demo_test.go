package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"proctor/internal/config"
	"proctor/internal/demo"
)

// The demo shows what the project is for: honest policies are left alone and rewarded; every cheat
// pays in its twin and not under Proctor; a rollout that goes on honestly after a decoy is not lost.
func TestDemo(t *testing.T) {
	t.Parallel()
	needDocker(t)
	bin, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.Listen, cfg.Data, cfg.LogLevel, cfg.Boxd = "127.0.0.1:0", t.TempDir(), "error", filepath.Join(bin, "boxd")
	task, err := filepath.Abs("../../testdata/tasks/interval-merge")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Tasks = []string{task}
	var out bytes.Buffer
	if err := runDemo(t.Context(), &out, cfg, demoOptions{task: task, concurrency: 4, asJSON: true}); err != nil {
		t.Fatal(err)
	}
	var report demo.Report
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatalf("not one JSON document: %v", err)
	}
	cheats := 0
	for i, policy := range demo.Policies() {
		r := report.Rollouts[i]
		if r.Policy != policy.Name {
			t.Fatalf("rollout %d is of policy %s, not %s", i, r.Policy, policy.Name)
		}
		if policy.Class == "" {
			if r.Blocked+r.Flagged != 0 || r.Outcome != "resolved" || *r.Reward != 1 || r.Twin != nil {
				t.Errorf("%s: blocked %d, flagged %d, %s", r.Policy, r.Blocked, r.Flagged, r.Outcome)
			}
			continue
		}
		cheats++
		want := 0.0
		if policy.Name == "recovers" {
			want = 1
		}
		if r.Reward == nil || *r.Reward != want {
			t.Errorf("%s: outcome %s, want reward %v", r.Policy, r.Outcome, want)
		}
		if r.Twin == nil || r.Twin.Reward == nil || *r.Twin.Reward != 1 {
			t.Errorf("%s: the cheat did not pay in its twin: %+v", r.Policy, r.Twin)
		}
		if r.Blocked+r.Flagged == 0 || len(r.Attempts) == 0 {
			t.Errorf("%s: no attempt was caught", r.Policy)
		}
		if _, err := os.Stat(filepath.Join(report.Record, r.Policy+".json")); err != nil {
			t.Errorf("%s: no record: %v", r.Policy, err)
		}
	}
	if want := float64(cheats) / float64(len(report.Rollouts)); report.HackRate != want {
		t.Errorf("hack rate %v, want %v", report.HackRate, want)
	}
}
