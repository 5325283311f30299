package trajectory

import (
	"bytes"
	"encoding/json"
	"time"
	"unicode/utf8"
)

// Kinds of a model call and of a segment.
const (
	KindAction   = "action"   // the agent's own turn
	KindSummary  = "summary"  // a turn that writes the summary which a compaction goes on from
	KindSubagent = "subagent" // a turn of an agent that the agent started
	KindAux      = "aux"      // titles, guards, embeddings of the harness: sampled, never trained
)

// Kinds lists the kinds, for checks.
func Kinds() []string { return []string{KindAction, KindSummary, KindSubagent, KindAux} }

// ModelCall is one request to the policy as it was recorded, whole: what was sent, what came back,
// and the token ids of both as the policy's server gave them. Nothing here was tokenised by us.
type ModelCall struct {
	Ordinal int    `json:"ordinal"` // from 1, in the order in which the answers ended
	Kind    string `json:"kind"`
	// Declared says that the harness named the kind; else it may be inferred.
	Declared bool   `json:"declared,omitempty"`
	Protocol string `json:"protocol"` // openai, anthropic: what the client spoke
	Model    string `json:"model"`

	PromptIDs []int32 `json:"prompt_ids,omitempty"`
	OutputIDs []int32 `json:"output_ids,omitempty"`
	// Logprobs are of the output ids, natural logarithms under the policy that sampled them.
	Logprobs []float64 `json:"logprobs,omitempty"`
	// TextOnly says why there are no ids, "" where there are. Such a call is good for text exports only.
	TextOnly string `json:"text_only,omitempty"`

	FinishReason string          `json:"finish_reason"` // stop, length, tool_calls, ...; "" where the answer was cut off
	Sampling     json.RawMessage `json:"sampling,omitempty"`
	// VersionStart and VersionEnd are the weight versions that sampled the first and last token, ""
	// where the server does not tell.
	VersionStart string `json:"weight_version_start,omitempty"`
	VersionEnd   string `json:"weight_version_end,omitempty"`

	Messages []json.RawMessage `json:"messages"` // as OpenAI chat messages, whatever the client spoke
	Tools    json.RawMessage   `json:"tools,omitempty"`
	Output   json.RawMessage   `json:"output,omitempty"` // the assistant's message; none where the server did not answer
	Usage    *Usage            `json:"usage,omitempty"`

	// Disconnected says that the client hung up before it had the whole answer.
	Disconnected bool      `json:"disconnected,omitempty"`
	Status       int       `json:"status"` // the upstream's HTTP status; 0 where it did not answer
	Error        string    `json:"error,omitempty"`
	StartedAt    time.Time `json:"started_at"`
	DurationMS   int64     `json:"duration_ms"`
	FirstMS      int64     `json:"first_ms,omitempty"` // to the first byte of the answer

	said *Message // Output, once it was read
}

// Said gives the assistant's message. It is read once; a call is not safe for use by several goroutines
// before that.
func (c *ModelCall) Said() (Message, error) {
	if c.said != nil {
		return *c.said, nil
	}
	m, err := ParseMessage(c.Output)
	if err == nil {
		c.said = &m
	}
	return m, err
}

// Usage counts tokens as the server did.
type Usage struct {
	Prompt int `json:"prompt_tokens"`
	Output int `json:"completion_tokens"`
}

// ToolCall is a tool call in an assistant's message.
type ToolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // JSON text, as sampled
}

// Message is the part of a chat message that joins and exports need.
type Message struct {
	Role       string `json:"role"`
	Content    string `json:"content"` // its text; parts are joined
	Reasoning  string `json:"reasoning_content,omitempty"`
	ToolCallID string `json:"tool_call_id,omitempty"`
	ToolCalls  []ToolCall
}

// ParseMessage reads an OpenAI chat message. Content parts that are no text are left out of Content.
func ParseMessage(raw json.RawMessage) (Message, error) {
	var m struct {
		Role       string  `json:"role"`
		Content    content `json:"content"`
		Reasoning  string  `json:"reasoning_content"`
		ToolCallID string  `json:"tool_call_id"`
		ToolCalls  []struct {
			ID       string `json:"id"`
			Function struct {
				Name      string `json:"name"`
				Arguments string `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return Message{}, err
	}
	out := Message{Role: m.Role, Content: string(m.Content), Reasoning: m.Reasoning, ToolCallID: m.ToolCallID}
	for _, c := range m.ToolCalls {
		out.ToolCalls = append(out.ToolCalls, ToolCall{c.ID, c.Function.Name, c.Function.Arguments})
	}
	return out, nil
}

// content is the text of a content field: text, or a list of parts. What is neither has none.
type content string

// UnmarshalJSON never fails: what a client says in other forms is kept as it is, beside this.
func (c *content) UnmarshalJSON(raw []byte) error {
	if n := len(raw); n >= 2 && raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		*c = content(raw[1 : n-1]) // most messages: nothing is escaped
		return nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*c = content(text)
		return nil
	}
	var parts []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(raw, &parts) // neither text nor parts: no text
	for _, p := range parts {
		text += p.Text
	}
	*c = content(text)
	return nil
}
