package monitor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"sort"
	"strings"
	"time"

	"proctor/monitor/normalize"
	"proctor/sandbox"
)

// BadCall says how a call does not fit its tool: nothing is run for it.
type BadCall struct {
	Field  string // "name", "arguments.timeout_s", ...
	Detail string // what is wrong and what would be right
}

func (e *BadCall) Error() string { return e.Field + ": " + e.Detail }

// ParseCall holds a call against its tool's schema: known tool, all required arguments, none
// unknown, right types and bounds. Encoding is "" or "base64". The error is a *BadCall.
func ParseCall(id, key, name string, arguments json.RawMessage, encoding string) (Call, error) {
	tool, ok := toolNamed(name)
	if !ok {
		return Call{}, &BadCall{"name", fmt.Sprintf("unknown tool %.64q; the tools are %s", name, strings.Join(toolNames(), ", "))}
	}
	if encoding != "" && encoding != "base64" {
		return Call{}, &BadCall{"encoding", fmt.Sprintf("unknown encoding %.64q; leave it out or use \"base64\"", encoding)}
	}
	args, err := tool.parse(arguments)
	if err != nil {
		return Call{}, err
	}
	if err := args.fit(name); err != nil {
		return Call{}, err
	}
	call := Call{ID: id, Key: key, Name: name, Arguments: canonical(arguments), Base64: encoding == "base64"}
	call.Box, call.Facts = args.forBox(name), args.forFacts(name)
	return call, nil
}

func toolNamed(name string) (Tool, bool) {
	for _, t := range table {
		if t.Name == name {
			return t, true
		}
	}
	return Tool{}, false
}

func toolNames() []string {
	var names []string
	for _, t := range table {
		names = append(names, t.Name)
	}
	return names
}

// args are a call's arguments by name, of the types that their params name.
type args map[string]any

// parse decodes arguments and checks them against the tool's params.
func (t Tool) parse(raw json.RawMessage) (args, error) {
	var fields map[string]json.RawMessage
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return nil, &BadCall{"arguments", "must be a JSON object of " + t.Name + "'s arguments"}
	}
	out := args{}
	for _, p := range t.Params {
		value, ok := fields[p.Name]
		delete(fields, p.Name)
		if !ok || string(value) == "null" && !p.Required {
			if p.Required {
				return nil, &BadCall{"arguments." + p.Name, "is missing; it is a required " + p.Kind + " of " + t.Name}
			}
			continue
		}
		v, err := p.parse(value)
		if err != nil {
			return nil, err
		}
		out[p.Name] = v
	}
	if len(fields) > 0 {
		return nil, &BadCall{"arguments." + firstKey(fields), t.Name + " has no such argument; it takes " + t.paramNames()}
	}
	return out, nil
}

// parse decodes one argument.
func (p Param) parse(raw json.RawMessage) (any, error) {
	bad := func(want string) error {
		return &BadCall{"arguments." + p.Name, fmt.Sprintf("must be %s, not %.40s", want, raw)}
	}
	switch p.Kind {
	case "string":
		var s string
		if json.Unmarshal(raw, &s) != nil || string(raw) == "null" {
			return nil, bad("text")
		}
		return s, nil
	case "boolean":
		var b bool
		if json.Unmarshal(raw, &b) != nil || string(raw) == "null" {
			return nil, bad("true or false")
		}
		return b, nil
	case "strings":
		var list []string
		if json.Unmarshal(raw, &list) != nil || list == nil {
			return nil, bad("a list of texts")
		}
		return list, nil
	case "range":
		var r []int
		if json.Unmarshal(raw, &r) != nil || len(r) != 2 {
			return nil, bad("two whole numbers, [first, last]")
		}
		return r, nil
	}
	var f float64
	if json.Unmarshal(raw, &f) != nil || string(raw) == "null" || p.Kind == "integer" && f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return nil, bad("a " + strings.Replace(p.Kind, "integer", "whole number", 1))
	}
	if p.Max != 0 && (f < p.Min || f > p.Max) {
		return nil, bad(fmt.Sprintf("from %v to %v", p.Min, p.Max))
	}
	return f, nil
}

// fit checks what the schema cannot say: which arguments go together.
func (a args) fit(name string) error {
	_, rows := a["rows"]
	_, cols := a["cols"]
	switch name {
	case ToolBash:
		if pty, _ := a["pty"].(bool); (rows || cols) && !pty {
			return &BadCall{"arguments.pty", "rows and cols are of a terminal: set pty to true as well"}
		}
	case ToolBashInput:
		keys, _ := a["keys"].([]string)
		if _, text := a["text"]; !text && len(keys) == 0 && !rows && !cols {
			return &BadCall{"arguments.text", "is missing; bash_input takes text, keys, or rows and cols"}
		}
		if _, err := sandbox.KeyText(keys); err != nil {
			return &BadCall{"arguments.keys", err.Error()}
		}
	}
	return nil
}

func (t Tool) paramNames() string {
	if len(t.Params) == 0 {
		return "none"
	}
	var names []string
	for _, p := range t.Params {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}

func firstKey(m map[string]json.RawMessage) string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, fmt.Sprintf("%.64s", k))
	}
	sort.Strings(keys)
	return keys[0]
}

// canonical compacts arguments, so that the same call written with other blanks has the same hash.
func canonical(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if len(bytes.TrimSpace(raw)) == 0 || json.Compact(&b, raw) != nil {
		return json.RawMessage("{}")
	}
	return b.Bytes()
}

func (a args) text(name string) string { s, _ := a[name].(string); return s }

func (a args) seconds(name string) time.Duration {
	f, _ := a[name].(float64)
	return time.Duration(f * float64(time.Second))
}

// ops maps tools to what the sandbox does for them.
var ops = map[string]sandbox.Op{
	ToolBash: sandbox.OpShell, ToolBashOutput: sandbox.OpOutput, ToolBashInput: sandbox.OpInput, ToolBashKill: sandbox.OpKill,
	ToolView: sandbox.OpView, ToolCreate: sandbox.OpCreate, ToolStrReplace: sandbox.OpReplace, ToolInsert: sandbox.OpInsert, ToolUndo: sandbox.OpUndo,
}

// forBox gives the call as the sandbox takes it.
func (a args) forBox(name string) sandbox.Call {
	c := sandbox.Call{
		Op: ops[name], Command: a.text("command"), Timeout: a.seconds("timeout_s"), Idle: a.seconds("idle_timeout_s"),
		Handle: a.text("handle"), Wait: a.seconds("wait_s"), Path: a.text("path"), Old: a.text("old_str"), New: a.text("new_str"),
		Text: a.text("text") + a.text("file_text"),
	}
	background, _ := a["background"].(bool)
	c.PTY, _ = a["pty"].(bool)
	if background || c.PTY {
		c.Op = sandbox.OpSpawn
	}
	rows, _ := a["rows"].(float64)
	cols, _ := a["cols"].(float64)
	c.Rows, c.Cols = int(rows), int(cols)
	c.Keys, _ = a["keys"].([]string)
	if line, ok := a["insert_line"].(float64); ok {
		c.Line = int(line)
	}
	c.Range, _ = a["view_range"].([]int)
	return c
}

// forFacts gives the call as the normaliser takes it.
func (a args) forFacts(name string) normalize.Call {
	line, _ := a["insert_line"].(float64)
	keys, _ := a["keys"].([]string)
	pressed, _ := sandbox.KeyText(keys) // fit has seen them
	return normalize.Call{
		Tool: name, Command: a.text("command"), Handle: a.text("handle"), Text: a.text("text") + pressed, Path: a.text("path"),
		File: a.text("file_text"), Old: a.text("old_str"), New: a.text("new_str"), Line: int(line),
	}
}
