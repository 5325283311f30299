package export

import (
	"encoding/json"
	"fmt"

	"proctor/internal/trajectory"
)

type rewardEvent = trajectory.RewardEvent

// chat checks a list of messages: roles, and that results of tools answer calls before them.
func (c *docCheck) chat(field string, messages []json.RawMessage) {
	if len(messages) == 0 {
		c.say(field, "is empty")
	}
	called := map[string]bool{}
	for i, raw := range messages {
		m, err := trajectory.ParseMessage(raw)
		at := fmt.Sprintf("%s[%d]", field, i)
		if err != nil {
			c.say(at, "is no chat message: %v", err)
			continue
		}
		switch m.Role {
		case "system", "developer", "user":
		case "assistant":
			for _, t := range m.ToolCalls {
				called[t.ID] = true
			}
		case "tool":
			if !called[m.ToolCallID] {
				c.say(at+".tool_call_id", "%.60q answers no call before it", m.ToolCallID)
			}
		default:
			c.say(at+".role", "is %.40q", m.Role)
		}
	}
}

func (c *docCheck) openai() {
	c.chat("messages", c.d.Messages)
	for i, raw := range c.d.Messages {
		var m struct {
			Role   string `json:"role"`
			Weight *int   `json:"weight"`
		}
		if json.Unmarshal(raw, &m) == nil && m.Role == "assistant" && (m.Weight == nil || *m.Weight < 0 || *m.Weight > 1) {
			c.say(fmt.Sprintf("messages[%d].weight", i), "must be 0 or 1")
		}
	}
}

func (c *docCheck) atif() {
	if string(c.d.Version) != `"`+atifVersion+`"` {
		c.say("schema_version", "is %.40s, want %q", c.d.Version, atifVersion)
	}
	if len(c.d.Steps) == 0 {
		c.say("steps", "is empty")
	}
	for i, s := range c.d.Steps {
		at := fmt.Sprintf("steps[%d]", i)
		if s.ID != i+1 {
			c.say(at+".step_id", "is %d, want %d", s.ID, i+1)
		}
		if s.Source != "agent" && s.Source != "user" && s.Source != "system" {
			c.say(at+".source", "is %.40q", s.Source)
		}
		if s.Source != "agent" && (len(s.Calls) > 0 || s.Observation != nil) {
			c.say(at, "calls tools and is not the agent's")
		}
		c.atifResults(at, s)
	}
}

func (c *docCheck) atifResults(at string, s atifStep) {
	if s.Observation == nil {
		return
	}
	called := map[string]bool{}
	for _, t := range s.Calls {
		called[t.ID] = true
	}
	for j, r := range s.Observation.Results {
		if !called[r.Call] {
			c.say(fmt.Sprintf("%s.observation.results[%d]", at, j), "answers %.60q, which the step does not call", r.Call)
		}
	}
}
