package rollouts

import (
	"context"
	"slices"

	"proctor/internal/gateway"
	"proctor/internal/trajectory"
)

// Segmenter gives the token-exact records of a rollout. *records.Service.
type Segmenter interface {
	Segments(ctx context.Context, rollout string) ([]*trajectory.Segment, []*trajectory.ModelCall, error)
}

// Model gives where a live rollout's model calls go, and renews its lease.
func (m *Manager) Model(ctx context.Context, id string) (gateway.Target, error) {
	r := m.find(id)
	if r == nil {
		_, _, err := m.recorded(ctx, id, callKey{}, "")
		return gateway.Target{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return gateway.Target{}, errEnded(&r.doc.View)
	}
	r.seen = m.opt.Clock()
	p := r.doc.View.Policy
	return gateway.Target{BaseURL: p.BaseURL, Model: p.Model, Dialect: p.Dialect, APIKey: r.doc.PolicyKey}, nil
}

// checkPolicy holds a policy's server against what the gateway takes.
func checkPolicy(p *Policy) error {
	if p.BaseURL != "" {
		if err := gateway.CheckBaseURL(p.BaseURL); err != nil {
			return refuse(CodeInvalidField, "field policy.base_url: %v", err)
		}
	}
	if !slices.Contains(gateway.Dialects(), p.Dialect) {
		return refuse(CodeInvalidField, "field policy.dialect: %.40q is none; use openai, vllm, sglang, llama.cpp or anthropic, or leave it out", p.Dialect)
	}
	return nil
}

// shown gives the policy as records tell it: without its key.
func (p Policy) shown() Policy {
	p.APIKey = ""
	return p
}

// ModelCallView is a model call in a trajectory: what is not in the segments.
type ModelCallView struct {
	Ordinal      int               `json:"ordinal"`
	Kind         string            `json:"kind"`
	Protocol     string            `json:"protocol"`
	FinishReason string            `json:"finish_reason"`
	Status       int               `json:"status"` // of the policy's server; 0: it did not answer
	Error        string            `json:"error,omitempty"`
	Disconnected bool              `json:"disconnected"`
	TextOnly     string            `json:"text_only,omitempty"`
	VersionStart string            `json:"weight_version_start"`
	VersionEnd   string            `json:"weight_version_end"`
	Usage        *trajectory.Usage `json:"usage"`
	StartedAt    string            `json:"started_at"`
	DurationMS   int64             `json:"duration_ms"`
}

// tokens fills a trajectory with its segments, its model calls and the guard's spans.
func (m *Manager) tokens(ctx context.Context, t *Trajectory) error {
	t.Segments, t.ModelCalls, t.Guard = []*trajectory.Segment{}, []ModelCallView{}, []trajectory.GuardSpan{}
	if m.opt.Records == nil {
		return nil
	}
	segments, calls, err := m.opt.Records.Segments(ctx, t.Rollout.ID)
	if err != nil {
		return asError(CodeStore, "the segments could not be read", err)
	}
	if segments != nil {
		t.Segments = segments
	}
	t.modelCalls = calls
	for _, c := range calls {
		t.ModelCalls = append(t.ModelCalls, ModelCallView{
			Ordinal: c.Ordinal, Kind: c.Kind, Protocol: c.Protocol, FinishReason: c.FinishReason, Status: c.Status, Error: c.Error, Disconnected: c.Disconnected,
			TextOnly: c.TextOnly, VersionStart: c.VersionStart, VersionEnd: c.VersionEnd, Usage: c.Usage,
			StartedAt: c.StartedAt.Format("2006-01-02T15:04:05.000Z07:00"), DurationMS: c.DurationMS,
		})
	}
	t.Guard = trajectory.Spans(t.Segments, calls, t.toolRecords())
	return nil
}

// toolRecords gives the tool calls as joining and exports take them.
func (t *Trajectory) toolRecords() []trajectory.ToolRecord {
	list := make([]trajectory.ToolRecord, len(t.Calls))
	for i, c := range t.Calls {
		r := trajectory.ToolRecord{
			Ordinal: c.Ordinal, CallID: c.CallID, ArgsSHA256: c.ArgsSHA256, Name: c.Name, Arguments: c.Arguments, Agent: c.Principal == "agent",
			Decision: c.Verdict.Decision, Action: c.Verdict.Action, Class: c.Verdict.Class, Hack: c.Verdict.Hack, Tainted: c.Verdict.Tainted,
			Hits: len(c.Verdict.Hits), StartedAt: c.StartedAt, DurationMS: c.DurationMS,
		}
		if len(c.Verdict.Hits) > 0 {
			r.Rule = c.Verdict.Hits[0].Rule
		}
		if c.Observation != nil {
			r.Shown, r.Output, r.ExitCode = true, c.Observation.Output, c.Observation.ExitCode
		}
		if c.Verdict.Decoy != nil {
			r.DecoySHA = c.Verdict.Decoy.SHA256
		}
		list[i] = r
	}
	return list
}
