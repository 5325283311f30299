// Package export writes rollouts in the forms that trainers and evaluators read. docs/exports.md
// describes each form.
//
// Every document carries a stamp (Stamp) in the place that its form leaves for such things: the
// schema's name and version, the rollout, the segment, and the guard's spans with what the agent was
// shown, byte for byte. Check reads documents back by it.
//
// A form of tokens takes only what the policy's server told in tokens. Where it told text alone the
// rollout is refused with the reason: a tokenizer of ours could not know what was sampled.
package export

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"proctor/internal/trajectory"
)

// Forms.
const (
	ATIF      = "atif"      // Agent Trajectory Interchange Format, a document a segment
	OpenAI    = "openai"    // chat messages, a line a segment
	SWEAgent  = "swe-agent" // .traj, a document a rollout
	SWEBench  = "swe-bench" // predictions, a line a rollout
	Slime     = "slime"     // Sample, a line a segment
	Verl      = "verl"      // AgentLoopOutput, a line or parquet row a segment
	Verifiers = "verifiers" // Trace, a line a rollout
	Inspect   = "inspect"   // EvalLog version 2, a document a rollout
)

// Forms lists the forms.
func Forms() []string {
	return []string{ATIF, OpenAI, SWEAgent, SWEBench, Slime, Verl, Verifiers, Inspect}
}

// Lines says whether a form's documents lie one a line in one file; else each is a file of its own.
func Lines(form string) bool { return form != ATIF && form != SWEAgent && form != Inspect }

// Tokens says whether a form is made of tokens.
func Tokens(form string) bool { return form == Slime || form == Verl }

// Errors that callers branch on, wrapped with the reason.
var (
	// ErrNoTokens says that a form of tokens cannot be made of the rollout.
	ErrNoTokens = errors.New("no tokens to export")
	// ErrNoPatch says that predictions cannot be made of the rollout.
	ErrNoPatch = errors.New("no patch to export")
	// ErrRejected says that the policy for blocked calls leaves the rollout out.
	ErrRejected = errors.New("the rollout has a blocked call and is left out")
)

// Rollout is what is exported.
type Rollout struct {
	ID, TaskID, GroupID string
	Instruction         string
	PolicyName          string
	PolicyVersion       string
	Model               string
	Status              string
	StopReason          string
	FailureClass        string
	Outcome             string
	Reward              *float64
	Seed                int64
	Metadata            map[string]any
	Digests             map[string]string
	CreatedAt           time.Time
	EndedAt             *time.Time

	Tools      json.RawMessage // as OpenAI takes them
	Calls      []trajectory.ToolRecord
	Segments   []*trajectory.Segment
	ModelCalls []*trajectory.ModelCall // their messages compact, as package records gives them
	Guard      []trajectory.GuardSpan
	Patch      []byte // nil: there is none
}

// Document is one exported document.
type Document struct {
	Name string // of its file, where it is one
	Body []byte // JSON without a line feed
}

// Write gives the documents of a rollout in a form under a policy for blocked calls. Errors:
// ErrNoTokens, ErrNoPatch, ErrRejected, each with the reason.
func Write(form string, r *Rollout, blocked trajectory.BlockPolicy, each func(Document) error) error {
	segments, ok := blocked.Apply(r.Segments, r.Guard)
	if !ok {
		return fmt.Errorf("rollout %s: %w", r.ID, ErrRejected)
	}
	applied := *r
	applied.Segments = segments
	w := &writer{Rollout: &applied, form: form, blocked: blocked, byCall: map[int]*trajectory.ModelCall{}}
	for _, c := range r.ModelCalls {
		w.byCall[c.Ordinal] = c
	}
	if Tokens(form) {
		if err := w.needTokens(); err != nil {
			return err
		}
	}
	write, ok := map[string]func(func(Document) error) error{
		ATIF: w.atif, OpenAI: w.openai, SWEAgent: w.sweAgent, SWEBench: w.sweBench,
		Slime: w.slime, Verl: w.verl, Verifiers: w.verifiers, Inspect: w.inspect,
	}[form]
	if !ok {
		return fmt.Errorf("form %.40q is none of %v", form, Forms())
	}
	return write(each)
}

// writer writes one rollout.
type writer struct {
	*Rollout
	form    string
	blocked trajectory.BlockPolicy
	byCall  map[int]*trajectory.ModelCall
}

func (w *writer) needTokens() error {
	if len(w.Segments) == 0 {
		return fmt.Errorf("rollout %s: %w: it used neither the model gateway nor an upload of segments", w.ID, ErrNoTokens)
	}
	for _, s := range w.Segments {
		if !s.HasTokens() {
			return fmt.Errorf("rollout %s: %w: segment %s is text only: %s", w.ID, ErrNoTokens, s.ID, s.TextOnly)
		}
	}
	return nil
}

// Stamp is what every document says of itself.
type Stamp struct {
	Schema       string                   `json:"schema"` // proctor.export.FORM/VERSION
	RolloutID    string                   `json:"rollout_id"`
	TaskID       string                   `json:"task_id"`
	GroupID      string                   `json:"group_id,omitempty"`
	Seed         int64                    `json:"seed"`
	Segment      string                   `json:"segment,omitempty"`
	Order        int                      `json:"order"`
	Segments     int                      `json:"segments"` // of the rollout
	Kind         string                   `json:"kind,omitempty"`
	Cause        string                   `json:"cause,omitempty"`
	Parent       *string                  `json:"parent,omitempty"`
	NAction      int                      `json:"n_action"`
	NAfter       int                      `json:"n_after"`
	Turns        []trajectory.Turn        `json:"turns,omitempty"`
	BlockedTurns []int                    `json:"blocked_turns,omitempty"`
	Rewards      []trajectory.RewardEvent `json:"rewards,omitempty"`
	Reward       *float64                 `json:"reward"`
	FailureClass string                   `json:"failure_class"`
	StopReason   string                   `json:"stop_reason"`
	Blocked      string                   `json:"blocked"` // the policy that this was written under
	Policy       map[string]string        `json:"policy"`
	Digests      map[string]string        `json:"digests,omitempty"`
	Guard        []Guard                  `json:"guard"`
}

// Guard is a guard's span with what the agent was shown.
type Guard struct {
	trajectory.GuardSpan
	Observation *string `json:"observation"` // null where the call has none
}

// schema gives the name of a form's schema.
func schema(form string) string { return "proctor.export." + form + "/" + versionOf(form) }

// versionOf gives the version of a form's schema. Version 1 of verifiers was rows of results, which
// verifiers gave up.
func versionOf(form string) string {
	if form == Verifiers {
		return "2"
	}
	return "1"
}

// stamp gives the stamp of a document; s is nil for those of a whole rollout.
func (w *writer) stamp(s *trajectory.Segment) Stamp {
	st := Stamp{
		Schema: schema(w.form), RolloutID: w.ID, TaskID: w.TaskID, GroupID: w.GroupID, Seed: w.Seed, Segments: len(w.Segments), Reward: w.Reward,
		FailureClass: w.FailureClass, StopReason: w.StopReason, Blocked: w.blocked.String(),
		Policy: map[string]string{"name": w.PolicyName, "version": w.PolicyVersion}, Digests: w.Digests, Guard: []Guard{},
	}
	if s != nil {
		st.Segment, st.Order, st.Kind, st.Cause, st.Parent = s.ID, s.Order, s.Kind, s.Cause, s.Parent
		st.NAction, st.NAfter, st.Turns, st.BlockedTurns, st.Rewards = s.NAction, s.NAfter, s.Turns, s.BlockedTurns, s.Rewards
	}
	shown := map[int]*string{}
	for i := range w.Calls {
		if c := &w.Calls[i]; c.Shown {
			shown[c.Ordinal] = &c.Output
		}
	}
	for _, g := range w.Guard {
		// A verdict whose turn was not found is told with the first segment: it is the rollout's.
		if s == nil || g.Segment == s.ID || g.Segment == "" && s.Order == 0 {
			st.Guard = append(st.Guard, Guard{g, shown[g.Ordinal]})
		}
	}
	return st
}

// chat gives the messages of a segment as the policy saw and said them, and for each whether it is one
// of the segment's own turns: 0 for not, else 1 + the turn's index.
func (w *writer) chat(s *trajectory.Segment) (messages []json.RawMessage, turns []int) {
	if s == nil || len(w.ModelCalls) == 0 {
		messages = w.played()
		return messages, make([]int, len(messages))
	}
	last := w.byCall[s.Turns[len(s.Turns)-1].ModelCall]
	messages = append(slices.Clone(last.Messages), last.Output)
	turns = make([]int, len(messages))
	for i, t := range s.Turns {
		if c := w.byCall[t.ModelCall]; c != nil && len(c.Messages) < len(messages) {
			turns[len(c.Messages)] = 1 + i
		}
	}
	return messages, turns
}

// played gives the messages of a rollout of which only the tool calls are known.
func (w *writer) played() []json.RawMessage {
	list := []json.RawMessage{enc(map[string]string{"role": "user", "content": w.Instruction})}
	for _, c := range w.Calls {
		if !c.Agent {
			continue
		}
		id := callName(c)
		list = append(list, enc(map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{"id": id, "type": "function",
			"function": map[string]string{"name": c.Name, "arguments": string(c.Arguments)}}}}),
			enc(map[string]string{"role": "tool", "tool_call_id": id, "content": c.Output}))
	}
	return list
}

// callName names a call where the agent gave it no name.
func callName(c trajectory.ToolRecord) string {
	if c.CallID != "" {
		return c.CallID
	}
	return fmt.Sprintf("call_%d", c.Ordinal)
}

// tools gives the tools that the policy was offered.
func (w *writer) tools() json.RawMessage {
	for _, c := range w.ModelCalls {
		if len(c.Tools) > 0 && c.Kind == trajectory.KindAction {
			return c.Tools
		}
	}
	return w.Tools
}

// own gives the segments of the agent itself, which a document of the whole rollout tells in a row.
func (w *writer) own() []*trajectory.Segment {
	var list []*trajectory.Segment
	for _, s := range w.Segments {
		if s.Kind == trajectory.KindAction || s.Kind == trajectory.KindSummary {
			list = append(list, s)
		}
	}
	return list
}

// enc encodes what always encodes: text, numbers, and JSON that was read before.
func enc(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return raw
}

// NameOf gives the file name of a document that lies one a line.
func NameOf(form, rollout string, body []byte) string {
	var d document
	name := rollout
	if json.Unmarshal(body, &d) == nil {
		if st, _ := d.stamp(); st != nil && st.Segment != "" {
			name += "." + st.Segment
		}
	}
	if form == SWEAgent {
		return name + ".traj"
	}
	return name + ".json"
}
