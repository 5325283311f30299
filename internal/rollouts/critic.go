package rollouts

import (
	"context"
	"fmt"
	"time"

	"proctor/internal/critic"
	"proctor/internal/store"
	"proctor/internal/trajectory"
	"proctor/monitor"
	"proctor/tasks"
)

// PolicyStats is how a policy does, by family of tasks.
type PolicyStats struct {
	Policy   string          `json:"policy"`
	SizeB    float64         `json:"size_b"`
	Momentum float64         `json:"momentum"`
	Families []critic.Family `json:"families"`
}

// ValuesRequest asks a critic about the states of a rollout; the body of POST .../values.
type ValuesRequest struct {
	BaseURL     string   `json:"base_url"` // of an OpenAI-compatible server, with /v1
	Model       string   `json:"model"`
	APIKey      string   `json:"api_key,omitempty"`
	Kinds       []string `json:"kinds,omitempty"`      // turn, segment, verdict; default all
	MaxStates   int      `json:"max_states,omitempty"` // 1 to 1000, default 256: the first ones are asked
	MaxTokens   int      `json:"max_tokens,omitempty"` // of one answer, default 1024
	TimeoutS    int      `json:"timeout_s,omitempty"`  // of one question, default 120
	Temperature float32  `json:"temperature,omitempty"`
}

// RolloutValues is a critic's word on a rollout.
type RolloutValues struct {
	RolloutID    string              `json:"rollout_id"`
	Conditioning critic.Conditioning `json:"conditioning"`
	States       int                 `json:"states"` // that the rollout has, asked or not
	Parsed       int                 `json:"parsed"`
	Unparsed     int                 `json:"unparsed"` // answers without a number in the form asked for
	Failed       int                 `json:"failed"`   // questions that got no answer
	Values       []critic.Value      `json:"values"`
}

const (
	defaultStates = 256
	maxStates     = 1000
)

// PolicyStats gives the moving averages of success of the policy of that name. A policy that nobody ran
// has no families.
func (m *Manager) PolicyStats(ctx context.Context, name string) (PolicyStats, error) {
	out := PolicyStats{Policy: name, Momentum: critic.Momentum}
	views, err := m.ofPolicy(ctx, name)
	if err != nil {
		return out, err
	}
	out.Families = critic.Families(m.outcomes(views, time.Time{}))
	for _, v := range views {
		if v.Policy.SizeB > 0 { // newest first
			out.SizeB = v.Policy.SizeB
			break
		}
	}
	return out, nil
}

// Values asks a critic about the states of a rollout, each from what came before it, under the policy's
// success before this rollout began. What the critic says is given, not recorded.
func (m *Manager) Values(ctx context.Context, id string, req ValuesRequest) (RolloutValues, error) {
	out := RolloutValues{RolloutID: id, Values: []critic.Value{}}
	if err := req.check(); err != nil {
		return out, err
	}
	read, err := m.states(ctx, id, req.Kinds)
	if err != nil {
		return out, err
	}
	states, cond := read.states, read.cond
	out.Conditioning, out.States = cond, len(states)
	states = states[:min(len(states), req.MaxStates)]
	client := critic.Client{BaseURL: req.BaseURL, Model: req.Model, APIKey: req.APIKey, MaxTokens: req.MaxTokens,
		Temperature: req.Temperature, Timeout: time.Duration(req.TimeoutS) * time.Second}
	if out.Values, err = client.Ask(ctx, states, cond); err != nil {
		return out, asError(CodeInterrupted, "the critic was not asked to the end", err)
	}
	for _, v := range out.Values {
		switch {
		case v.Value != nil:
			out.Parsed++
		case v.Error != "":
			out.Failed++
		default:
			out.Unparsed++
		}
	}
	return out, nil
}

// CriticPairs gives what a critic trains on: each state of a graded rollout with the rollout's reward as
// its return. A rollout without a reward has no pairs, and is refused. Of a fork, the state behind its first own
// call is there once more, named by the fork: continuations of one state are ranked among each other by it.
func (m *Manager) CriticPairs(ctx context.Context, id string, kinds []string) ([]critic.Pair, error) {
	if err := checkKinds(kinds); err != nil {
		return nil, err
	}
	read, err := m.states(ctx, id, kinds)
	if err != nil {
		return nil, err
	}
	view := read.view
	if view.Reward == nil {
		return nil, refuse(CodeInvalidField, "rollout %s has no reward (status %s, failure class %s), so its states have no return; grade it first",
			id, view.Status, view.FailureClass)
	}
	return append(critic.PairsOf(read.states, read.cond, *view.Reward), read.continuation()...), nil
}

// continuation gives the pair that a fork is ranked by; none of a rollout that is no fork, or made no call of
// its own.
func (r *criticRead) continuation() []critic.Pair {
	f := r.view.Fork
	if f == nil {
		return nil
	}
	for i, s := range r.steps {
		if s.Ordinal > f.Ordinal {
			pairs := critic.PairsOf([]critic.State{critic.After(r.instruction, r.steps[:i+1])}, r.cond, *r.view.Reward)
			pairs[0].Fork = fmt.Sprintf("%s@%d", f.RolloutID, f.Ordinal)
			return pairs
		}
	}
	return nil
}

func (r *ValuesRequest) check() error {
	if r.MaxStates == 0 {
		r.MaxStates = defaultStates
	}
	switch {
	case r.BaseURL == "":
		return refuse(CodeInvalidField, "field base_url: missing; name the critic's server, as in http://127.0.0.1:8000/v1")
	case r.Model == "":
		return refuse(CodeInvalidField, "field model: missing; name the critic's model")
	case r.MaxStates < 1 || r.MaxStates > maxStates:
		return refuse(CodeInvalidField, "field max_states: %d, want 1 to %d", r.MaxStates, maxStates)
	case r.TimeoutS < 0 || r.TimeoutS > 3600:
		return refuse(CodeInvalidField, "field timeout_s: %d, want 0 to 3600", r.TimeoutS)
	case r.MaxTokens < 0:
		return refuse(CodeInvalidField, "field max_tokens: %d, want a positive number", r.MaxTokens)
	}
	return checkKinds(r.Kinds)
}

func checkKinds(kinds []string) error {
	for _, k := range kinds {
		if k != critic.KindTurn && k != critic.KindSegment && k != critic.KindVerdict {
			return refuse(CodeInvalidField, "field kinds: %.40q is none; turn, segment or verdict", k)
		}
	}
	return nil
}

// criticRead is a rollout as a critic reads it.
type criticRead struct {
	view        View
	instruction string
	steps       []critic.Step
	states      []critic.State
	cond        critic.Conditioning
}

// states gives the states of a rollout and what a critic is told beside them.
func (m *Manager) states(ctx context.Context, id string, kinds []string) (*criticRead, error) {
	row, err := m.opt.Store.RolloutByID(ctx, id)
	if err != nil {
		return nil, storeError("read the rollout", err)
	}
	d, err := readDocument(row)
	if err != nil {
		return nil, asError(CodeStore, "the rollout's document is damaged", err)
	}
	t, err := m.trajectory(ctx, id, false)
	if err != nil {
		return nil, err
	}
	r := &criticRead{view: t.Rollout, steps: t.steps()}
	if r.cond, err = m.conditioning(ctx, r.view, d.Task); err != nil {
		return nil, err
	}
	if d.Task != nil {
		r.instruction = d.Task.Instruction
	}
	r.states = critic.States(r.instruction, r.steps, kinds)
	return r, nil
}

// steps gives the agent's answered calls as a critic reads them. A call whose turn is not known is of the segment
// of the one before it: without the gateway, all are of one.
func (t *Trajectory) steps() []critic.Step {
	places := trajectory.Places(t.Segments, t.modelCalls, t.toolRecords())
	var steps []critic.Step
	segment := 0
	for _, r := range t.Calls {
		if r.Principal != monitor.Agent || r.Observation == nil {
			continue
		}
		if at, ok := places[r.Ordinal]; ok {
			segment = at.Segment
		}
		steps = append(steps, critic.Step{Ordinal: r.Ordinal, Name: r.Name, Arguments: r.Arguments, Segment: segment,
			Shown: r.Observation.Output, ExitCode: r.Observation.ExitCode, Marked: r.Verdict.Decision != monitor.Allow})
	}
	return steps
}

// conditioning looks only at what was graded before the rollout began: a critic that is told of later
// success is told the answer.
func (m *Manager) conditioning(ctx context.Context, v View, task *tasks.Task) (critic.Conditioning, error) {
	c := critic.Conditioning{Policy: v.Policy.Name, SizeB: v.Policy.SizeB, Family: familyOf(v, task)}
	views, err := m.ofPolicy(ctx, v.Policy.Name)
	if err != nil {
		return c, err
	}
	for _, f := range critic.Families(m.outcomes(views, v.CreatedAt)) {
		if f.Family == c.Family {
			c.Success = &f.Success
		}
	}
	return c, nil
}

func (m *Manager) ofPolicy(ctx context.Context, name string) ([]View, error) {
	if name == "" {
		return nil, nil
	}
	rows, err := m.opt.Store.Rollouts(ctx, store.Filter{Policy: name})
	if err != nil {
		return nil, storeError("list the policy's rollouts", err)
	}
	views := make([]View, 0, len(rows))
	for _, row := range rows {
		v, err := m.viewOf(ctx, row)
		if err != nil {
			return nil, err
		}
		views = append(views, v)
	}
	return views, nil
}

// outcomes gives what is known of graded rollouts that ended before a time; the zero time is no bound.
func (m *Manager) outcomes(views []View, before time.Time) []critic.Outcome {
	var out []critic.Outcome
	for _, v := range views {
		if v.Reward == nil || v.EndedAt == nil || (!before.IsZero() && !v.EndedAt.Before(before)) {
			continue
		}
		group := ""
		if v.GroupID != nil {
			group = *v.GroupID
		}
		out = append(out, critic.Outcome{Family: familyOf(v, m.tasks[v.TaskID]), Group: group, ID: v.ID, Reward: *v.Reward, EndedAt: *v.EndedAt})
	}
	return out
}

// familyOf names the kind of task: metadata.task_family where the trainer set it, else the repository that
// the task is about, else the task.
func familyOf(v View, task *tasks.Task) string {
	if s, ok := v.Metadata["task_family"].(string); ok && s != "" {
		return s
	}
	if task != nil {
		if repo := task.Vars.UpstreamRepo; repo != "" {
			return repo
		}
	}
	return v.TaskID
}
