package export

import (
	"encoding/json"
	"time"

	"proctor/internal/trajectory"
)

// atifVersion is the version of the Agent Trajectory Interchange Format that is written.
const atifVersion = "ATIF-v1.7"

// atif writes a document a segment: those of a rollout share its session, and each names the one that
// goes on from it after a compaction.
func (w *writer) atif(each func(Document) error) error {
	if len(w.Segments) == 0 || len(w.ModelCalls) == 0 {
		return w.atifDocument(each, nil, nil)
	}
	for i, s := range w.Segments {
		var next *trajectory.Segment
		for _, n := range w.Segments[i+1:] {
			if n.Parent != nil && *n.Parent == s.ID && n.Cause == trajectory.CauseCompaction {
				next = n
				break
			}
		}
		if err := w.atifDocument(each, s, next); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) atifName(s *trajectory.Segment) string {
	if s == nil {
		return w.ID + ".json"
	}
	return w.ID + "." + s.ID + ".json"
}

func (w *writer) atifDocument(each func(Document) error, s, next *trajectory.Segment) error {
	steps := w.atifSteps(s)
	for i := range steps {
		steps[i]["step_id"] = i + 1
	}
	agent := map[string]any{"name": w.name(), "version": orUnknown(w.PolicyVersion), "model_name": orUnknown(w.Model)}
	if t := w.tools(); t != nil {
		agent["tool_definitions"] = t
	}
	var l line
	l.value("schema_version", atifVersion).value("session_id", w.ID).value("agent", agent).value("steps", steps)
	if next != nil {
		l.value("continued_trajectory_ref", w.atifName(next))
	}
	l.value("final_metrics", w.atifTotals(s, len(steps)))
	l.object("extra", func(m *line) { m.value("proctor", w.stamp(s)) })
	return emit(each, w.atifName(s), &l)
}

func orUnknown(text string) string {
	if text == "" {
		return "unknown"
	}
	return text
}

func (w *writer) atifTotals(s *trajectory.Segment, steps int) map[string]any {
	prompt, output := 0, 0
	for _, c := range w.ModelCalls {
		if c.Usage != nil && s != nil && holds(s, c.Ordinal) {
			prompt, output = prompt+c.Usage.Prompt, output+c.Usage.Output
		}
	}
	return map[string]any{"total_prompt_tokens": prompt, "total_completion_tokens": output, "total_steps": steps}
}

func holds(s *trajectory.Segment, call int) bool {
	for _, t := range s.Turns {
		if t.ModelCall == call {
			return true
		}
	}
	return false
}

// atifSteps gives the messages of a segment as steps; the results of tools are the observation of the
// step that called them.
func (w *writer) atifSteps(s *trajectory.Segment) []map[string]any {
	messages, turns := w.chat(s)
	var steps []map[string]any
	var agent map[string]any
	for i, raw := range messages {
		m, err := trajectory.ParseMessage(raw)
		if err != nil {
			continue
		}
		if m.Role == "tool" && agent != nil {
			o, _ := agent["observation"].(map[string]any)
			if o == nil {
				o = map[string]any{"results": []any{}}
				agent["observation"] = o
			}
			o["results"] = append(o["results"].([]any), map[string]any{"source_call_id": m.ToolCallID, "content": m.Content})
			continue
		}
		step := map[string]any{"source": atifSource(m.Role), "message": m.Content, "timestamp": stampTime(w.CreatedAt)}
		if m.Role == "assistant" {
			w.atifAgent(step, m, s, turns[i])
			agent = step
		}
		steps = append(steps, step)
	}
	return steps
}

func atifSource(role string) string {
	switch role {
	case "assistant":
		return "agent"
	case "system", "developer":
		return "system"
	}
	return "user"
}

// atifAgent fills a step of the agent's; turn is 1 + the index of the segment's turn that it is, or 0.
func (w *writer) atifAgent(step map[string]any, m trajectory.Message, s *trajectory.Segment, turn int) {
	if m.Reasoning != "" {
		step["reasoning_content"] = m.Reasoning
	}
	calls := []any{}
	for _, t := range m.ToolCalls {
		var args map[string]json.RawMessage
		if json.Unmarshal([]byte(t.Arguments), &args) != nil || args == nil {
			args = map[string]json.RawMessage{"_text": enc(t.Arguments)}
		}
		calls = append(calls, map[string]any{"tool_call_id": t.ID, "function_name": t.Name, "arguments": args})
	}
	if len(calls) > 0 {
		step["tool_calls"] = calls
	}
	if s == nil || turn == 0 {
		return
	}
	t := s.Turns[turn-1]
	c := w.byCall[t.ModelCall]
	step["timestamp"], step["model_name"] = stampTime(c.StartedAt.Add(time.Duration(c.DurationMS)*time.Millisecond)), orUnknown(c.Model)
	metrics := map[string]any{"extra": map[string]any{"segment": s.ID, "turn": turn - 1, "weight_version_start": t.VersionStart, "weight_version_end": t.VersionEnd}}
	if s.HasTokens() {
		metrics["prompt_token_ids"], metrics["completion_token_ids"], metrics["logprobs"] = c.PromptIDs, c.OutputIDs, c.Logprobs
		metrics["prompt_tokens"], metrics["completion_tokens"] = len(c.PromptIDs), len(c.OutputIDs)
	}
	step["metrics"] = metrics
}
