package traces

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// args are a foreign call's arguments.
type args map[string]any

// text gives the first argument among names that is text.
func (a args) text(names ...string) string {
	for _, n := range names {
		if s, ok := a[n].(string); ok {
			return s
		}
	}
	return ""
}

// words gives an argument that is a list of texts, or nil.
func (a args) words(name string) []string {
	list, ok := a[name].([]any)
	if !ok {
		return nil
	}
	out := make([]string, 0, len(list))
	for _, x := range list {
		s, ok := x.(string)
		if !ok {
			return nil
		}
		out = append(out, s)
	}
	return out
}

// number gives an argument as a whole number; text that holds one counts.
func (a args) number(name string) int {
	switch x := a[name].(type) {
	case float64:
		if x > -1e9 && x < 1e9 {
			return int(x)
		}
	case string:
		var n int
		if _, err := fmt.Sscanf(x, "%d", &n); err == nil {
			return n
		}
	}
	return 0
}

// silent are tools that act on nothing: thoughts, plans, the end of the attempt.
var silent = []string{"think", "finish", "submit", "task_tracker", "todowrite", "update_plan", "complete", "done", "message", "mark_task_complete", "request_condensation"}

// translate gives our call for a foreign tool's; false where none of ours stands for it, and a nil
// call where the tool acts on nothing.
func translate(name string, a args) (*Call, bool) {
	plain := strings.ToLower(name)
	plain = plain[strings.LastIndexAny(plain, ".:/")+1:]
	if slices.Contains(silent, plain) {
		return nil, true
	}
	var call *Call
	switch plain {
	case "bash", "execute_bash", "terminal", "shell", "run", "execute", "execute_command", "run_command", "run_terminal_cmd", "run_shell_command",
		"bash_command", "local_shell", "exec", "exec_command", "cmd_run", "bash_session", "interactive_shell", "sh":
		call = shellCall(a)
	case "python", "execute_ipython_cell", "ipython", "run_ipython", "execute_python", "jupyter":
		if code := a.text("code", "source", "input", "cell"); code != "" {
			call = bash("python3 - <<'END_OF_CELL'\n" + code + "\nEND_OF_CELL")
		}
	case "str_replace_editor", "str_replace_based_edit_tool", "file_editor", "text_editor", "edit_tool":
		call = editorCall(a)
	case "view", "read", "read_file", "open_file", "view_file", "cat":
		call = &Call{Tool: "view", Arguments: map[string]any{"path": a.text("path", "file_path", "filepath", "filename", "file")}}
	case "create", "write", "write_file", "create_file", "save_file":
		call = &Call{Tool: "create", Arguments: map[string]any{"path": a.text("path", "file_path", "filepath", "filename", "file"),
			"file_text": a.text("file_text", "content", "contents", "text", "code_edit")}}
	case "str_replace", "edit", "edit_file", "replace", "search_replace", "replace_in_file":
		if _, ok := a["command"]; ok {
			call = editorCall(a)
			break
		}
		call = &Call{Tool: "str_replace", Arguments: map[string]any{"path": a.text("path", "file_path", "filepath", "filename", "file"),
			"old_str": a.text("old_str", "old_string", "search", "old", "old_text"), "new_str": a.text("new_str", "new_string", "replace", "new", "new_text", "content", "code_edit")}}
	case "insert":
		call = &Call{Tool: "insert", Arguments: map[string]any{"path": a.text("path", "file_path"), "insert_line": a.number("insert_line"), "new_str": a.text("new_str", "text", "insert_text")}}
	case "undo", "undo_edit":
		call = &Call{Tool: "undo", Arguments: map[string]any{"path": a.text("path", "file_path")}}
	}
	if call == nil || call.Tool != "bash" && call.Arguments["path"] == "" {
		return nil, false
	}
	call.Foreign = name
	return call, true
}

func bash(command string) *Call {
	return &Call{Tool: "bash", Arguments: map[string]any{"command": command}, Foreign: "bash"}
}

// shellCall reads a shell tool's command: as text, as keys typed, as an argv, or inside an action.
func shellCall(a args) *Call {
	if inner, ok := a["action"].(map[string]any); ok {
		return shellCall(args(inner))
	}
	for _, name := range []string{"command", "cmd", "argv"} {
		if words := a.words(name); len(words) > 0 {
			return bash(argv(words))
		}
	}
	if text := a.text("command", "cmd", "keystrokes", "script", "code", "input"); text != "" {
		return bash(strings.TrimRight(text, "\n"))
	}
	return nil
}

// argv gives a command line for words; of `bash -lc TEXT` the text.
func argv(words []string) string {
	if len(words) == 3 && (strings.HasSuffix(words[0], "bash") || strings.HasSuffix(words[0], "sh")) && (words[1] == "-c" || words[1] == "-lc") {
		return words[2]
	}
	quoted := make([]string, len(words))
	for i, w := range words {
		q, err := syntax.Quote(w, syntax.LangBash)
		if err != nil { // a NUL, which no argument can hold
			q = "''"
		}
		quoted[i] = q
	}
	return strings.Join(quoted, " ")
}

// editorCall reads Anthropic's editor tool and its many copies.
func editorCall(a args) *Call {
	path := a.text("path", "file_path")
	switch a.text("command") {
	case "view":
		return &Call{Tool: "view", Arguments: map[string]any{"path": path}}
	case "create", "write":
		return &Call{Tool: "create", Arguments: map[string]any{"path": path, "file_text": a.text("file_text", "content")}}
	case "str_replace", "edit":
		return &Call{Tool: "str_replace", Arguments: map[string]any{"path": path, "old_str": a.text("old_str"), "new_str": a.text("new_str")}}
	case "insert":
		return &Call{Tool: "insert", Arguments: map[string]any{"path": path, "insert_line": max(0, a.number("insert_line")), "new_str": a.text("new_str", "insert_text")}}
	case "undo_edit":
		return &Call{Tool: "undo", Arguments: map[string]any{"path": path}}
	}
	return nil
}

// editorLine reads a line `str_replace_editor view /x --view_range 1 5`, as SWE-agent types them; nil
// where it is none.
func editorLine(line string) *Call {
	words := splitWords(line)
	if len(words) < 3 {
		return nil
	}
	a := args{"command": words[1], "path": words[2]}
	for i := 3; i < len(words); i++ {
		name, ok := strings.CutPrefix(words[i], "--")
		if !ok {
			continue
		}
		if name, value, ok := strings.Cut(name, "="); ok {
			a[name] = value
		} else if i+1 < len(words) {
			a[name] = words[i+1]
			i++
		}
	}
	call := editorCall(a)
	if call != nil {
		call.Foreign = words[0]
	}
	return call
}

// splitWords splits a line as a shell does, without expanding anything; nil where it cannot.
func splitWords(line string) []string {
	if len(line) > 1<<20 {
		return nil
	}
	var out []string
	var word strings.Builder
	open := false
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '\'' || c == '"':
			open = true
			end := i + 1
			for end < len(line) && line[end] != c {
				if c == '"' && line[end] == '\\' && end+1 < len(line) && strings.IndexByte("\\\"$`", line[end+1]) >= 0 {
					end++
				}
				word.WriteByte(line[end])
				end++
			}
			if end >= len(line) {
				return nil
			}
			i = end
		case c == '\\' && i+1 < len(line):
			open = true
			i++
			word.WriteByte(line[i])
		case c == ' ' || c == '\t' || c == '\n':
			if open {
				out = append(out, word.String())
				word.Reset()
				open = false
			}
		default:
			open = true
			word.WriteByte(c)
		}
	}
	if open {
		out = append(out, word.String())
	}
	return out
}

// add appends the call of a foreign tool, or counts it as unmapped, and gives its index; -1 where there
// is no call.
func (t *Trace) add(name string, a args) int {
	call, ok := translate(name, a)
	if !ok {
		if t.Unmapped == nil {
			t.Unmapped = map[string]int{}
		}
		if len(t.Unmapped) < 100 || t.Unmapped[name] > 0 {
			t.Unmapped[fmt.Sprintf("%.64s", name)]++
		}
		return -1
	}
	if call == nil {
		return -1
	}
	t.Calls = append(t.Calls, *call)
	return len(t.Calls) - 1
}

// show notes what the call at i showed; -1 is ignored.
func (t *Trace) show(i int, output string, exit *int) {
	if i < 0 || i >= len(t.Calls) {
		return
	}
	c := &t.Calls[i]
	if c.Shown {
		output = c.Output + output
	}
	c.Output, c.Shown = output, true
	if exit != nil {
		c.Exit = exit
	}
}

// decodeArgs reads arguments given as an object, or as text that holds one.
func decodeArgs(raw json.RawMessage) args {
	var a args
	if json.Unmarshal(raw, &a) == nil && a != nil {
		return a
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return args{}
	}
	if json.Unmarshal([]byte(s), &a) == nil && a != nil {
		return a
	}
	return args{"command": s} // arguments that are no JSON were meant as the command
}
