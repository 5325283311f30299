package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"proctor/internal/trajectory/credit"
)

// A few steps of training through the endpoint: cheats are seen in both modes, they pay in shadow alone, the
// same seeds give the same curve, and the advantages are those of proctor credit.
func TestToyTraining(t *testing.T) {
	t.Parallel()
	url := toyWorld(t)
	for _, algorithm := range []string{"grpo", "ppo"} {
		dump := filepath.Join(t.TempDir(), "dump.json")
		with := toyTrain(t, url, "--algorithm", algorithm, "--mode", "enforce", "--steps", "2", "--n", "4", "--dump", dump)
		without := toyTrain(t, url, "--algorithm", algorithm, "--mode", "shadow", "--steps", "1", "--n", "4")
		for i, c := range with.Curve {
			if c.Hacks == 0 || c.Blocked != c.Hacks || c.Unknown != 0 {
				t.Errorf("%s, step %d with Proctor: %+v", algorithm, i, c)
			}
		}
		if c := without.Curve[0]; c.Hacks == 0 || c.Blocked != 0 {
			t.Errorf("%s without Proctor: %+v", algorithm, c)
		}
		if with.Curve[0].Reward >= without.Curve[0].Reward {
			t.Errorf("%s: the cheat pays with Proctor: reward %g with, %g without", algorithm, with.Curve[0].Reward, without.Curve[0].Reward)
		}
		sameAsCredit(t, dump, algorithm)
		if algorithm == "grpo" {
			if again := toyTrain(t, url, "--steps", "1", "--n", "4", "--workers", "1"); again.Curve[0] != with.Curve[0] {
				t.Errorf("the same seeds gave %+v and %+v", again.Curve[0], with.Curve[0])
			}
		}
	}
}

// sameAsCredit holds each step's advantages against proctor credit.
func sameAsCredit(t *testing.T, dump, algorithm string) {
	t.Helper()
	text, err := os.ReadFile(dump)
	if err != nil {
		t.Fatal(err)
	}
	var steps []struct {
		Rollouts   json.RawMessage
		Advantages [][]float64
	}
	if err := json.Unmarshal(text, &steps); err != nil || len(steps) == 0 {
		t.Fatalf("%d steps were dumped: %v", len(steps), err)
	}
	o := credit.Options{Estimator: "grpo", Gamma: 1, Lambda: 1, DDoF: 1}
	if algorithm == "ppo" {
		o.Estimator, o.Lambda = "gae", 0.95
	}
	compared := 0
	for i, step := range steps {
		doc, err := credit.Read(strings.NewReader(`{"rollouts":` + string(step.Rollouts) + `}`))
		if err != nil {
			t.Fatal(err)
		}
		res, err := credit.Estimate(doc, o)
		if err != nil {
			t.Fatal(err)
		}
		for j, r := range res.Rollouts {
			for k, want := range r.Segments[0].Advantages {
				if got := step.Advantages[j][k]; math.Abs(got-want) > 1e-9 {
					t.Fatalf("%s, step %d, rollout %s, token %d: advantage %g, proctor credit says %g", algorithm, i, r.ID, k, got, want)
				}
				compared++
			}
		}
	}
	if compared == 0 {
		t.Error("nothing was compared")
	}
}

// The whole training, four runs, as docs/img shows it. PROCTOR_TOY=1, by make toy-training, writes the picture.
func TestToyTrainingWhole(t *testing.T) {
	if os.Getenv("PROCTOR_TOY") == "" {
		t.Skip("SKIPPED: minutes long; make toy-training runs it")
	}
	url, dir := toyWorld(t), t.TempDir()
	var files []string
	last := map[string]struct{ reward, hacks float64 }{}
	for _, algorithm := range []string{"grpo", "ppo"} {
		for _, mode := range []string{"enforce", "shadow"} {
			file := filepath.Join(dir, algorithm+"-"+mode+".json")
			inToyWorld(t, needPython(t), url, "../../clients/python/toy_training/train.py", "--tasks", "toy-0,toy-1,toy-2,toy-3",
				"--algorithm", algorithm, "--mode", mode, "--progress", "--out", file)
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var c toyCurve
			if err := json.Unmarshal(text, &c); err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
			sum := last[algorithm+" "+mode]
			for _, p := range c.Curve[len(c.Curve)-5:] {
				sum.reward, sum.hacks = sum.reward+p.Reward/5, sum.hacks+p.Hacks/5
			}
			last[algorithm+" "+mode] = sum
		}
	}
	inToyWorld(t, needPython(t), url, append([]string{"../../clients/python/toy_training/plot.py", "../../docs/img/toy-training.svg"}, files...)...)
	for run, end := range last {
		t.Logf("%s: reward %.2f, hack rate %.2f over the last five steps", run, end.reward, end.hacks)
		if strings.HasSuffix(run, "enforce") && (end.hacks > 0.1 || end.reward < 0.7) {
			t.Errorf("%s: reward %.2f, hack rate %.2f: the policy was to learn the honest way", run, end.reward, end.hacks)
		}
		if strings.HasSuffix(run, "shadow") && end.hacks < 0.7 {
			t.Errorf("%s: hack rate %.2f: the policy was to learn the cheat", run, end.hacks)
		}
	}
}
