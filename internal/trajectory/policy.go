package trajectory

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Ways to export turns with a blocked call. The sampled tokens and the action mask are never touched.
const (
	Keep    = "keep"    // as any other turn
	MaskOut = "mask"    // loss_mask 0 on the turn's tokens
	Penalty = "penalty" // a reward event at the turn's last sampled token
	Reject  = "reject"  // the rollout is left out
)

// DefaultPenalty is the value of a penalty that is not given one.
const DefaultPenalty = -1.0

// BlockPolicy is a way with its value.
type BlockPolicy struct {
	Way   string
	Value float64 // of Penalty
}

// ParseBlockPolicy reads "keep", "mask", "reject", "penalty" or "penalty:-0.5"; "" is keep.
func ParseBlockPolicy(text string) (BlockPolicy, error) {
	way, value, valued := strings.Cut(text, ":")
	switch way {
	case "":
		way = Keep
	case Keep, MaskOut, Reject, Penalty:
	default:
		return BlockPolicy{}, fmt.Errorf("blocked is %.40q; it must be keep, mask, penalty, penalty:VALUE or reject", text)
	}
	p := BlockPolicy{Way: way}
	if way == Penalty {
		p.Value = DefaultPenalty
	}
	if valued {
		v, err := strconv.ParseFloat(value, 64)
		if way != Penalty || err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return BlockPolicy{}, fmt.Errorf("blocked is %.40q; only penalty takes a value, a finite number", text)
		}
		p.Value = v
	}
	return p, nil
}

// String gives the form that ParseBlockPolicy reads.
func (p BlockPolicy) String() string {
	if p.Way == Penalty {
		return fmt.Sprintf("penalty:%g", p.Value)
	}
	return p.Way
}

// Apply gives the segments as the policy wants them, leaving the given ones as they are. ok is false
// where the rollout is to be left out.
func (p BlockPolicy) Apply(segments []*Segment, spans []GuardSpan) (out []*Segment, ok bool) {
	blocked := false
	for _, g := range spans {
		blocked = blocked || g.Decision == "block"
	}
	if p.Way == Keep || !blocked {
		return segments, true
	}
	if p.Way == Reject {
		return nil, false
	}
	for _, s := range segments {
		if len(s.BlockedTurns) == 0 {
			out = append(out, s)
			continue
		}
		s = s.clone()
		for _, i := range s.BlockedTurns {
			t := s.Turns[i]
			switch {
			case p.Way == MaskOut:
				clear(s.LossMask[t.Start:t.End])
			case t.End > t.Start:
				s.Rewards = append(s.Rewards, RewardEvent{Index: t.End - 1, Value: p.Value, Ordinal: firstBlocked(spans, s.ID, i)})
			}
		}
		out = append(out, s)
	}
	return out, true
}

// firstBlocked gives the ordinal of the first blocked call of a turn: one event a turn, however many
// of its calls were blocked.
func firstBlocked(spans []GuardSpan, segment string, turn int) int {
	for _, g := range spans {
		if g.Segment == segment && g.Turn == turn && g.Decision == "block" {
			return g.Ordinal
		}
	}
	return 0
}
