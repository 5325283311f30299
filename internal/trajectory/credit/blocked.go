package credit

import (
	"fmt"
	"strconv"
	"strings"
)

// Blocked says how blocked turns enter training. The sampled tokens themselves are never edited.
type Blocked struct {
	policy  string
	penalty float64
}

// ParseBlocked reads keep, mask, reject or penalty:X, X a number that is added to the reward of each
// blocked turn (usually negative). The empty string means keep.
//
//   - keep: nothing changes; only what the agent was shown differed (GLM-5.2).
//   - mask: loss_mask 0 on the blocked turns, advantages as with keep.
//   - penalty: a reward event of X on the last action token of each blocked turn.
//   - reject: the outcome of a rollout with a blocked turn is 0; it stays in its group.
func ParseBlocked(s string) (Blocked, error) {
	name, arg, has := strings.Cut(s, ":")
	switch {
	case (name == "keep" || name == "mask" || name == "reject") && !has:
		return Blocked{policy: name}, nil
	case s == "":
		return Blocked{policy: "keep"}, nil
	case name == "penalty" && has:
		x, err := strconv.ParseFloat(arg, 64)
		if err != nil || !finite(x) {
			return Blocked{}, fmt.Errorf("%w: penalty %q is not a number, as in penalty:-0.5", ErrInput, arg)
		}
		return Blocked{policy: "penalty", penalty: x}, nil
	}
	return Blocked{}, fmt.Errorf("%w: unknown policy %q for blocked turns: keep, mask, penalty:-0.5 or reject", ErrInput, s)
}

// lossMask gives the segment's loss mask under the policy.
func (b Blocked) lossMask(s *Segment) []int {
	out := append([]int{}, s.LossMask...)
	if b.policy != "mask" {
		return out
	}
	for _, turn := range s.BlockedTurns {
		for t := range out {
			if s.Turns[t] == turn {
				out[t] = 0
			}
		}
	}
	return out
}

// events gives the reward events that the policy adds to the segment, one entry a token.
func (b Blocked) events(s *Segment) []float64 {
	out := make([]float64, len(s.ActionMask))
	if b.policy == "penalty" {
		for _, turn := range s.BlockedTurns {
			out[s.lastOfTurn(turn)] += b.penalty
		}
	}
	return out
}

// outcome gives the reward of the whole rollout under the policy, without events.
func (b Blocked) outcome(r *Rollout) float64 {
	if b.policy == "reject" && r.blocked() > 0 {
		return 0
	}
	return *r.Reward
}

func (r *Rollout) blocked() int {
	n := 0
	for i := range r.Segments {
		n += len(r.Segments[i].BlockedTurns)
	}
	return n
}
