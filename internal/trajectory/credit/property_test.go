package credit

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// random makes a document of one to four groups: uneven groups, uneven segments, observations at either
// end, segments without actions, blocked turns.
func random(rng *rand.Rand) *Document {
	d := &Document{}
	for g := range 1 + rng.IntN(4) {
		for range 1 + rng.IntN(5) {
			reward := float64(rng.IntN(5)) / 4
			r := Rollout{ID: string(rune('a' + len(d.Rollouts))), Group: string(rune('g' + g)), Reward: &reward}
			for s := range 1 + rng.IntN(4) {
				r.Segments = append(r.Segments, randomSegment(rng, s))
			}
			d.Rollouts = append(d.Rollouts, r)
		}
	}
	return d
}

func randomSegment(rng *rand.Rand, order int) Segment {
	s := Segment{ID: string(rune('0' + order)), Order: order}
	turn := 0
	for range rng.IntN(20) {
		act := rng.IntN(3) % 2
		s.ActionMask = append(s.ActionMask, act)
		s.LossMask = append(s.LossMask, act*rng.IntN(2))
		s.Values = append(s.Values, math.Round(rng.Float64()*100)/100)
		if act == 0 {
			s.Turns = append(s.Turns, -1)
			turn++
			continue
		}
		s.Turns = append(s.Turns, turn)
		if rng.IntN(6) == 0 {
			s.BlockedTurns = []int{turn}
		}
	}
	return s
}

// documents runs a property over many random documents; a failure names its seed.
func documents(t *testing.T, f func(t *testing.T, d *Document)) {
	n := uint64(120)
	if testing.Short() {
		n = 30
	}
	for seed := range n {
		d := random(rand.New(rand.NewPCG(seed, 1)))
		f(t, d)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func options(name string, gamma, lambda float64) Options {
	return Options{Estimator: name, Gamma: gamma, Lambda: lambda, DDoF: 1}
}

// With gamma = lambda = 1 an action token's advantage is the outcome minus its value, whatever lies
// between: local, cross-segment and chained agree.
func TestUndiscountedEstimatorsAgree(t *testing.T) {
	documents(t, func(t *testing.T, d *Document) {
		for _, name := range []string{"gae", "vcppo", "compaction", "chained"} {
			res := estimate(t, d, options(name, 1, 1))
			for i, r := range d.Rollouts {
				for j, s := range r.Segments {
					want := make([]float64, len(s.ActionMask))
					for k, a := range s.ActionMask {
						want[k] = float64(a) * (*r.Reward - s.Values[k])
					}
					equal(t, name, res.Rollouts[i].Segments[j].Advantages, want)
				}
			}
		}
	})
}

// Neither the order of rollouts nor that of segments in the file may matter.
func TestOrderDoesNotMatter(t *testing.T) {
	documents(t, func(t *testing.T, d *Document) {
		back := &Document{}
		for i := len(d.Rollouts) - 1; i >= 0; i-- {
			r := d.Rollouts[i]
			r.Segments = append([]Segment{}, r.Segments...)
			for a, b := 0, len(r.Segments)-1; a < b; a, b = a+1, b-1 {
				r.Segments[a], r.Segments[b] = r.Segments[b], r.Segments[a]
			}
			back.Rollouts = append(back.Rollouts, r)
		}
		for _, name := range Estimators() {
			one, two := estimate(t, d, options(name, 0.9, 0.8)), estimate(t, back, options(name, 0.9, 0.8))
			for i := range one.Rollouts {
				a, b := one.Rollouts[i], two.Rollouts[len(two.Rollouts)-1-i]
				for j := range a.Segments {
					equal(t, name, a.Segments[j].Advantages, b.Segments[j].Advantages)
				}
			}
		}
	})
}

// Rewards and values scaled by c scale advantages by c, save for the estimators that divide by the spread.
func TestScaling(t *testing.T) {
	documents(t, func(t *testing.T, d *Document) {
		size := map[string]int{}
		for _, r := range d.Rollouts {
			size[r.Group]++
		}
		var big Document
		data, _ := json.Marshal(d)
		if err := json.Unmarshal(data, &big); err != nil {
			t.Fatal(err)
		}
		for i := range big.Rollouts {
			*big.Rollouts[i].Reward *= 3
			for j := range big.Rollouts[i].Segments {
				big.Rollouts[i].Segments[j].Values = each(big.Rollouts[i].Segments[j].Values, func(x float64) float64 { return 3 * x })
			}
		}
		for _, name := range Estimators() {
			one, two := estimate(t, d, options(name, 0.9, 0.8)), estimate(t, &big, options(name, 0.9, 0.8))
			for i := range one.Rollouts {
				factor := 3.0
				if (name == "grpo" && size[d.Rollouts[i].Group] > 1) || name == "maxrl" {
					factor = 1
				}
				for j := range one.Rollouts[i].Segments {
					got := two.Rollouts[i].Segments[j].Advantages
					want := each(one.Rollouts[i].Segments[j].Advantages, func(x float64) float64 { return factor * x })
					for k := range want { // the 1e-6 beside the standard deviation does not scale
						if math.Abs(got[k]-want[k]) > 1e-4*math.Max(1, math.Abs(want[k])) {
							t.Errorf("%s: %v, want %v", name, got[k], want[k])
						}
					}
				}
			}
		}
	})
}

// A group's advantages sum to nothing over rollouts, however unevenly these were compacted.
func TestGroupsSumToZero(t *testing.T) {
	documents(t, func(t *testing.T, d *Document) {
		size := map[string]int{}
		for _, r := range d.Rollouts {
			size[r.Group]++
		}
		for _, name := range []string{"grpo", "grpo-nostd", "rloo", "maxrl"} {
			sums := map[string]float64{}
			for i, r := range estimate(t, d, options(name, 1, 1)).Rollouts {
				sums[d.Rollouts[i].Group] += *r.Advantage
			}
			for g, sum := range sums {
				if size[g] > 1 && math.Abs(sum) > 1e-9 {
					t.Errorf("%s: group %s sums to %v", name, g, sum)
				}
			}
		}
	})
}

// What must hold whatever the estimator and policy: lists of the segment's length, nothing on
// observations, masks nested, mask changes no advantage, and n_after counted again gives the same.
func TestShapes(t *testing.T) {
	documents(t, func(t *testing.T, d *Document) {
		for _, name := range Estimators() {
			for _, policy := range []string{"keep", "mask", "penalty:-0.5", "reject"} {
				o := options(name, 0.97, 0.9)
				o.Blocked = blockedPolicy(t, policy)
				res := estimate(t, d, o)
				for i, r := range d.Rollouts {
					shapes(t, &r, &res.Rollouts[i])
				}
				if policy == "mask" {
					keep := estimate(t, d, options(name, 0.97, 0.9))
					for i := range keep.Rollouts {
						for j := range keep.Rollouts[i].Segments {
							equal(t, "mask "+name, res.Rollouts[i].Segments[j].Advantages, keep.Rollouts[i].Segments[j].Advantages)
						}
					}
				}
			}
		}
	})
}

func shapes(t *testing.T, r *Rollout, out *RolloutResult) {
	t.Helper()
	after := 0
	for j := len(r.Segments) - 1; j >= 0; j-- {
		s, got := &r.Segments[j], &out.Segments[j]
		n := len(s.ActionMask)
		if len(got.Advantages) != n || len(got.Returns) != n || len(got.LossMask) != n {
			t.Fatalf("%d tokens, got %d advantages, %d returns, %d loss", n, len(got.Advantages), len(got.Returns), len(got.LossMask))
		}
		for k, a := range s.ActionMask {
			if a == 0 && (got.Advantages[k] != 0 || got.Returns[k] != 0) {
				t.Errorf("an observation got credit %v, %v", got.Advantages[k], got.Returns[k])
			}
			if got.LossMask[k] > s.LossMask[k] {
				t.Error("a token trains that was not to")
			}
		}
		if got.NAfter != after {
			t.Errorf("n_after %d, counted %d", got.NAfter, after)
		}
		after += count(s.ActionMask)
	}
}

func TestNullRewardIsLeftOut(t *testing.T) {
	const doc = `{"rollouts": [{"id": "a", "reward": 1, "segments": [{"action_mask": [1], "values": [0.5], "turns": [0]}]},
		{"id": "b", "reward": null, "segments": [{"action_mask": [1], "values": [0.5], "turns": [0]}]},
		{"id": "c", "reward": 0, "segments": [{"action_mask": [1], "values": [0.5], "turns": [0]}]}]}`
	for _, name := range Estimators() {
		d, err := Read(strings.NewReader(doc))
		if err != nil {
			t.Fatal(err)
		}
		res, err := Estimate(d, options(name, 1, 1))
		if err != nil {
			t.Fatal(err)
		}
		b := res.Rollouts[1]
		if b.Advantage != nil || b.Dropped == "" || b.Segments[0].LossMask[0] != 0 || b.Segments[0].Advantages[0] != 0 {
			t.Errorf("%s: an unknown reward trains: %+v", name, b)
		}
		if name == "rloo" && *res.Rollouts[0].Advantage != 1 {
			t.Errorf("the unknown reward is a member of the group: %v", *res.Rollouts[0].Advantage)
		}
	}
}

// Rewards that hold the outcome, and the same rewards without it, are one thing; what lies on an
// observation belongs to the action before.
func TestOutcomeIsPaidOnce(t *testing.T) {
	const head = `{"rollouts": [{"id": "a", "reward": 1, "segments": [{"action_mask": [0, 1, 0, 1, 0], "values": [0, 0.5, 0, 0.25, 0], "turns": [-1, 0, -1, 1, -1]`
	var want *Result
	for _, rewards := range []string{``, `, "rewards": [0, 0, 0, 1, 0]`, `, "rewards": [0, 0, 0, 0, 1]`, `, "rewards": [0, 0, 0, 0, 0]`} {
		for _, name := range []string{"gae", "vcppo", "compaction", "chained", "step"} {
			d, err := Read(strings.NewReader(head + rewards + `}]}]}`))
			if err != nil {
				t.Fatal(err)
			}
			got, err := Estimate(d, options(name, 1, 0.5))
			if err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want = got
			}
			equal(t, name+rewards, got.Rollouts[0].Segments[0].Advantages, []float64{0, 0.125, 0, 0.75, 0})
		}
	}
}
