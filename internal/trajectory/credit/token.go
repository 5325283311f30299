package credit

import "fmt"

// byToken runs the estimators that read a critic's values.
func byToken(d *Document, o Options, res *Result) error {
	for i := range d.Rollouts {
		r := &d.Rollouts[i]
		if r.Reward == nil {
			continue
		}
		if err := needs(r, i, o.Estimator == "step"); err != nil {
			return err
		}
		out := &res.Rollouts[i]
		switch o.Estimator {
		case "gae", "vcppo", "compaction":
			local(r, o, out)
		case "chained":
			chained(r, o, out)
		case "step":
			steps(r, o, out)
		}
	}
	return nil
}

func needs(r *Rollout, i int, turns bool) error {
	for j := range r.Segments {
		s := &r.Segments[j]
		if len(s.Values) != len(s.ActionMask) {
			return fmt.Errorf("%w: rollouts[%d] (%s), segment %q: values are missing: this estimator reads one a token", ErrInput, i, r.ID, s.ID)
		}
		if turns && len(s.Turns) != len(s.ActionMask) {
			return fmt.Errorf("%w: rollouts[%d] (%s), segment %q: turns are missing: step reads one a token", ErrInput, i, r.ID, s.ID)
		}
	}
	return nil
}

// local runs GAE in each segment by itself, each ending in the outcome, and with compaction weighs it by
// its distance to the end.
func local(r *Rollout, o Options, out *RolloutResult) {
	share := 1.0
	if o.ShareReward && len(r.Segments) > 0 {
		share = 1 / float64(len(r.Segments))
	}
	events := r.events(o.Blocked)
	outcome := o.Blocked.outcome(r) * share
	for i := range r.Segments {
		s, seg := &r.Segments[i], &out.Segments[i]
		rewards := pay(s.ActionMask, events[i], outcome)
		lambda := o.lambda(count(s.ActionMask))
		seg.Advantages = GAE(s.ActionMask, s.Values, rewards, o.Gamma, lambda, Tail{})
		target := seg.Advantages
		if o.Estimator == "vcppo" { // the critic learns without bias, whatever lambda the actor uses
			target = GAE(s.ActionMask, s.Values, rewards, o.Gamma, 1, Tail{})
		}
		seg.Returns = Returns(s.ActionMask, target, s.Values)
		if o.Estimator == "compaction" {
			seg.Advantages = CrossSegment(seg.Advantages, o.Gamma, lambda, seg.NAfter)
		}
	}
}

func chained(r *Rollout, o Options, out *RolloutResult) {
	acts := r.acts()
	values := make([][]float64, len(acts))
	total := 0
	for i := range r.Segments {
		values[i] = r.Segments[i].Values
		total += count(acts[i])
	}
	rewards := r.events(o.Blocked)
	if s := lastSegment(acts); s >= 0 {
		rewards[s] = pay(acts[s], rewards[s], o.Blocked.outcome(r))
	}
	for i, adv := range Chained(acts, values, rewards, o.Gamma, o.lambda(total)) {
		out.Segments[i].Advantages = adv
		out.Segments[i].Returns = Returns(acts[i], adv, values[i])
	}
}

// steps runs GAE over the turns of all segments in order. The value of a turn is the critic's before its
// first action token.
func steps(r *Rollout, o Options, out *RolloutResult) {
	type key struct{ segment, turn int }
	index := map[key]int{}
	var values, rewards []float64
	events := r.events(o.Blocked)
	for i := range r.Segments {
		s := &r.Segments[i]
		for t, a := range s.ActionMask {
			if a == 0 {
				continue
			}
			k := key{i, s.Turns[t]}
			if _, ok := index[k]; !ok {
				index[k] = len(values)
				values, rewards = append(values, s.Values[t]), append(rewards, 0)
			}
			rewards[index[k]] += events[i][t]
		}
	}
	if len(values) == 0 {
		return
	}
	rewards[len(rewards)-1] += o.Blocked.outcome(r)
	adv := Steps(values, rewards, o.Gamma, o.lambda(len(values)))
	for i := range r.Segments {
		s := &r.Segments[i]
		for t, a := range s.ActionMask {
			if a == 1 {
				n := index[key{i, s.Turns[t]}]
				out.Segments[i].Advantages[t], out.Segments[i].Returns[t] = adv[n], adv[n]+values[n]
			}
		}
	}
}

func (o *Options) lambda(length int) float64 {
	if o.LambdaAlpha > 0 {
		return AdaptiveLambda(o.LambdaAlpha, length)
	}
	return o.Lambda
}

// events gives the token rewards of each segment without the outcome, on action tokens only, with those
// that the policy for blocked turns adds.
func (r *Rollout) events(b Blocked) [][]float64 {
	out := make([][]float64, len(r.Segments))
	sum := 0.0
	for i := range r.Segments {
		s := &r.Segments[i]
		out[i] = settle(s.ActionMask, s.Rewards)
		for _, x := range out[i] {
			sum += x
		}
	}
	if s := lastSegment(r.acts()); s >= 0 {
		end := lastAction(r.Segments[s].ActionMask)
		if near(sum, *r.Reward) || near(out[s][end], *r.Reward) {
			out[s][end] -= *r.Reward // the rewards hold the outcome already: take it out, the estimator pays it
		}
	}
	for i := range r.Segments {
		for t, x := range b.events(&r.Segments[i]) {
			out[i][t] += x
		}
	}
	return out
}

// settle moves rewards on observations to the action before them, or to the first action.
func settle(act []int, rewards []float64) []float64 {
	out := make([]float64, len(act))
	at := firstAction(act)
	if at < 0 {
		return out
	}
	for t, x := range rewards {
		if act[t] == 1 {
			at = t
		}
		out[at] += x
	}
	return out
}

// pay adds the outcome at the last action token.
func pay(act []int, events []float64, outcome float64) []float64 {
	out := append([]float64{}, events...)
	if t := lastAction(act); t >= 0 {
		out[t] += outcome
	}
	return out
}

func lastSegment(acts [][]int) int {
	for s := len(acts) - 1; s >= 0; s-- {
		if lastAction(acts[s]) >= 0 {
			return s
		}
	}
	return -1
}
