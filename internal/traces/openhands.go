package traces

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// fitsOpenHands takes a row of output.jsonl, or a conversation that holds its events.
func fitsOpenHands(o object) bool {
	return listOf(o["history"]) || listOf(o["events"]) && !o.has("messages")
}

func listOf(raw json.RawMessage) bool { return bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")) }

// readOpenHands reads a row of output.jsonl.
func readOpenHands(_ *Document, o object) ([]*Trace, error) {
	field := "history"
	if !listOf(o[field]) {
		field = "events"
	}
	var items []json.RawMessage
	if err := json.Unmarshal(o[field], &items); err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	var out []*Trace
	var err error
	if len(items) > 0 && listOf(items[0]) {
		out, err = readPairs(items)
	} else {
		out, err = one(readEvents(items))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	out[0].ID, out[0].Task = o.first("instance_id", "id"), o.first("instance_id", "task_id")
	if s := o.text("instruction"); s != "" {
		out[0].Instruction = s
	}
	return out, nil
}

// readPairs reads a history of [action, observation].
func readPairs(items []json.RawMessage) ([]*Trace, error) {
	var flat []json.RawMessage
	for i, item := range items {
		var pair []json.RawMessage
		if err := json.Unmarshal(item, &pair); err != nil {
			return nil, fmt.Errorf("pair %d: %w", i+1, err)
		}
		flat = append(flat, pair...)
	}
	return one(readEvents(flat))
}

// event is an event of either generation: the first has action or observation as a name, the second
// names its kind and holds them as objects.
type event struct {
	RawID       json.RawMessage `json:"id"`
	Kind        string          `json:"kind"`
	Source      string          `json:"source"`
	Action      json.RawMessage `json:"action"`
	Observation json.RawMessage `json:"observation"`
	Args        args            `json:"args"`
	Cause       json.RawMessage `json:"cause"`
	Content     json.RawMessage `json:"content"`
	Extras      struct {
		ExitCode *int `json:"exit_code"`
		Metadata struct {
			ExitCode *int   `json:"exit_code"`
			Workdir  string `json:"working_dir"`
		} `json:"metadata"`
	} `json:"extras"`
	ToolName   string `json:"tool_name"`
	ToolCallID string `json:"tool_call_id"`
}

// readEvents reads a list of events.
func readEvents(items []json.RawMessage) (*Trace, error) {
	if len(items) == 0 {
		return nil, errors.New("it is empty")
	}
	r := eventReader{t: &Trace{}, at: map[string]int{}, last: -1}
	for i, item := range items {
		var e event
		if err := json.Unmarshal(item, &e); err != nil {
			return nil, fmt.Errorf("event %d: %w", i+1, err)
		}
		r.take(&e)
	}
	return r.t, nil
}

type eventReader struct {
	t    *Trace
	at   map[string]int // calls by event id, or tool call id
	last int
}

func (r *eventReader) take(e *event) {
	switch {
	case e.Kind == "ActionEvent":
		r.last = r.t.add(e.ToolName, decodeArgs(e.Action))
		r.at[e.ToolCallID] = r.last
	case e.Kind == "ObservationEvent":
		if i, ok := r.at[e.ToolCallID]; ok {
			r.newObservation(i, e)
		}
	case e.Kind != "":
	case e.Action != nil:
		r.oldAction(e)
	case e.Observation != nil:
		i, ok := r.at[string(e.Cause)]
		if !ok {
			return
		}
		exit := e.Extras.ExitCode
		if exit == nil {
			exit = e.Extras.Metadata.ExitCode
		}
		r.t.show(i, contentText(e.Content), exit)
		if i >= 0 {
			r.t.Calls[i].Cwd = e.Extras.Metadata.Workdir
		}
	}
}

// newObservation reads an observation of the second generation.
func (r *eventReader) newObservation(i int, e *event) {
	var o struct {
		Content  json.RawMessage `json:"content"`
		Output   json.RawMessage `json:"output"`
		ExitCode *int            `json:"exit_code"`
		Metadata struct {
			Workdir string `json:"working_dir"`
		} `json:"metadata"`
	}
	if json.Unmarshal(e.Observation, &o) != nil {
		return // of a tool that answers otherwise
	}
	text := contentText(o.Content)
	if text == "" {
		text = contentText(o.Output)
	}
	r.t.show(i, text, o.ExitCode)
	if i >= 0 {
		r.t.Calls[i].Cwd = o.Metadata.Workdir
	}
}

// oldAction reads an action of the first generation.
func (r *eventReader) oldAction(e *event) {
	var name string
	if json.Unmarshal(e.Action, &name) != nil {
		return
	}
	if e.Source == "user" || e.Source == "environment" {
		if s := e.Args.text("content"); name == "message" && r.t.Instruction == "" {
			r.t.Instruction = s
		}
		return
	}
	switch name {
	case "message", "system", "recall", "condensation", "condensation_request", "change_agent_state", "null", "delegate", "reject", "":
		return
	case "call_tool_mcp":
		inner, _ := e.Args["arguments"].(map[string]any)
		r.last = r.t.add(e.Args.text("name"), args(inner))
	case "edit":
		if e.Args.text("command") == "" { // whole lines by a second model
			e.Args = args{"path": e.Args.text("path"), "command": "insert", "insert_line": e.Args["start"], "new_str": e.Args.text("content")}
		}
		r.last = r.t.add("str_replace_editor", e.Args)
	default:
		r.last = r.t.add(name, e.Args)
	}
	r.at[string(e.RawID)] = r.last
}
