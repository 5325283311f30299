package credit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"sort"
)

// ErrInput marks what is wrong with a document: which rollout, segment and field, and what was expected.
var ErrInput = errors.New("credit input")

// Document is what Estimate reads: rollouts of one or more groups.
type Document struct {
	Rollouts []Rollout `json:"rollouts"`
}

// Rollout is one attempt. Reward is null where nobody can say what it earned (infrastructure, grader or
// task failed); such a rollout is left out of its group. Rollouts without a group form one.
type Rollout struct {
	ID       string    `json:"id"`
	Group    string    `json:"group"`
	Reward   *float64  `json:"reward"`
	Segments []Segment `json:"segments"`
}

// Segment is a run of tokens between compactions. ActionMask is required; the other lists are optional or
// have its length. Values[t] is the critic's value of the state before token t. Rewards[t] is paid at
// token t: Estimate says how it meets the rollout's reward. Turns[t] numbers the turn of token t, -1 for
// none. BlockedTurns names the turns whose call was answered with a decoy. A missing LossMask equals the
// action mask.
type Segment struct {
	ID           string    `json:"id"`
	Order        int       `json:"order"`
	ActionMask   []int     `json:"action_mask"`
	LossMask     []int     `json:"loss_mask,omitempty"`
	Values       []float64 `json:"values,omitempty"`
	Rewards      []float64 `json:"rewards,omitempty"`
	Turns        []int     `json:"turns,omitempty"`
	BlockedTurns []int     `json:"blocked_turns,omitempty"`
}

// Read reads a document, refuses unknown fields and trailing text, checks it, and puts the segments of
// each rollout in order. Errors wrap ErrInput.
func Read(r io.Reader) (*Document, error) {
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields()
	var d Document
	if err := dec.Decode(&d); err != nil {
		return nil, fmt.Errorf("%w: at byte %d: %v", ErrInput, dec.InputOffset(), err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("%w: more text behind the document, at byte %d", ErrInput, dec.InputOffset())
	}
	if err := d.check(); err != nil {
		return nil, err
	}
	return &d, nil
}

func (d *Document) check() error {
	seen := map[string]bool{}
	for i := range d.Rollouts {
		r := &d.Rollouts[i]
		at := fmt.Sprintf("rollouts[%d]", i)
		switch {
		case r.ID == "":
			return fmt.Errorf("%w: %s.id is missing", ErrInput, at)
		case seen[r.ID]:
			return fmt.Errorf("%w: %s.id %q is there twice: group by rollout, with its segments in one list", ErrInput, at, r.ID)
		case r.Reward != nil && !finite(*r.Reward):
			return fmt.Errorf("%w: %s.reward is not a finite number", ErrInput, at)
		}
		seen[r.ID] = true
		orders := map[int]bool{}
		for j := range r.Segments {
			s := &r.Segments[j]
			if err := s.check(fmt.Sprintf("%s.segments[%d]", at, j)); err != nil {
				return err
			}
			if orders[s.Order] {
				return fmt.Errorf("%w: %s.segments[%d].order %d is there twice", ErrInput, at, j, s.Order)
			}
			orders[s.Order] = true
		}
		sort.Slice(r.Segments, func(a, b int) bool { return r.Segments[a].Order < r.Segments[b].Order })
	}
	return nil
}

func (s *Segment) check(at string) error {
	n := len(s.ActionMask)
	if err := checkMask(at+".action_mask", s.ActionMask, nil); err != nil {
		return err
	}
	lengths := []struct {
		field string
		n     int
	}{{"loss_mask", len(s.LossMask)}, {"values", len(s.Values)}, {"rewards", len(s.Rewards)}, {"turns", len(s.Turns)}}
	for _, l := range lengths {
		if l.n != 0 && l.n != n {
			return fmt.Errorf("%w: %s.%s has %d entries, action_mask has %d", ErrInput, at, l.field, l.n, n)
		}
	}
	if s.LossMask == nil {
		s.LossMask = append([]int{}, s.ActionMask...)
	}
	if err := checkMask(at+".loss_mask", s.LossMask, s.ActionMask); err != nil {
		return err
	}
	for t := range s.Values {
		if !finite(s.Values[t]) {
			return fmt.Errorf("%w: %s.values[%d] is not a finite number", ErrInput, at, t)
		}
	}
	for t := range s.Rewards {
		if !finite(s.Rewards[t]) {
			return fmt.Errorf("%w: %s.rewards[%d] is not a finite number", ErrInput, at, t)
		}
	}
	return s.checkTurns(at)
}

// checkTurns wants every blocked turn to have an action token, so that no policy is silently without effect.
func (s *Segment) checkTurns(at string) error {
	for _, b := range s.BlockedTurns {
		if s.lastOfTurn(b) < 0 {
			return fmt.Errorf("%w: %s.blocked_turns names turn %d, of which turns has no action token", ErrInput, at, b)
		}
	}
	return nil
}

func checkMask(at string, mask, within []int) error {
	for t, m := range mask {
		if m != 0 && m != 1 {
			return fmt.Errorf("%w: %s[%d] is %d, want 0 or 1", ErrInput, at, t, m)
		}
		if within != nil && m > within[t] {
			return fmt.Errorf("%w: %s[%d] is 1 where action_mask is 0: only sampled tokens train", ErrInput, at, t)
		}
	}
	return nil
}

func (s *Segment) lastOfTurn(turn int) int {
	for t := len(s.Turns) - 1; t >= 0; t-- {
		if s.Turns[t] == turn && s.ActionMask[t] == 1 {
			return t
		}
	}
	return -1
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
