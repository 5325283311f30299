package credit

import (
	"errors"
	"strings"
	"testing"
)

func TestBadDocuments(t *testing.T) {
	seg := func(s string) string { return `{"rollouts": [{"id": "a", "reward": 1, "segments": [` + s + `]}]}` }
	for name, tc := range map[string]struct{ doc, want string }{
		"no JSON":           {`{"rollouts": [`, "at byte"},
		"prose":             {`rollouts`, "at byte"},
		"unknown field":     {`{"rollouts": [{"id": "a", "rewards": 1}]}`, `"rewards"`},
		"two documents":     {`{"rollouts": []} {}`, "more text"},
		"no id":             {`{"rollouts": [{"reward": 1}]}`, "rollouts[0].id is missing"},
		"id twice":          {`{"rollouts": [{"id": "a"}, {"id": "a"}]}`, `rollouts[1].id "a" is there twice`},
		"huge reward":       {`{"rollouts": [{"id": "a", "reward": 1e999}]}`, "at byte"},
		"NaN":               {`{"rollouts": [{"id": "a", "reward": NaN}]}`, "at byte"},
		"mask of 2":         {seg(`{"action_mask": [1, 2]}`), "segments[0].action_mask[1] is 2, want 0 or 1"},
		"loss beyond":       {seg(`{"action_mask": [1, 0], "loss_mask": [1, 1]}`), "loss_mask[1] is 1 where action_mask is 0"},
		"short loss":        {seg(`{"action_mask": [1, 0], "loss_mask": [1]}`), "loss_mask has 1 entries, action_mask has 2"},
		"short values":      {seg(`{"action_mask": [1, 0], "values": [1]}`), "values has 1 entries"},
		"long rewards":      {seg(`{"action_mask": [1], "rewards": [1, 2]}`), "rewards has 2 entries"},
		"short turns":       {seg(`{"action_mask": [1, 1], "turns": [1]}`), "turns has 1 entries"},
		"order twice":       {seg(`{"action_mask": [1]}, {"action_mask": [1]}`), "segments[1].order 0 is there twice"},
		"no such turn":      {seg(`{"action_mask": [1], "turns": [0], "blocked_turns": [3]}`), "blocked_turns names turn 3"},
		"blocked, no turns": {seg(`{"action_mask": [1], "blocked_turns": [0]}`), "blocked_turns names turn 0"},
	} {
		_, err := Read(strings.NewReader(tc.doc))
		if !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

func TestBadOptions(t *testing.T) {
	d, err := Read(strings.NewReader(`{"rollouts": [{"id": "a", "reward": 1, "segments": [{"id": "s0", "action_mask": [1]}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]Options{
		"unknown estimator":        {Estimator: "ppo", Gamma: 1, Lambda: 1},
		"gamma is 1.1":             {Estimator: "gae", Gamma: 1.1, Lambda: 1},
		"lambda is -1":             {Estimator: "gae", Gamma: 1, Lambda: -1},
		"ddof is 2":                {Estimator: "grpo", DDoF: 2},
		"alpha is -1":              {Estimator: "gae", LambdaAlpha: -1},
		`segment "s0": values are`: {Estimator: "chained", Gamma: 1, Lambda: 1},
	} {
		if _, err := Estimate(d, o); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for _, s := range []string{"drop", "penalty", "penalty:", "penalty:x", "penalty:NaN", "keep:1"} {
		if _, err := ParseBlocked(s); !errors.Is(err, ErrInput) {
			t.Errorf("policy %q: %v", s, err)
		}
	}
	if b, err := ParseBlocked(""); err != nil || b.policy != "keep" {
		t.Errorf("no policy is keep, got %v, %v", b, err)
	}
}

// FuzzRead: no document makes reading or estimating panic, and what is accepted gives finite credit for
// finite input of sane size.
func FuzzRead(f *testing.F) {
	f.Add(`{"rollouts": [{"id": "a", "group": "g", "reward": 1.0, "segments": [{"id": "s0", "order": 0, "action_mask": [1,0,1], "loss_mask": [1,0,1], "values": [0.1,0,0.2], "rewards": [0,0,1], "turns": [0,-1,1], "blocked_turns": [1]}]}]}`)
	f.Add(`{"rollouts": [{"id": "a", "reward": null, "segments": [{"action_mask": []}]}]}`)
	f.Fuzz(func(t *testing.T, doc string) {
		d, err := Read(strings.NewReader(doc))
		if err != nil {
			if !errors.Is(err, ErrInput) {
				t.Errorf("not marked as bad input: %v", err)
			}
			return
		}
		for _, name := range Estimators() {
			for _, policy := range []string{"keep", "mask", "penalty:-1", "reject"} {
				o := options(name, 0.9, 0.9)
				o.Blocked, _ = ParseBlocked(policy)
				res, err := Estimate(d, o)
				if err != nil {
					continue
				}
				for i := range d.Rollouts {
					shapes(t, &d.Rollouts[i], &res.Rollouts[i])
				}
			}
		}
	})
}
