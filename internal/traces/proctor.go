package traces

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

func fitsProctor(o object) bool {
	return strings.HasPrefix(o.text("schema"), "proctor.trajectory/")
}

// readProctor reads our own record. Calls of the harness are kept, marked.
func readProctor(_ *Document, o object) ([]*Trace, error) {
	if s := o.text("schema"); s != "proctor.trajectory/1" {
		return nil, fmt.Errorf("schema is %.60q, this program reads %q", s, "proctor.trajectory/1")
	}
	var rollout struct {
		ID     string `json:"id"`
		TaskID string `json:"task_id"`
	}
	if err := json.Unmarshal(o["rollout"], &rollout); err != nil {
		return nil, fmt.Errorf("rollout: %w", err)
	}
	var calls []struct {
		Name        string         `json:"name"`
		Arguments   map[string]any `json:"arguments"`
		Principal   string         `json:"principal"`
		Observation *struct {
			Output   string `json:"output"`
			ExitCode *int   `json:"exit_code"`
		} `json:"observation"`
	}
	if err := json.Unmarshal(o["calls"], &calls); err != nil {
		return nil, fmt.Errorf("calls: %w", err)
	}
	t := &Trace{ID: rollout.ID, Task: rollout.TaskID}
	for _, c := range calls {
		if c.Name == "submit" || c.Name == "exec" {
			continue
		}
		call := Call{Tool: c.Name, Arguments: c.Arguments, Foreign: c.Name, Harness: c.Principal == "harness"}
		if c.Observation != nil {
			call.Output, call.Exit, call.Shown = c.Observation.Output, c.Observation.ExitCode, true
		}
		t.Calls = append(t.Calls, call)
	}
	return []*Trace{t}, nil
}

// readCorpus reads rows of our corpora that belong to one run, or a single row with its setup.
func readCorpus(items []json.RawMessage) ([]*Trace, error) {
	type call struct {
		Tool      string         `json:"tool"`
		Arguments map[string]any `json:"arguments"`
	}
	var t *Trace
	for i, item := range items {
		var row struct {
			ID      string `json:"id"`
			Command string `json:"command"`
			Call    call   `json:"call"`
			Setup   []call `json:"setup"`
			Task    struct {
				ID          string          `json:"id"`
				Workdir     string          `json:"workdir"`
				Instruction string          `json:"instruction"`
				Vars        json.RawMessage `json:"vars"`
			} `json:"task"`
			Facts struct {
				Refs   map[string]string `json:"refs"`
				Paths  map[string]string `json:"paths"`
				Before map[string]string `json:"before"`
			} `json:"facts"`
		}
		if err := json.Unmarshal(item, &row); err != nil {
			return nil, fmt.Errorf("row %d: %w", i+1, err)
		}
		if row.Call.Tool == "" {
			row.Call = call{"bash", map[string]any{"command": row.Command}}
		}
		if t == nil {
			id := row.ID
			if len(items) > 1 {
				id = runOf(id)
			}
			t = &Trace{ID: id, Task: row.Task.ID, Workdir: row.Task.Workdir, Instruction: row.Task.Instruction, Vars: row.Task.Vars,
				Refs: row.Facts.Refs, Paths: row.Facts.Paths, Before: row.Facts.Before}
		}
		for _, c := range append(slices.Clone(row.Setup), row.Call) {
			t.Calls = append(t.Calls, Call{Tool: c.Tool, Arguments: c.Arguments, Foreign: c.Tool})
		}
	}
	return []*Trace{t}, nil
}
