package traces

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// fitsOpenAI takes an object that holds a conversation; data sets keep it as text, too.
func fitsOpenAI(o object) bool {
	return o.has("messages") || listOf(o["trajectory"]) || listOf(o["input"]) && o.has("output")
}

// readOpenAI reads a row with a conversation.
func readOpenAI(_ *Document, o object) ([]*Trace, error) {
	field := "messages"
	if !o.has(field) {
		field = "trajectory"
	}
	raw := o[field]
	if text := o.text(field); text != "" {
		raw = json.RawMessage(text)
	}
	items, err := elements(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: a list of messages is needed: %w", field, err)
	}
	if len(items) > 0 && !o.has("messages") {
		var head object
		if json.Unmarshal(items[0], &head) != nil || !head.has("role") {
			return nil, fmt.Errorf("%s: its elements are no messages", field)
		}
	}
	if output := o["output"]; !o.has("messages") && listOf(output) {
		more, err := elements(output)
		if err != nil {
			return nil, fmt.Errorf("output: %w", err)
		}
		items = append(items, more...)
	}
	t, err := readMessages(items)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	t.ID, t.Task = o.first("id", "traj_id", "trajectory_id", "instance_id", "task_id"), o.first("instance_id", "task_id", "task")
	return []*Trace{t}, nil
}

// readMessages reads a conversation that must hold something.
func readMessages(items []json.RawMessage) (*Trace, error) {
	if len(items) == 0 {
		return nil, errors.New("no messages")
	}
	return readTalk(items)
}

// message is a message of a chat, or an item of a response, with what dialects call their parts.
type message struct {
	Role       string          `json:"role"`
	Type       string          `json:"type"`
	Content    json.RawMessage `json:"content"`
	Text       string          `json:"text"`
	ToolCalls  []toolCall      `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`

	CallID    string          `json:"call_id"` // items of a response
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Action    json.RawMessage `json:"action"`
	Output    json.RawMessage `json:"output"`
}

// toolCall is a tool call of a message: OpenAI nests name and arguments under function, Inspect names
// the function and lays the arguments beside it.
type toolCall struct {
	ID        string          `json:"id"`
	Function  json.RawMessage `json:"function"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

func (c *toolCall) call() (name string, a args) {
	var inner struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if json.Unmarshal(c.Function, &inner) == nil && inner.Name != "" {
		return inner.Name, decodeArgs(inner.Arguments)
	}
	if json.Unmarshal(c.Function, &name) != nil || name == "" {
		name = c.Name
	}
	return name, decodeArgs(c.Arguments)
}

// readTalk reads a conversation.
func readTalk(items []json.RawMessage) (*Trace, error) {
	r := talk{t: &Trace{}, at: map[string]int{}, plain: true}
	messages := make([]message, len(items))
	for i, item := range items {
		m := &messages[i]
		if err := json.Unmarshal(item, m); err != nil {
			return nil, fmt.Errorf("message %d: %w", i+1, err)
		}
		if m.Role == "tool" || m.Role == "function" || len(m.ToolCalls) > 0 || strings.HasPrefix(m.Type, "function_call") ||
			bytes.Contains(m.Content, []byte(`"tool_use"`)) {
			r.plain = false
		}
	}
	for i := range messages {
		r.take(&messages[i])
	}
	return r.t, nil
}

// talk follows a conversation.
type talk struct {
	t       *Trace
	at      map[string]int
	plain   bool  // no tool is called anywhere, so that a fenced block is an action, not an example
	pending []int // calls of a text-only protocol that showed nothing yet
}

func (r *talk) take(m *message) {
	switch {
	case m.Role == "assistant" || m.Role == "ai":
		r.assistant(m)
	case m.Type == "function_call", m.Type == "local_shell_call":
		a := decodeArgs(m.Arguments)
		if m.Type == "local_shell_call" {
			m.Name, a = "local_shell", decodeArgs(m.Action)
		}
		r.at[m.CallID] = r.t.add(m.Name, a)
	case m.Type == "function_call_output", m.Type == "local_shell_call_output":
		r.shown(m.CallID, contentText(m.Output))
	case m.Role == "tool" || m.Role == "function":
		r.shown(m.ToolCallID, contentText(m.Content))
	case m.Role == "user" || m.Role == "human":
		r.user(m)
	}
}

func (r *talk) shown(id, text string) {
	if i, ok := r.at[id]; ok {
		r.t.show(i, text, nil)
		return
	}
	if len(r.pending) > 0 {
		r.t.show(r.pending[0], text, nil)
		r.pending = r.pending[1:]
	}
}

// assistant reads the calls of one reply, whichever way they are made.
func (r *talk) assistant(m *message) {
	r.pending = nil
	for _, c := range m.ToolCalls {
		name, a := c.call()
		i := r.t.add(name, a)
		if c.ID != "" {
			r.at[c.ID] = i
		} else {
			r.pending = append(r.pending, i)
		}
	}
	made := len(m.ToolCalls) > 0
	for _, b := range blocks(m.Content) {
		if b.Type == "tool_use" {
			r.at[b.ID] = r.t.add(b.Name, decodeArgs(b.Input))
			made = true
		}
	}
	if made {
		return
	}
	text := contentText(m.Content)
	if text == "" {
		text = m.Text
	}
	if calls := xmlCalls(text); len(calls) > 0 {
		for _, c := range calls {
			r.pending = append(r.pending, r.t.add(c.name, c.args))
		}
		return
	}
	if !r.plain {
		return
	}
	for _, command := range fences(text) {
		r.pending = append(r.pending, r.t.add("bash", args{"command": command}))
	}
}

// user reads results that stand in a user's message, and the instruction.
func (r *talk) user(m *message) {
	found := false
	for _, b := range blocks(m.Content) {
		if b.Type == "tool_result" {
			r.shown(b.ToolUseID, contentText(b.Content))
			found = true
		}
	}
	text := contentText(m.Content)
	if text == "" {
		text = m.Text
	}
	switch {
	case found:
	case len(r.pending) > 0:
		r.shown("", text)
	case r.t.Instruction == "" && len(r.t.Calls) == 0:
		r.t.Instruction = text
	}
}

// block is a part of a message's content.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
}

func blocks(raw json.RawMessage) []block {
	if !listOf(raw) {
		return nil
	}
	var out []block
	if json.Unmarshal(raw, &out) != nil {
		return nil
	}
	return out
}

// contentText gives the text of a content: text, or parts of which some are text.
func contentText(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '"' && raw[0] != '[' {
		return ""
	}
	var s string
	if raw[0] == '"' {
		_ = json.Unmarshal(raw, &s) // it was valid as part of the document
		return s
	}
	var parts []json.RawMessage
	if json.Unmarshal(raw, &parts) != nil {
		return ""
	}
	var out []string
	for _, p := range parts {
		var b block
		switch {
		case json.Unmarshal(p, &s) == nil:
			out = append(out, s)
		case json.Unmarshal(p, &b) == nil && b.Text != "":
			out = append(out, b.Text)
		}
	}
	return strings.Join(out, "\n")
}

var (
	xmlCall  = regexp.MustCompile(`(?s)<function=([\w.-]+)>(.*?)</function>`)
	xmlParam = regexp.MustCompile(`(?s)<parameter=([\w.-]+)>\n?(.*?)\n?</parameter>`)
)

type namedArgs struct {
	name string
	args args
}

// xmlCalls reads calls written as <function=bash><parameter=command>ls</parameter></function>, the
// protocol of OpenHands and SWE-smith for models without tool calls.
func xmlCalls(text string) []namedArgs {
	if !strings.Contains(text, "<function=") {
		return nil
	}
	var out []namedArgs
	for _, m := range xmlCall.FindAllStringSubmatch(text, -1) {
		c := namedArgs{m[1], args{}}
		for _, p := range xmlParam.FindAllStringSubmatch(m[2], -1) {
			c.args[p[1]] = p[2]
		}
		out = append(out, c)
	}
	return out
}
