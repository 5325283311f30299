package credit

import (
	"fmt"
	"math"
)

// Options choose how credit is assigned.
type Options struct {
	Estimator   string  // one of Estimators
	Gamma       float64 // discount per action token (per turn with step), 0 to 1
	Lambda      float64 // GAE's lambda, 0 to 1
	LambdaAlpha float64 // > 0: lambda is AdaptiveLambda(alpha, action tokens of the sequence) instead
	DDoF        int     // of grpo's standard deviation: 1 or 0
	Blocked     Blocked
	ShareReward bool // local estimators give each of K segments reward/K instead of the whole reward
	Whiten      bool // whiten token advantages over all action tokens of the document
}

// Estimators are the names that Estimate knows, in the order in which they are documented.
var estimators = []string{"grpo", "grpo-nostd", "rloo", "maxrl", "gae", "vcppo", "compaction", "chained", "step"}

// Estimators gives the names of the estimators.
func Estimators() []string { return append([]string{}, estimators...) }

// Result is what Estimate gives, in the order of the document.
type Result struct {
	Estimator string          `json:"estimator"`
	Rollouts  []RolloutResult `json:"rollouts"`
}

// RolloutResult is the credit of one rollout. Advantage is null with the estimators that give each token
// its own, and where Dropped says why the rollout has no part.
type RolloutResult struct {
	ID        string          `json:"id"`
	Advantage *float64        `json:"advantage"`
	Dropped   string          `json:"dropped,omitempty"`
	Segments  []SegmentResult `json:"segments"`
}

// SegmentResult has one entry a token in each list; observations have 0. LossMask is the segment's under
// the policy for blocked turns. NAfter counts the action tokens of later segments.
type SegmentResult struct {
	ID         string    `json:"id"`
	Advantages []float64 `json:"advantages"`
	Returns    []float64 `json:"returns"`
	LossMask   []int     `json:"loss_mask"`
	NAfter     int       `json:"n_after"`
}

// Estimate assigns credit. Where a rollout's token rewards already hold its reward (they sum to it, or the
// last action token has it) they are taken as they are; else they are events beside it, and the reward is
// paid at the last action token. A reward on an observation belongs to the action before it. Errors wrap
// ErrInput and name what is missing.
func Estimate(d *Document, o Options) (*Result, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	res := &Result{Estimator: o.Estimator, Rollouts: make([]RolloutResult, len(d.Rollouts))}
	for i := range d.Rollouts {
		res.Rollouts[i] = blank(&d.Rollouts[i], o.Blocked)
	}
	var err error
	switch o.Estimator {
	case "grpo", "grpo-nostd", "rloo", "maxrl":
		byGroup(d, o, res)
	default:
		err = byToken(d, o, res)
	}
	if err != nil {
		return nil, err
	}
	if o.Whiten {
		whiten(d, res)
	}
	return res, nil
}

func (o *Options) check() error {
	known := false
	for _, e := range estimators {
		known = known || e == o.Estimator
	}
	switch {
	case !known:
		return fmt.Errorf("%w: unknown estimator %q: one of %v", ErrInput, o.Estimator, estimators)
	case !(o.Gamma >= 0 && o.Gamma <= 1):
		return fmt.Errorf("%w: gamma is %v, want 0 to 1", ErrInput, o.Gamma)
	case !(o.Lambda >= 0 && o.Lambda <= 1):
		return fmt.Errorf("%w: lambda is %v, want 0 to 1", ErrInput, o.Lambda)
	case o.LambdaAlpha < 0 || !finite(o.LambdaAlpha):
		return fmt.Errorf("%w: alpha is %v, want a positive number", ErrInput, o.LambdaAlpha)
	case o.DDoF != 0 && o.DDoF != 1:
		return fmt.Errorf("%w: ddof is %d, want 0 or 1", ErrInput, o.DDoF)
	}
	if o.Blocked.policy == "" {
		o.Blocked.policy = "keep"
	}
	return nil
}

// blank is a rollout's result before credit: everything 0 but the masks.
func blank(r *Rollout, b Blocked) RolloutResult {
	out := RolloutResult{ID: r.ID, Segments: make([]SegmentResult, len(r.Segments))}
	after := NAfter(r.acts())
	for i := range r.Segments {
		s := &r.Segments[i]
		n := len(s.ActionMask)
		out.Segments[i] = SegmentResult{ID: s.ID, Advantages: make([]float64, n), Returns: make([]float64, n),
			LossMask: b.lossMask(s), NAfter: after[i]}
	}
	if r.Reward == nil {
		out.drop("reward is null")
	}
	return out
}

// drop takes the rollout out of training: no token of it counts.
func (r *RolloutResult) drop(why string) {
	r.Dropped = why
	for i := range r.Segments {
		clear(r.Segments[i].LossMask)
	}
}

func (r *Rollout) acts() [][]int {
	out := make([][]int, len(r.Segments))
	for i := range r.Segments {
		out[i] = r.Segments[i].ActionMask
	}
	return out
}

// byGroup gives every action token of a rollout the rollout's advantage within its group. Members are
// rollouts, never segments: a rollout that was compacted often would else count as many.
func byGroup(d *Document, o Options, res *Result) {
	members := map[string][]int{}
	for i := range d.Rollouts {
		if d.Rollouts[i].Reward != nil {
			g := d.Rollouts[i].Group
			members[g] = append(members[g], i)
		}
	}
	for _, group := range members {
		rewards := make([]float64, len(group))
		for k, i := range group {
			r := &d.Rollouts[i]
			rewards[k] = o.Blocked.outcome(r)
			if o.Blocked.policy == "penalty" {
				rewards[k] += float64(r.blocked()) * o.Blocked.penalty
			}
		}
		for k, adv := range o.baseline(rewards) {
			spread(&d.Rollouts[group[k]], &res.Rollouts[group[k]], adv, rewards[k])
		}
	}
}

func (o *Options) baseline(rewards []float64) []float64 {
	switch o.Estimator {
	case "grpo":
		return GRPO(rewards, o.DDoF)
	case "grpo-nostd":
		return GRPONoStd(rewards)
	case "rloo":
		return RLOO(rewards)
	default:
		return MaxRL(rewards)
	}
}

func spread(r *Rollout, out *RolloutResult, adv, reward float64) {
	out.Advantage = &adv
	for i := range r.Segments {
		for t, a := range r.Segments[i].ActionMask {
			if a == 1 {
				out.Segments[i].Advantages[t], out.Segments[i].Returns[t] = adv, reward
			}
		}
	}
}

// whiten scales the advantages of the whole document together, as a trainer scales a batch.
func whiten(d *Document, res *Result) {
	var mask []int
	var all []float64
	for i := range d.Rollouts {
		for j := range d.Rollouts[i].Segments {
			act := d.Rollouts[i].Segments[j].ActionMask
			if res.Rollouts[i].Dropped != "" {
				act = make([]int, len(act))
			}
			mask, all = append(mask, act...), append(all, res.Rollouts[i].Segments[j].Advantages...)
		}
	}
	scaled := Whiten(mask, all)
	for i := range res.Rollouts {
		for j := range res.Rollouts[i].Segments {
			n := copy(res.Rollouts[i].Segments[j].Advantages, scaled)
			scaled = scaled[n:]
		}
	}
}

func near(a, b float64) bool {
	return math.Abs(a-b) <= 1e-9*math.Max(1, math.Max(math.Abs(a), math.Abs(b)))
}
