package trajectory

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// MaxTokens bounds a segment, and MaxSegments a rollout's: what no context window reaches.
const (
	MaxTokens   = 8 << 20
	MaxSegments = 4096
)

// logprobSlack is how far above 0 a logarithm of a probability may lie: servers compute in 16 bits.
const logprobSlack = 1e-3

// FieldError says what of a list of segments does not hold, and where.
type FieldError struct {
	Field string // "segments[2].logprobs[17]"
	What  string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.What }

// CheckSegments holds segments, whoever made them, against what must hold in every record: equal
// lengths, loss_mask at most action_mask, sampled tokens inside turns, finite logprobs, n_action and
// n_after as counted, parents before children, and each sampled token trained at most once. It gives
// every violation, at most 100.
func CheckSegments(segments []*Segment) []*FieldError {
	c := segChecker{ids: map[string]int{}}
	if len(segments) > MaxSegments {
		c.say("segments", "there are %d, at most %d are taken", len(segments), MaxSegments)
		return c.problems
	}
	for i, s := range segments {
		c.at = fmt.Sprintf("segments[%d]", i)
		if s == nil {
			c.say("", "is null")
			return c.problems
		}
		c.names(i, s)
		c.arrays(s)
		c.turns(s)
		c.ids[s.ID] = i
	}
	if len(c.problems) == 0 {
		c.counted(segments)
		c.trainedOnce(segments)
	}
	return c.problems
}

type segChecker struct {
	at       string
	ids      map[string]int
	problems []*FieldError
}

func (c *segChecker) say(field, format string, args ...any) {
	if len(c.problems) >= 100 {
		return
	}
	if field != "" && c.at != "" {
		field = "." + field
	}
	c.problems = append(c.problems, &FieldError{c.at + field, fmt.Sprintf(format, args...)})
}

// names checks id, order, kind, cause and parent.
func (c *segChecker) names(i int, s *Segment) {
	if s.ID == "" || len(s.ID) > 64 {
		c.say("id", "must have 1 to 64 bytes")
	}
	if at, twice := c.ids[s.ID]; twice {
		c.say("id", "%.64q is the id of segments[%d] too", s.ID, at)
	}
	if s.Order != i {
		c.say("order", "is %d, want %d: segments are listed in their order, from 0", s.Order, i)
	}
	if !slices.Contains(Kinds(), s.Kind) {
		c.say("kind", "is %.40q, want one of %v", s.Kind, Kinds())
	}
	if !slices.Contains(Causes(), s.Cause) {
		c.say("cause", "is %.40q, want one of %v", s.Cause, Causes())
	}
	switch {
	case s.Parent == nil && s.Cause != CauseRoot:
		c.say("parent", "is null, and the cause is %s: name the segment that it left", s.Cause)
	case s.Parent != nil && s.Cause == CauseRoot:
		c.say("parent", "is %.64q, and a root has none", *s.Parent)
	case s.Parent != nil:
		if _, there := c.ids[*s.Parent]; !there {
			c.say("parent", "%.64q is no segment before this one", *s.Parent)
		}
	}
}

// arrays checks the four arrays of a segment.
func (c *segChecker) arrays(s *Segment) {
	n := len(s.Tokens)
	if n > MaxTokens {
		c.say("tokens", "there are %d, at most %d are taken", n, MaxTokens)
		return
	}
	if s.TextOnly != "" && n > 0 {
		c.say("text_only", "is set, and there are %d tokens", n)
	}
	for _, l := range []struct {
		name string
		n    int
	}{{"logprobs", len(s.Logprobs)}, {"action_mask", len(s.ActionMask)}, {"loss_mask", len(s.LossMask)}} {
		if l.n != n {
			c.say(l.name, "has %d entries, and tokens has %d: all four have one a token", l.n, n)
			return
		}
	}
	if len(s.Logprobs) != n || len(s.ActionMask) != n || len(s.LossMask) != n {
		return
	}
	for i := range n {
		if problem := c.entry(s, i); problem {
			return
		}
	}
}

// entry checks one place of the arrays.
func (c *segChecker) entry(s *Segment, i int) bool {
	lp, action, loss := s.Logprobs[i], s.ActionMask[i], s.LossMask[i]
	field := ""
	switch {
	case s.Tokens[i] < 0:
		field = "tokens"
		c.say(fmt.Sprintf("tokens[%d]", i), "is %d: no token id", s.Tokens[i])
	case math.IsNaN(lp) || math.IsInf(lp, 0):
		field = "logprobs"
		c.say(fmt.Sprintf("logprobs[%d]", i), "is no finite number: sampled under what?")
	case lp > logprobSlack:
		field = "logprobs"
		c.say(fmt.Sprintf("logprobs[%d]", i), "is %g: the logarithm of a probability is at most 0", lp)
	case action != 0 && action != 1:
		field = "action_mask"
		c.say(fmt.Sprintf("action_mask[%d]", i), "is %d, want 0 or 1", action)
	case loss != 0 && loss != 1:
		field = "loss_mask"
		c.say(fmt.Sprintf("loss_mask[%d]", i), "is %d, want 0 or 1", loss)
	case loss > action:
		field = "loss_mask"
		c.say(fmt.Sprintf("loss_mask[%d]", i), "is 1 where action_mask is 0: only sampled tokens train")
	}
	return field != ""
}

// turns checks that the turns are in order, inside, and hold exactly the sampled tokens.
func (c *segChecker) turns(s *Segment) {
	end, sampled := 0, 0
	for i, t := range s.Turns {
		at := fmt.Sprintf("turns[%d]", i)
		switch {
		case t.Index != i:
			c.say(at+".index", "is %d, want %d", t.Index, i)
		case t.Start < end || t.End < t.Start || t.End > len(s.Tokens):
			c.say(at, "[%d, %d) is not after the turn before and inside the %d tokens", t.Start, t.End, len(s.Tokens))
			return
		case !slices.Contains(Kinds(), t.Kind):
			c.say(at+".kind", "is %.40q, want one of %v", t.Kind, Kinds())
		}
		if t.End <= len(s.ActionMask) {
			n := ones(s.ActionMask[t.Start:t.End])
			if n != t.End-t.Start {
				c.say(at, "holds %d tokens with action_mask 0: a turn is what was sampled", t.End-t.Start-n)
			}
			sampled += n
		}
		end = t.End
	}
	if all := ones(s.ActionMask); all != sampled {
		c.say("action_mask", "has %d ones outside of turns", all-sampled)
	}
	for i, at := range s.BlockedTurns {
		if at < 0 || at >= len(s.Turns) {
			c.say(fmt.Sprintf("blocked_turns[%d]", i), "is %d, and there are %d turns", at, len(s.Turns))
		}
	}
	for i, r := range s.Rewards {
		if r.Index < 0 || r.Index >= len(s.Tokens) || math.IsNaN(r.Value) || math.IsInf(r.Value, 0) {
			c.say(fmt.Sprintf("rewards[%d]", i), "is no finite value at one of the %d tokens", len(s.Tokens))
		}
	}
}

// counted checks n_action and n_after.
func (c *segChecker) counted(segments []*Segment) {
	after := 0
	for i := len(segments) - 1; i >= 0; i-- {
		s := segments[i]
		c.at = fmt.Sprintf("segments[%d]", i)
		if n := ones(s.ActionMask); s.NAction != n {
			c.say("n_action", "is %d, action_mask has %d ones", s.NAction, n)
		}
		if s.NAfter != after {
			c.say("n_after", "is %d, the segments after it have %d sampled tokens", s.NAfter, after)
		}
		after += ones(s.ActionMask)
	}
}

// trainedOnce checks that no sampled token trains twice. Turns that name their model call are told
// apart by it; others by all the tokens before them, which two samples share only by being one.
func (c *segChecker) trainedOnce(segments []*Segment) {
	calls, prefixes := map[int]string{}, map[[sha256.Size]byte]string{}
	for i, s := range segments {
		c.at = fmt.Sprintf("segments[%d]", i)
		h := sha256.New()
		done := 0
		for j, t := range s.Turns {
			if ones(s.LossMask[t.Start:t.End]) == 0 {
				continue
			}
			at := fmt.Sprintf("turns[%d]", j)
			if t.ModelCall > 0 {
				if before, twice := calls[t.ModelCall]; twice {
					c.say(at, "trains model call %d, which %s trains", t.ModelCall, before)
				}
				calls[t.ModelCall] = c.at + "." + at
				continue
			}
			var buf [4]byte
			for ; done < t.End; done++ {
				binary.LittleEndian.PutUint32(buf[:], uint32(s.Tokens[done]))
				h.Write(buf[:])
				if done < t.Start || s.LossMask[done] == 0 {
					continue
				}
				var sum [sha256.Size]byte
				h.Sum(sum[:0])
				if before, twice := prefixes[sum]; twice {
					c.say(at, "trains token %d, which %s trains after the same tokens: set loss_mask to 0 in one, or name the model calls", done, before)
					return
				}
				prefixes[sum] = c.at + "." + at
			}
		}
	}
}
