package export

import (
	"encoding/json"
	"math"
	"slices"

	"proctor/internal/trajectory"
)

// traceVersion is the version of verifiers' Trace that is written (verifiers 0.4, its package v1).
const traceVersion = 1

// node is one message of a trace's graph: what it says, and the tokens that it adds to its path.
type node struct {
	message    trajectory.Message
	turn       int // of the segment, -1 for what was not sampled in it
	start, end int // its tokens in the segment, those of the prompt in front of a sampled answer included
}

// verifiers writes a Trace a rollout. A segment is a path of its own from a root to a leaf: what a segment
// holds of an earlier one is prompt to it, in verifiers as here.
func (w *writer) verifiers(each func(Document) error) error {
	var nodes, calls, paths []json.RawMessage
	leaves := map[string]int{}
	segments := w.Segments
	if len(segments) == 0 { // told by its calls alone
		segments = []*trajectory.Segment{nil}
	}
	for _, s := range segments {
		path := w.path(s)
		for i, n := range path {
			at := len(nodes)
			parent := -1
			if i > 0 {
				parent = at - 1
			}
			nodes = append(nodes, w.node(s, n, parent, leaves))
			if n.turn >= 0 {
				calls = append(calls, w.traceCall(s.Turns[n.turn], at))
			}
		}
		if s != nil {
			leaves[s.ID] = len(nodes) - 1
			paths = append(paths, enc(map[string]any{"segment": s.ID, "leaf": len(nodes) - 1, "order": s.Order, "kind": s.Kind, "cause": s.Cause,
				"n_action": s.NAction, "n_after": s.NAfter, "turns": s.Turns, "blocked_turns": s.BlockedTurns, "rewards": s.Rewards}))
		}
	}
	var l line
	l.value("version", traceVersion).value("id", w.ID).value("verifiers", map[string]any{"version": "", "commit": nil})
	l.value("task", map[string]any{"type": "ProctorTask", "key": w.TaskID, "hash": nil,
		"data": map[string]any{"id": w.TaskID, "name": w.TaskID, "prompt": w.Instruction}})
	l.value("agent", map[string]any{"name": "agent", "trainable": true, "runtime": nil, "config": map[string]any{}})
	l.value("tools", w.traceTools()).value("nodes", slices.Concat([]json.RawMessage{}, nodes)).value("calls", slices.Concat([]json.RawMessage{}, calls))
	l.value("rewards", map[string]any{"proctor": w.traceReward()}).value("metrics", w.figures())
	l.object("info", func(m *line) {
		m.value("proctor", w.stamp(nil)).value("paths", slices.Concat([]json.RawMessage{}, paths))
	})
	ok := w.EndedAt != nil && failureText(w.FailureClass) == nil
	l.value("is_completed", w.EndedAt != nil).value("ok", ok).value("stop_condition", w.StopReason).value("errors", w.traceErrors()).value("timing", w.traceTiming())
	return emit(each, w.ID+".json", &l)
}

// path gives a segment's messages with their tokens. A turn whose call is not known, as with uploaded
// segments, is told by its tool calls.
func (w *writer) path(s *trajectory.Segment) []node {
	messages, turns := w.chat(s)
	nodes := make([]node, len(messages))
	next := 0
	for i, raw := range messages {
		m, _ := trajectory.ParseMessage(raw) // what is no message is told as an empty one of the user's
		nodes[i] = node{message: m, turn: turns[i] - 1}
		if s != nil && turns[i] == next+1 {
			next++
		}
	}
	if s == nil {
		return nodes
	}
	if next != len(s.Turns) || len(w.ModelCalls) == 0 {
		nodes = w.told(s)
	}
	at := 0
	for i := range nodes {
		if nodes[i].turn < 0 || !s.HasTokens() {
			continue
		}
		t := s.Turns[nodes[i].turn]
		nodes[i].start, nodes[i].end = at, t.End
		if i > 0 && nodes[i-1].turn < 0 {
			nodes[i-1].start, nodes[i-1].end, nodes[i].start = at, t.Start, t.Start
		}
		at = t.End
	}
	return nodes
}

// told gives the messages of a segment of which only the turns and the tool calls are known.
func (w *writer) told(s *trajectory.Segment) []node {
	nodes := []node{{message: trajectory.Message{Role: "user", Content: w.Instruction}, turn: -1}}
	byID := map[string]*trajectory.ToolRecord{}
	for i := range w.Calls {
		if c := &w.Calls[i]; c.Agent && c.CallID != "" {
			byID[c.CallID] = c
		}
	}
	for i, t := range s.Turns {
		said := node{message: trajectory.Message{Role: "assistant"}, turn: i}
		var seen []node
		for _, id := range t.ToolCalls {
			if c := byID[id]; c != nil {
				said.message.ToolCalls = append(said.message.ToolCalls, trajectory.ToolCall{ID: id, Name: c.Name, Arguments: string(c.Arguments)})
				seen = append(seen, node{message: trajectory.Message{Role: "tool", ToolCallID: id, Content: c.Output}, turn: -1})
			}
		}
		nodes = append(append(nodes, said), seen...)
	}
	return nodes
}

// node writes a MessageNode. Its mask is the loss mask, and logprobs are those of the ones in it.
func (w *writer) node(s *trajectory.Segment, n node, parent int, leaves map[string]int) json.RawMessage {
	var l line
	links := []any{}
	if parent >= 0 {
		l.value("parent", parent)
	} else {
		l.value("parent", nil).value("tools", w.traceTools())
		if s != nil && s.Parent != nil {
			if leaf, ok := leaves[*s.Parent]; ok {
				links = append(links, map[string]any{"node": leaf, "type": s.Cause})
			}
		}
	}
	l.value("semantic_parents", links).value("message", traceMessage(n.message)).value("sampled", n.turn >= 0).value("timestamp", w.nodeTime(s, n))
	if s == nil || !s.HasTokens() {
		b, _ := l.end()
		return b
	}
	mask, logprobs := make([]bool, 0, n.end-n.start), []float64{}
	for i := n.start; i < n.end; i++ {
		trains := n.turn >= 0 && s.LossMask[i] == 1
		if mask = append(mask, trains); trains {
			logprobs = append(logprobs, s.Logprobs[i])
		}
	}
	l.ids("token_ids", s.Tokens[n.start:n.end]).value("mask", mask).floats("logprobs", logprobs)
	b, _ := l.end() // of what encodes: checked segments hold finite numbers alone
	return b
}

// nodeTime is when a turn's answer ended, in seconds; the rollout's beginning for what is not known.
func (w *writer) nodeTime(s *trajectory.Segment, n node) float64 {
	at := w.CreatedAt.UnixMilli()
	if s != nil && n.turn >= 0 {
		if c := w.byCall[s.Turns[n.turn].ModelCall]; c != nil {
			at = c.StartedAt.UnixMilli() + c.DurationMS
		}
	}
	return float64(at) / 1000
}

func (w *writer) traceCall(t trajectory.Turn, at int) json.RawMessage {
	call := map[string]any{"node": at, "model": w.Model, "finish_reason": nil}
	if slices.Contains([]string{"stop", "length", "tool_calls"}, t.FinishReason) {
		call["finish_reason"] = t.FinishReason
	}
	if c := w.byCall[t.ModelCall]; c != nil {
		start := float64(c.StartedAt.UnixMilli()) / 1000
		call["time"] = map[string]float64{"start": start, "end": start + float64(c.DurationMS)/1000}
		call["model"] = c.Model
		if u := c.Usage; u != nil {
			call["usage"] = map[string]int{"prompt_tokens": u.Prompt, "completion_tokens": u.Output}
		}
	}
	return enc(call)
}

// traceReward is null where nobody can say what was earned: verifiers' word for scoring that did not run.
func (w *writer) traceReward() any {
	if w.Reward == nil || math.IsNaN(*w.Reward) {
		return nil
	}
	return map[string]float64{"score": *w.Reward, "weight": 1}
}

func (w *writer) traceErrors() []any {
	class := failureText(w.FailureClass)
	if class == nil {
		return []any{}
	}
	return []any{map[string]any{"type": class, "message": w.StopReason}}
}

func (w *writer) traceTiming() any {
	start := float64(w.CreatedAt.UnixMilli()) / 1000
	agent := map[string]any{"start": start, "end": 0.0}
	if w.EndedAt != nil {
		agent["end"] = float64(w.EndedAt.UnixMilli()) / 1000
	}
	return map[string]any{"start": start, "agent": agent}
}

// traceTools gives the tools as verifiers has them, without OpenAI's envelope.
func (w *writer) traceTools() []any {
	var wrapped []struct {
		Function struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"function"`
	}
	list := []any{}
	if json.Unmarshal(w.tools(), &wrapped) != nil {
		return list
	}
	for _, t := range wrapped {
		tool := map[string]any{"type": "function", "name": t.Function.Name, "description": t.Function.Description}
		if len(t.Function.Parameters) > 0 {
			tool["parameters"] = t.Function.Parameters
		}
		list = append(list, tool)
	}
	return list
}

// traceMessage gives a message in verifiers' types.
func traceMessage(m trajectory.Message) map[string]any {
	switch m.Role {
	case "assistant":
		out := map[string]any{"role": "assistant", "content": m.Content}
		if m.Reasoning != "" {
			out["reasoning_content"] = m.Reasoning
		}
		var calls []any
		for _, c := range m.ToolCalls {
			calls = append(calls, map[string]any{"id": c.ID, "type": "function", "name": c.Name, "arguments": c.Arguments})
		}
		if calls != nil {
			out["tool_calls"] = calls
		}
		return out
	case "tool":
		return map[string]any{"role": "tool", "tool_call_id": m.ToolCallID, "content": m.Content}
	case "system", "developer":
		return map[string]any{"role": "system", "content": m.Content}
	}
	return map[string]any{"role": "user", "content": m.Content}
}
