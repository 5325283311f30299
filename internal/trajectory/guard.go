package trajectory

import (
	"encoding/json"
	"strings"
	"time"
)

// ToolRecord is what joining needs of a tool call's record.
type ToolRecord struct {
	Ordinal    int
	CallID     string
	ArgsSHA256 string
	Name       string
	Arguments  json.RawMessage
	Decision   string // allow, flag, block
	Action     string // executed, filtered, decoyed
	Class      string
	Rule       string // of the first hit, "" for none
	Hack       bool
	Tainted    bool
	Hits       int
	Output     string // shown
	Shown      bool   // there is an observation
	DecoySHA   string
	ExitCode   *int
	StartedAt  time.Time
	DurationMS int64
	Agent      bool // the agent's, not the harness's
}

// GuardSpan joins one verdict to the turn that made the call and to its tokens.
type GuardSpan struct {
	Ordinal    int    `json:"ordinal"`
	CallID     string `json:"tool_call_id"`
	ArgsSHA256 string `json:"args_sha256"`
	Decision   string `json:"decision"`
	Action     string `json:"action"`
	Class      string `json:"class,omitempty"`
	Rule       string `json:"rule,omitempty"`
	Hack       bool   `json:"hack"`
	Tainted    bool   `json:"tainted"`
	// Joined says how the turn was found: call_id, arguments, text; "" where it was not.
	Joined    string `json:"joined"`
	ModelCall int    `json:"model_call,omitempty"`
	Segment   string `json:"segment,omitempty"`
	Turn      int    `json:"turn"` // index in the segment; -1 where it was not found
	Start     int    `json:"start"`
	End       int    `json:"end"` // the turn's sampled tokens
	// ObsStart and ObsEnd are the tokens between this turn and the next: the observations of all
	// its calls with what the template puts around them. Equal where there is no next turn.
	ObsStart int `json:"obs_start"`
	ObsEnd   int `json:"obs_end"`
}

// Spans joins the verdicts on the agent's calls that were not plainly allowed to the segments, and
// sets their BlockedTurns. calls are those that the segments were built from; nil for uploaded
// segments, whose turns name the ids of their tool calls.
func Spans(segments []*Segment, calls []*ModelCall, records []ToolRecord) []GuardSpan {
	j := newJoiner(segments, calls)
	for _, s := range segments {
		s.BlockedTurns = []int{}
	}
	spans := []GuardSpan{}
	for _, r := range records {
		if !r.Agent {
			continue
		}
		at, how := j.find(r) // also of allowed calls, whose ids are used up by it
		if r.Decision == "allow" && r.Hits == 0 {
			continue
		}
		span := GuardSpan{
			Ordinal: r.Ordinal, CallID: r.CallID, ArgsSHA256: r.ArgsSHA256, Decision: r.Decision, Action: r.Action, Class: r.Class,
			Rule: r.Rule, Hack: r.Hack, Tainted: r.Tainted, Turn: -1,
		}
		if at != nil {
			span.place(at, how)
			if r.Decision == "block" {
				at.block()
			}
		}
		spans = append(spans, span)
	}
	return spans
}

// Place is the turn that made a tool call.
type Place struct {
	Segment int // order
	Kind    string
	Turn    int // index in the segment
}

// Places finds the turn of each of the agent's calls, by the call's ordinal; those that are not found are left
// out. Arguments are those of Spans; nothing is changed.
func Places(segments []*Segment, calls []*ModelCall, records []ToolRecord) map[int]Place {
	j := newJoiner(segments, calls)
	places := map[int]Place{}
	for _, r := range records {
		if !r.Agent {
			continue
		}
		if at, _ := j.find(r); at != nil {
			places[r.Ordinal] = Place{at.seg.Order, at.seg.Kind, at.turn}
		}
	}
	return places
}

// site is a turn that made tool calls.
type site struct {
	seg   *Segment
	turn  int
	calls []ToolCall
	used  []bool
	text  string
}

func (p *site) block() {
	for _, t := range p.seg.BlockedTurns {
		if t == p.turn {
			return
		}
	}
	p.seg.BlockedTurns = append(p.seg.BlockedTurns, p.turn)
}

func (g *GuardSpan) place(at *site, how string) {
	t := at.seg.Turns[at.turn]
	g.Joined, g.ModelCall, g.Segment, g.Turn, g.Start, g.End = how, t.ModelCall, at.seg.ID, at.turn, t.Start, t.End
	g.ObsStart, g.ObsEnd = t.End, t.End
	if at.turn+1 < len(at.seg.Turns) {
		g.ObsEnd = at.seg.Turns[at.turn+1].Start
	}
}

type joiner struct {
	sites []*site // by model call, then by segment order
}

func newJoiner(segments []*Segment, calls []*ModelCall) *joiner {
	outputs := map[int]Message{}
	for _, c := range calls {
		if m, err := c.Said(); err == nil {
			outputs[c.Ordinal] = m
		}
	}
	j := &joiner{}
	for _, s := range segments {
		for i, t := range s.Turns {
			if t.Superseded {
				continue
			}
			p := &site{seg: s, turn: i}
			if m, ok := outputs[t.ModelCall]; ok && calls != nil {
				p.calls, p.text = m.ToolCalls, m.Content
			} else {
				for _, id := range t.ToolCalls {
					p.calls = append(p.calls, ToolCall{ID: id})
				}
			}
			p.used = make([]bool, len(p.calls))
			j.sites = append(j.sites, p)
		}
	}
	return j
}

// find gives the turn that made a call: by its id, the first that is not used up; else by name and
// arguments; else by the command standing in the turn's text, for agents without tool calls.
func (j *joiner) find(r ToolRecord) (*site, string) {
	if r.CallID != "" {
		for _, p := range j.sites {
			for i, c := range p.calls {
				if !p.used[i] && c.ID == r.CallID {
					p.used[i] = true
					return p, "call_id"
				}
			}
		}
	}
	args := string(canonical(r.Arguments))
	for _, p := range j.sites {
		for i, c := range p.calls {
			if !p.used[i] && c.Name == r.Name && c.Arguments != "" && string(canonical(json.RawMessage(c.Arguments))) == args {
				p.used[i] = true
				return p, "arguments"
			}
		}
	}
	var a struct {
		Command string `json:"command"`
	}
	if json.Unmarshal(r.Arguments, &a) != nil || len(strings.TrimSpace(a.Command)) < 2 {
		return nil, ""
	}
	for i, p := range j.sites {
		if len(p.calls) == 0 && strings.Contains(p.text, strings.TrimSpace(a.Command)) {
			p.text = "" // one call a turn, and no later call goes back before it
			for _, q := range j.sites[:i] {
				if len(q.calls) == 0 {
					q.text = ""
				}
			}
			return p, "text"
		}
	}
	return nil, ""
}
