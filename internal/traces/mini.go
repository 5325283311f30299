package traces

import (
	"encoding/json"
	"fmt"
	"strings"
)

func fitsMini(o object) bool {
	return strings.HasPrefix(o.text("trajectory_format"), "mini-swe-agent") && o.has("messages")
}

// fences gives the insides of a text's bash blocks, the actions of a text-only protocol.
func fences(text string) []string {
	var out []string
	for {
		_, rest, ok := strings.Cut(text, "```")
		if !ok {
			return out
		}
		lang, body, ok := strings.Cut(rest, "\n")
		if !ok {
			return out
		}
		inside, after, closed := strings.Cut(body, "```")
		if strings.Contains(lang, "```") { // opened and closed in one line
			_, text, _ = strings.Cut(rest, "```")
			continue
		}
		if !closed {
			return out
		}
		switch strings.TrimSpace(lang) {
		case "bash", "sh", "shell", "mswea_bash_command":
			out = append(out, strings.TrimSuffix(inside, "\n"))
		}
		text = after
	}
}

// miniMessage is a message of mini-swe-agent, with what it adds under extra.
type miniMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  json.RawMessage `json:"tool_calls"`
	Extra      struct {
		Actions []struct {
			Command string `json:"command"`
			ID      string `json:"tool_call_id"`
		} `json:"actions"`
		RawOutput  *string `json:"raw_output"`
		ReturnCode *int    `json:"returncode"`
	} `json:"extra"`
}

// readMini reads a .traj.json. Every action is a shell of its own.
func readMini(_ *Document, o object) ([]*Trace, error) {
	var messages []miniMessage
	if err := json.Unmarshal(o["messages"], &messages); err != nil {
		return nil, fmt.Errorf("messages: %w", err)
	}
	t := &Trace{Task: o.first("instance_id", "task_id"), Fresh: true}
	var info struct {
		Config struct {
			Environment struct {
				Cwd string `json:"cwd"`
			} `json:"environment"`
		} `json:"config"`
	}
	_ = json.Unmarshal(o["info"], &info) // older versions write it otherwise
	t.Workdir = info.Config.Environment.Cwd
	m := miniTalk{t: t, at: map[string]int{}}
	for _, msg := range messages {
		m.take(msg)
	}
	return []*Trace{t}, nil
}

// miniTalk follows a conversation.
type miniTalk struct {
	t       *Trace
	at      map[string]int // calls by id
	pending []int          // calls without id that showed nothing yet
}

func (m *miniTalk) take(msg miniMessage) {
	switch msg.Role {
	case "assistant":
		m.pending = nil
		if len(msg.Extra.Actions) == 0 {
			for _, command := range fences(contentText(msg.Content)) {
				m.pending = append(m.pending, m.t.add("bash", args{"command": command}))
			}
		}
		for _, a := range msg.Extra.Actions {
			i := m.t.add("bash", args{"command": a.Command})
			if a.ID != "" {
				m.at[a.ID] = i
			} else {
				m.pending = append(m.pending, i)
			}
		}
	case "tool", "user":
		i, ok := m.at[msg.ToolCallID]
		switch {
		case ok:
		case len(m.pending) > 0:
			i, m.pending = m.pending[0], m.pending[1:]
		default:
			if msg.Role == "user" && m.t.Instruction == "" {
				m.t.Instruction = contentText(msg.Content)
			}
			return
		}
		output := contentText(msg.Content)
		if msg.Extra.RawOutput != nil {
			output = *msg.Extra.RawOutput
		}
		m.t.show(i, output, msg.Extra.ReturnCode)
	}
}
