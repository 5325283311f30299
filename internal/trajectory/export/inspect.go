package export

import (
	"encoding/json"
	"time"

	"proctor/internal/trajectory"
)

// inspect writes an evaluation log of one sample, version 2.
func (w *writer) inspect(each func(Document) error) error {
	ended := w.CreatedAt
	if w.EndedAt != nil {
		ended = *w.EndedAt
	}
	status := "success"
	if w.FailureClass == "infra" || w.FailureClass == "verifier" || w.FailureClass == "task" {
		status = "error"
	}
	model := "proctor/" + w.name()
	var l line
	l.value("version", 2).value("status", status)
	l.value("eval", map[string]any{
		"eval_id": w.ID, "run_id": w.uid(), "created": iso(w.CreatedAt), "task": "proctor/" + w.TaskID, "task_id": w.TaskID, "task_version": 0,
		"task_attribs": map[string]any{}, "task_args": map[string]any{}, "dataset": map[string]any{"name": w.TaskID, "samples": 1, "sample_ids": []string{w.ID}, "shuffled": false},
		"model": model, "model_args": map[string]any{}, "config": map[string]any{"epochs": 1}, "packages": map[string]any{}, "metadata": map[string]any{},
	})
	l.value("plan", map[string]any{"name": "plan", "steps": []any{}, "config": map[string]any{}})
	l.value("results", w.inspectResults())
	l.value("stats", map[string]any{"started_at": iso(w.CreatedAt), "completed_at": iso(ended), "model_usage": map[string]any{}})
	if status == "error" {
		l.value("error", map[string]any{"message": w.FailureClass + ": " + w.StopReason, "traceback": "", "traceback_ansi": ""})
	}
	l.value("samples", []any{w.inspectSample()})
	return emit(each, w.ID+".json", &l)
}

func iso(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05+00:00") }

func (w *writer) inspectResults() map[string]any {
	scores := []any{}
	if w.Reward != nil {
		scores = append(scores, map[string]any{"name": "reward", "scorer": "reward", "params": map[string]any{}, "metrics": map[string]any{
			"mean": map[string]any{"name": "mean", "value": *w.Reward, "params": map[string]any{}}}})
	}
	return map[string]any{"total_samples": 1, "completed_samples": 1, "scores": scores}
}

func (w *writer) inspectSample() map[string]any {
	var whole *trajectory.Segment
	if own := w.own(); len(own) > 0 {
		whole = own[len(own)-1]
	}
	raw, _ := w.chat(whole)
	messages := make([]any, 0, len(raw))
	last := map[string]any{"role": "assistant", "content": "", "source": "generate"}
	for _, r := range raw {
		m, err := trajectory.ParseMessage(r)
		if err != nil {
			continue
		}
		message := inspectMessage(m)
		if m.Role == "assistant" {
			last = message
		}
		messages = append(messages, message)
	}
	sample := map[string]any{
		"id": w.ID, "epoch": 1, "input": w.Instruction, "target": "", "messages": messages,
		"output":   map[string]any{"model": w.name(), "choices": []any{map[string]any{"message": last, "stop_reason": "stop"}}},
		"metadata": map[string]any{"proctor": w.stamp(nil)}, "store": map[string]any{}, "events": []any{}, "model_usage": map[string]any{}, "attachments": map[string]any{},
	}
	if w.Reward != nil {
		sample["scores"] = map[string]any{"reward": map[string]any{"value": *w.Reward, "explanation": w.Outcome, "metadata": w.figures()}}
	}
	return sample
}

// inspectMessage gives a chat message as Inspect has it.
func inspectMessage(m trajectory.Message) map[string]any {
	role := m.Role
	if role == "developer" {
		role = "system"
	}
	out := map[string]any{"role": role, "content": m.Content}
	switch role {
	case "assistant":
		out["source"] = "generate"
		calls := []any{}
		for _, t := range m.ToolCalls {
			var args map[string]json.RawMessage
			if json.Unmarshal([]byte(t.Arguments), &args) != nil || args == nil {
				args = map[string]json.RawMessage{"_text": enc(t.Arguments)}
			}
			calls = append(calls, map[string]any{"id": t.ID, "function": t.Name, "arguments": args, "type": "function"})
		}
		if len(calls) > 0 {
			out["tool_calls"] = calls
		}
	case "tool":
		out["tool_call_id"] = m.ToolCallID
	case "user":
		out["source"] = "input"
	}
	return out
}
