package monitor

import (
	"encoding/json"
	"slices"
	"strings"

	"proctor/sandbox"
)

// Names of the agent's tools.
const (
	ToolBash       = "bash"
	ToolBashOutput = "bash_output"
	ToolBashInput  = "bash_input"
	ToolBashKill   = "bash_kill"
	ToolView       = "view"
	ToolCreate     = "create"
	ToolStrReplace = "str_replace"
	ToolInsert     = "insert"
	ToolUndo       = "undo"
	ToolSubmit     = "submit"
)

// Tool is one of the agent's tools: what a client is told of it, and what its arguments must be.
type Tool struct {
	Name        string
	Description string
	Params      []Param
}

// Param is one argument of a tool.
type Param struct {
	Name        string
	Kind        string // string, strings, integer, number, boolean, range
	Description string
	Required    bool
	Min, Max    float64 // bounds of integer and number, both 0 for none
}

// longest is the most seconds that one call may ask for: the default lifetime of a rollout.
const longest = 7200

// table is made once, since every call is held against it; nobody changes it.
var table = makeTable()

// Tools gives the agent's tools, in the order in which they are listed.
func Tools() []Tool { return slices.Clone(table) }

func makeTable() []Tool {
	path := Param{Name: "path", Kind: "string", Required: true, Description: "Path of the file; relative ones start at the working directory."}
	rows := Param{Name: "rows", Kind: "integer", Min: 1, Max: sandbox.MaxRows, Description: "Rows of the terminal (default 24)."}
	cols := Param{Name: "cols", Kind: "integer", Min: 1, Max: sandbox.MaxCols, Description: "Columns of the terminal (default 80)."}
	handle := Param{Name: "handle", Kind: "string", Required: true, Description: "Handle of a background command; `shell` stands for the shell's own `&` jobs."}
	return []Tool{
		{ToolBash, "Run a command in a persistent bash shell. The working directory, variables, functions and options live on between calls.", []Param{
			{Name: "command", Kind: "string", Required: true, Description: "The command, of one or more lines."},
			{Name: "timeout_s", Kind: "number", Min: 0.001, Max: longest, Description: "Wall-clock limit in seconds (default 120)."},
			{Name: "idle_timeout_s", Kind: "number", Min: 0.001, Max: longest, Description: "Longest silence in seconds (default: none)."},
			{Name: "background", Kind: "boolean", Description: "Start the command and return a handle at once."},
			{Name: "pty", Kind: "boolean", Description: "Start it on a terminal of its own, for interactive programs, and return a handle at once; bash_output shows the screen as text."},
			rows, cols}},
		{ToolBashOutput, "Give what a background command printed since the last look, and its exit code once it ended. Of one on a terminal: the lines that scrolled away since, and the screen.", []Param{handle,
			{Name: "wait_s", Kind: "number", Max: longest, Description: "Seconds to wait for more output or the end (default 0)."}}},
		{ToolBashInput, "Write text to the standard input of a background command, or press keys on its terminal, or give that another size.", []Param{handle,
			{Name: "text", Kind: "string", Description: "The text; end it with a newline to send a line."},
			{Name: "keys", Kind: "strings", Description: "Keys to press after the text, on a terminal: one character each, or " + strings.Join(sandbox.KeyNames(), ", ") + ", or one of these after ctrl- or alt-, as in ctrl-c. Without a terminal, ctrl-d alone ends the input."},
			rows, cols}},
		{ToolBashKill, "Kill a background command and all its children.", []Param{handle}},
		{ToolView, "Show a file with line numbers, or list a folder.", []Param{path,
			{Name: "view_range", Kind: "range", Description: "[first, last] line, from 1, inclusive; last -1 is the end."}}},
		{ToolCreate, "Create a file with the given text, or overwrite it. Missing folders are made.", []Param{path,
			{Name: "file_text", Kind: "string", Required: true, Description: "The whole text of the file."}}},
		{ToolStrReplace, "Replace the only occurrence of a text in a file.", []Param{path,
			{Name: "old_str", Kind: "string", Required: true, Description: "Text to replace; it must occur exactly once."},
			{Name: "new_str", Kind: "string", Required: true, Description: "Text to put in its place."}}},
		{ToolInsert, "Insert text below a line of a file.", []Param{path,
			{Name: "insert_line", Kind: "integer", Required: true, Description: "Line to insert below; 0 is above the first."},
			{Name: "new_str", Kind: "string", Required: true, Description: "Text to insert."}}},
		{ToolUndo, "Take back the last edit of a file.", []Param{path}},
		{ToolSubmit, "Say that the work is done. No further calls are possible.", nil},
	}
}

// Schema gives the JSON Schema of the tool's arguments.
func (t Tool) Schema() json.RawMessage {
	props := map[string]any{}
	required := []string{}
	for _, p := range t.Params {
		props[p.Name] = p.schema()
		if p.Required {
			required = append(required, p.Name)
		}
	}
	return mustJSON(map[string]any{
		"type": "object", "properties": props, "required": required, "additionalProperties": false,
	})
}

// schema gives one argument's schema.
func (p Param) schema() map[string]any {
	s := map[string]any{"type": p.Kind, "description": p.Description}
	if p.Kind == "strings" {
		s["type"], s["items"] = "array", map[string]any{"type": "string"}
	}
	if p.Kind == "range" {
		s["type"] = "array"
		s["items"] = map[string]any{"type": "integer"}
		s["minItems"], s["maxItems"] = 2, 2
	}
	if p.Max != 0 {
		s["maximum"] = p.Max
		s["minimum"] = p.Min
	}
	return s
}
