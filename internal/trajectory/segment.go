package trajectory

import (
	"encoding/json"
)

// Causes of a segment: why it does not go on from the one before.
const (
	CauseRoot       = "root"       // the first
	CauseCompaction = "compaction" // the history was shortened
	CauseSubagent   = "subagent"   // another conversation
	CauseRewrite    = "rewrite"    // an earlier message was edited
	CauseDrift      = "drift"      // the same messages, but the server made other tokens of them
	CauseRetry      = "retry"      // the same prompt was sampled again
)

// Causes lists the causes, for checks.
func Causes() []string {
	return []string{CauseRoot, CauseCompaction, CauseSubagent, CauseRewrite, CauseDrift, CauseRetry}
}

// Segment is a run of model calls in which each prompt extends the one before token by token. Its
// four arrays have one entry a token: tokens, logprobs, action_mask, loss_mask.
type Segment struct {
	ID     string  `json:"id"`
	Order  int     `json:"order"` // from 0, in the order in which segments began
	Kind   string  `json:"kind"`
	Cause  string  `json:"cause"`
	Parent *string `json:"parent"` // id of the segment that it left, null for a root

	Tokens []int32 `json:"tokens"`
	// Logprobs of sampled tokens; 0 elsewhere.
	Logprobs []float64 `json:"logprobs"`
	// ActionMask is 1 where the policy sampled the token in this segment.
	ActionMask []int8 `json:"action_mask"`
	// LossMask is 1 where the token may train: at most ActionMask. It is 0 for sampled tokens that
	// the agent never acted on (cut off, sampled again) and for aux calls.
	LossMask []int8 `json:"loss_mask"`

	Turns   []Turn `json:"turns"`
	NAction int    `json:"n_action"` // ones in ActionMask
	NAfter  int    `json:"n_after"`  // NAction of all segments with a higher order
	// Versions are the weight versions that sampled it, in order, without repeats.
	Versions []string `json:"versions"`
	// TextOnly says why the arrays are empty, "" where they are not.
	TextOnly string `json:"text_only,omitempty"`

	// BlockedTurns are the indexes of turns with a blocked call.
	BlockedTurns []int `json:"blocked_turns"`
	// Rewards are events at single tokens: those of the export policy penalty, or a trainer's own.
	Rewards []RewardEvent `json:"rewards,omitempty"`
}

// Turn is one model call's place in a segment: its sampled tokens are [Start, End).
type Turn struct {
	Index        int      `json:"index"`
	ModelCall    int      `json:"model_call"` // ordinal; 0 where unknown
	Kind         string   `json:"kind"`
	Start        int      `json:"start"`
	End          int      `json:"end"`
	FinishReason string   `json:"finish_reason"`
	VersionStart string   `json:"weight_version_start,omitempty"`
	VersionEnd   string   `json:"weight_version_end,omitempty"`
	ToolCalls    []string `json:"tool_calls"` // ids
	// Superseded says that the agent never acted on it: its loss_mask is 0.
	Superseded bool `json:"superseded,omitempty"`
}

// RewardEvent is a reward at one token.
type RewardEvent struct {
	Index   int     `json:"index"`
	Value   float64 `json:"value"`
	Ordinal int     `json:"ordinal,omitempty"` // of the tool call that it is for
}

// HasTokens says whether the segment can be exported as tokens.
func (s *Segment) HasTokens() bool { return s.TextOnly == "" }

// count sets what follows from the other fields: NAction and Versions of each segment, NAfter over
// all. The segments are in order.
func count(segments []*Segment) {
	after := 0
	for i := len(segments) - 1; i >= 0; i-- {
		s := segments[i]
		s.NAction = ones(s.ActionMask)
		s.NAfter = after
		after += s.NAction
		s.Versions = versions(s.Turns)
	}
}

func ones(mask []int8) int {
	n := 0
	for _, bit := range mask {
		n += int(bit)
	}
	return n
}

func versions(turns []Turn) []string {
	list := []string{}
	for _, t := range turns {
		for _, v := range []string{t.VersionStart, t.VersionEnd} {
			if v != "" && (len(list) == 0 || list[len(list)-1] != v) {
				list = append(list, v)
			}
		}
	}
	return list
}

// clone gives a copy whose masks, rewards and turns can be changed.
func (s *Segment) clone() *Segment {
	c := *s
	c.LossMask = append([]int8{}, s.LossMask...)
	c.Rewards = append([]RewardEvent{}, s.Rewards...)
	return &c
}

// canonical gives JSON with sorted keys and without blanks; what is no JSON stays.
func canonical(raw json.RawMessage) []byte {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return raw
	}
	out, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return out
}

// Recount sets what follows from the arrays of segments that lie in order: n_action, n_after, versions.
func Recount(segments []*Segment) { count(segments) }

// Complete fills what an upload may leave out with what is meant by that: empty lists, turns' kinds
// and numbers, and one turn for each run of sampled tokens where no turn is named.
func Complete(s *Segment) {
	if s.Turns == nil {
		s.Turns = runs(s.ActionMask)
	}
	for i := range s.Turns {
		t := &s.Turns[i]
		if t.Kind == "" {
			t.Kind = s.Kind
		}
		if t.Index == 0 {
			t.Index = i
		}
		if t.ToolCalls == nil {
			t.ToolCalls = []string{}
		}
	}
	if s.BlockedTurns == nil {
		s.BlockedTurns = []int{}
	}
	if s.Versions == nil {
		s.Versions = []string{}
	}
	if s.Cause == "" && s.Order == 0 {
		s.Cause = CauseRoot
	}
	if s.Kind == "" {
		s.Kind = KindAction
		for i := range s.Turns {
			s.Turns[i].Kind = KindAction
		}
	}
}

// runs gives a turn for each run of ones.
func runs(mask []int8) []Turn {
	turns := []Turn{}
	for i, bit := range mask {
		switch {
		case bit != 1:
		case i == 0 || mask[i-1] != 1:
			turns = append(turns, Turn{Index: len(turns), Start: i, End: i + 1})
		default:
			turns[len(turns)-1].End = i + 1
		}
	}
	return turns
}

// CheckUpload is CheckSegments for an upload: n_action and n_after may be left out (0).
func CheckUpload(segments []*Segment) []*FieldError {
	after := 0
	for i := len(segments) - 1; i >= 0; i-- {
		if s := segments[i]; s != nil {
			n := ones(s.ActionMask)
			if s.NAction == 0 {
				s.NAction = n
			}
			if s.NAfter == 0 {
				s.NAfter = after
			}
			after += n
		}
	}
	return CheckSegments(segments)
}
