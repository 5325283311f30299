package traces

import (
	"encoding/json"
	"fmt"
	"strings"
)

func fitsATIF(o object) bool { return strings.HasPrefix(o.text("schema_version"), "ATIF") }

// readATIF reads Harbor's Agent Trajectory Interchange Format: steps with tool calls and the results
// that name them.
func readATIF(_ *Document, o object) ([]*Trace, error) {
	var steps []struct {
		Source    string `json:"source"`
		Message   any    `json:"message"`
		ToolCalls []struct {
			ID        string          `json:"tool_call_id"`
			Name      string          `json:"function_name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"tool_calls"`
		Observation *struct {
			Results []struct {
				Call    string          `json:"source_call_id"`
				Content json.RawMessage `json:"content"`
			} `json:"results"`
		} `json:"observation"`
	}
	if err := json.Unmarshal(o["steps"], &steps); err != nil {
		return nil, fmt.Errorf("steps: %w", err)
	}
	t := &Trace{ID: o.first("trajectory_id", "session_id"), Task: o.first("task_id", "instance_id")}
	if t.Task == "" {
		var extra object
		_ = json.Unmarshal(o["extra"], &extra) // it is optional, and of any shape
		t.Task = extra.first("task_id", "instance_id", "task_name")
	}
	for _, step := range steps {
		if step.Source == "user" && t.Instruction == "" {
			t.Instruction, _ = step.Message.(string)
		}
		at, last := map[string]int{}, -1
		for _, c := range step.ToolCalls {
			last = t.add(c.Name, decodeArgs(c.Arguments))
			at[c.ID] = last
		}
		if step.Observation == nil {
			continue
		}
		for _, r := range step.Observation.Results {
			i, ok := at[r.Call]
			if !ok {
				i = last
			}
			t.show(i, contentText(r.Content), nil)
		}
	}
	return []*Trace{t}, nil
}
