package traces

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

func fitsSWEAgent(o object) bool {
	return o.has("trajectory") && (o.has("history") || o.has("info") || o.has("environment"))
}

// readSWEAgent reads a .traj: steps with the text that was typed and what came back. The edit tools
// are lines like any other, which are read as the edits that they are.
func readSWEAgent(_ *Document, o object) ([]*Trace, error) {
	var steps []struct {
		Action      string          `json:"action"`
		Observation string          `json:"observation"`
		State       json.RawMessage `json:"state"`
	}
	if err := json.Unmarshal(o["trajectory"], &steps); err != nil {
		return nil, fmt.Errorf("trajectory: %w", err)
	}
	t := &Trace{Task: o.first("instance_id", "task_id")}
	open := ""
	for _, s := range steps {
		cwd, file := sweState(s.State)
		action := strings.TrimRight(s.Action, "\n")
		for _, c := range sweCalls(action, open) {
			c.Output, c.Shown, c.Cwd = s.Observation, true, cwd
			t.Calls = append(t.Calls, c)
		}
		if file != "" && file != "n/a" {
			open = file
		}
	}
	return []*Trace{t}, nil
}

// sweState reads a step's state, an object or text that holds one: where the shell stands, and the
// file that is open.
func sweState(raw json.RawMessage) (cwd, file string) {
	var s struct {
		Workdir string `json:"working_dir"`
		File    string `json:"open_file"`
	}
	if json.Unmarshal(raw, &s) != nil {
		var text string
		if json.Unmarshal(raw, &text) != nil || json.Unmarshal([]byte(text), &s) != nil {
			return "", ""
		}
	}
	return s.Workdir, s.File
}

var editRange = regexp.MustCompile(`^edit (\d+):(\d+)\s*\n`)

// sweCalls gives the calls that a typed action stands for, none for one that acts on nothing.
func sweCalls(action, open string) []Call {
	first, _, _ := strings.Cut(action, " ")
	first, _, _ = strings.Cut(first, "\n")
	switch first {
	case "", "submit", "exit", "think":
		return nil
	case "str_replace_editor", "edit_anthropic":
		if c := editorLine(action); c != nil {
			return []Call{*c}
		}
	case "open":
		if words := splitWords(action); len(words) > 1 {
			return []Call{{Tool: "view", Arguments: map[string]any{"path": words[1]}, Foreign: first}}
		}
	case "create":
		if words := splitWords(action); len(words) == 2 {
			return []Call{{Tool: "create", Arguments: map[string]any{"path": words[1], "file_text": ""}, Foreign: first}}
		}
	case "edit":
		if m := editRange.FindStringSubmatch(action); m != nil && open != "" {
			text := strings.TrimSuffix(strings.TrimSuffix(action[len(m[0]):], "end_of_edit"), "\n")
			line, err := strconv.Atoi(m[1])
			if err == nil && line > 0 && line < 1e9 {
				return []Call{{Tool: "insert", Arguments: map[string]any{"path": open, "insert_line": line - 1, "new_str": text}, Foreign: first}}
			}
		}
	}
	c := bash(action)
	return []Call{*c}
}
