package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"proctor/internal/trajectory"
)

// openai writes the chat of each segment. Assistant messages carry the weight that OpenAI's
// fine-tuning reads: 1 where the segment trains them, 0 where another one does or nobody is to.
func (w *writer) openai(each func(Document) error) error {
	segments := w.Segments
	if len(segments) == 0 || len(w.ModelCalls) == 0 {
		segments = []*trajectory.Segment{nil}
	}
	for _, s := range segments {
		messages, turns := w.chat(s)
		for i, m := range messages {
			messages[i] = w.weighed(m, s, turns[i])
		}
		var l line
		l.raws("messages", messages).raw("tools", w.tools())
		l.object("metadata", func(m *line) { m.value("proctor", w.stamp(s)) })
		name := w.ID + ".json"
		if s != nil {
			name = w.ID + "." + s.ID + ".json"
		}
		if err := emit(each, name, &l); err != nil {
			return err
		}
	}
	return nil
}

// weighed gives a message with its weight; turn is 1 + the index of the segment's turn that it is, or 0.
func (w *writer) weighed(raw json.RawMessage, s *trajectory.Segment, turn int) json.RawMessage {
	var fields map[string]json.RawMessage
	if plainlyOther(raw) { // most bytes of a chat are not the assistant's
		return raw
	}
	var role string
	if json.Unmarshal(raw, &fields) != nil || json.Unmarshal(fields["role"], &role) != nil || role != "assistant" {
		return raw
	}
	weight := "0"
	switch {
	case s == nil: // only tool calls are known; blocked ones as the policy says
		weight = "1"
	case turn > 0 && w.trains(s, turn-1):
		weight = "1"
	}
	fields["weight"] = json.RawMessage(weight)
	delete(fields, "reasoning") // of servers, not of the protocol
	return enc(fields)
}

// plainlyOther says whether a message is seen to be none of the assistant's without reading it whole.
func plainlyOther(raw json.RawMessage) bool {
	if bytes.Contains(raw, []byte(`"assistant"`)) {
		return false
	}
	for _, role := range []string{`"role":"tool"`, `"role":"user"`, `"role":"system"`, `"role":"developer"`} {
		if bytes.Contains(raw, []byte(role)) {
			return true
		}
	}
	return false
}

// trains says whether a turn is trained.
func (w *writer) trains(s *trajectory.Segment, i int) bool {
	t := s.Turns[i]
	if t.Superseded || t.Kind == trajectory.KindAux {
		return false
	}
	for _, b := range s.BlockedTurns {
		if b == i && w.blocked.Way == trajectory.MaskOut {
			return false
		}
	}
	return true
}

// sweBench writes the prediction of a rollout.
func (w *writer) sweBench(each func(Document) error) error {
	if w.Patch == nil {
		return fmt.Errorf("rollout %s: %w: it ended (%s) before its patch was made", w.ID, ErrNoPatch, w.StopReason)
	}
	var l line
	l.value("instance_id", w.TaskID).value("model_name_or_path", w.name()).value("model_patch", string(w.Patch)).value("proctor", w.stamp(nil))
	return emit(each, w.ID+".json", &l)
}

func (w *writer) name() string {
	for _, n := range []string{w.PolicyName, w.Model} {
		if n != "" {
			return n
		}
	}
	return "policy"
}

// action is one turn's text with one call.
type action struct {
	call    trajectory.ToolRecord
	thought string
	reason  string
}

// actions gives the agent's calls with what was said before each.
func (w *writer) actions() []action {
	said := map[string]trajectory.Message{}
	for _, c := range w.ModelCalls {
		if m, err := c.Said(); err == nil {
			for _, t := range m.ToolCalls {
				said[t.ID] = m
			}
		}
	}
	var list []action
	for _, c := range w.Calls {
		if c.Agent {
			list = append(list, action{c, said[c.CallID].Content, said[c.CallID].Reasoning})
		}
	}
	return list
}

// actionText gives a call as SWE-agent writes it: a command, or a tool with its arguments.
func actionText(c trajectory.ToolRecord) string {
	var a struct {
		Command string `json:"command"`
	}
	if c.Name == "bash" && json.Unmarshal(c.Arguments, &a) == nil {
		return a.Command
	}
	return c.Name + " " + string(c.Arguments)
}

// sweAgent writes a .traj.
func (w *writer) sweAgent(each func(Document) error) error {
	steps, history := []any{}, []any{map[string]any{"role": "user", "content": w.Instruction, "agent": "main", "message_type": "observation"}}
	for _, a := range w.actions() {
		text := actionText(a.call)
		steps = append(steps, map[string]any{
			"action": text, "observation": a.call.Output, "response": a.thought, "thought": a.thought, "state": map[string]string{},
			"execution_time": float64(a.call.DurationMS) / 1000, "query": []any{}, "extra_info": map[string]any{"ordinal": a.call.Ordinal, "tool_call_id": a.call.CallID},
		})
		id := callName(a.call)
		history = append(history,
			map[string]any{"role": "assistant", "content": a.thought, "thought": a.thought, "action": text, "agent": "main", "message_type": "action",
				"tool_calls": []any{map[string]any{"id": id, "type": "function", "function": map[string]string{"name": a.call.Name, "arguments": string(a.call.Arguments)}}}},
			map[string]any{"role": "tool", "content": a.call.Output, "agent": "main", "message_type": "observation", "tool_call_ids": []string{id}})
	}
	var sent, received int
	for _, c := range w.ModelCalls {
		if c.Usage != nil {
			sent, received = sent+c.Usage.Prompt, received+c.Usage.Output
		}
	}
	var submission any
	if w.Patch != nil {
		submission = string(w.Patch)
	}
	var l line
	l.value("environment", "proctor").value("trajectory", steps).value("history", history)
	l.value("info", map[string]any{"exit_status": w.StopReason, "submission": submission, "proctor": w.stamp(nil),
		"model_stats": map[string]any{"instance_cost": 0, "tokens_sent": sent, "tokens_received": received, "api_calls": len(w.ModelCalls)}})
	l.value("replay_config", nil)
	return emit(each, w.ID+".traj", &l)
}

func stampTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
