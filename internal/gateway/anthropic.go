package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"proctor/internal/trajectory"
)

// anthropicFront is Anthropic's messages. Where the policy's server speaks OpenAI's protocol alone, requests
// and answers are translated; what has no counterpart there (cache marks, citations) is left out.
type anthropicFront struct{}

func (anthropicFront) name() string { return "anthropic" }

type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	Source    struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
		URL       string `json:"url"`
	} `json:"source"`
}

// blocks reads a content field: text, or a list of blocks.
func blocks(raw json.RawMessage) ([]block, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []block{{Type: "text", Text: text}}, nil
	}
	var list []block
	return list, json.Unmarshal(raw, &list)
}

func (f anthropicFront) parse(a *ask, body map[string]json.RawMessage) error {
	var req struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		System     json.RawMessage `json:"system"`
		Stream     bool            `json:"stream"`
		MaxTokens  int             `json:"max_tokens"`
		Stop       []string        `json:"stop_sequences"`
		Tools      []anthropicTool `json:"tools"`
		ToolChoice *struct {
			Type string `json:"type"`
			Name string `json:"name"`
		} `json:"tool_choice"`
	}
	if err := json.Unmarshal(mustJSON(body), &req); err != nil {
		return refuse(http.StatusBadRequest, "bad_request", "the body is no messages request: %v", err)
	}
	a.stream = req.Stream
	a.fields = map[string]json.RawMessage{}
	for _, k := range []string{"temperature", "top_p", "top_k", "max_tokens", "stream", "model"} {
		if v, ok := body[k]; ok {
			a.fields[k] = v
		}
	}
	if len(req.Stop) > 0 {
		a.fields["stop"] = mustJSON(req.Stop)
	}
	if len(req.System) > 0 {
		list, err := blocks(req.System)
		if err != nil {
			return refuse(http.StatusBadRequest, "bad_request", "field system must be text or a list of blocks")
		}
		a.messages = append(a.messages, mustJSON(map[string]string{"role": "system", "content": joinText(list)}))
	}
	for i, m := range req.Messages {
		list, err := blocks(m.Content)
		if err != nil || m.Role != "user" && m.Role != "assistant" && m.Role != "system" {
			return refuse(http.StatusBadRequest, "bad_request", "field messages[%d] must have a role (user, assistant) and content: text or a list of blocks", i)
		}
		a.messages = append(a.messages, f.messages(m.Role, list)...)
	}
	a.fields["messages"] = mustJSON(a.messages)
	if len(req.Tools) > 0 {
		a.fields["tools"] = mustJSON(toolsOf(req.Tools))
	}
	if c := req.ToolChoice; c != nil {
		switch c.Type {
		case "any":
			a.fields["tool_choice"] = mustJSON("required")
		case "tool":
			a.fields["tool_choice"] = mustJSON(map[string]any{"type": "function", "function": map[string]string{"name": c.Name}})
		case "auto", "none":
			a.fields["tool_choice"] = mustJSON(c.Type)
		}
	}
	return nil
}

type anthropicTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"input_schema"`
}

func toolsOf(list []anthropicTool) []any {
	out := make([]any, len(list))
	for i, t := range list {
		fn := map[string]any{"name": t.Name, "parameters": t.Schema}
		if t.Description != "" {
			fn["description"] = t.Description
		}
		out[i] = map[string]any{"type": "function", "function": fn}
	}
	return out
}

// messages gives the OpenAI messages of one of Anthropic's: results of tools are messages of their own
// and come first, as they answer the message before.
func (anthropicFront) messages(role string, list []block) []json.RawMessage {
	var out []json.RawMessage
	msg := map[string]any{"role": role, "content": ""}
	var calls, parts []any
	images := false
	for _, b := range list {
		switch b.Type {
		case "text":
			parts = append(parts, map[string]any{"type": "text", "text": b.Text})
		case "thinking":
			msg["reasoning_content"] = b.Thinking
		case "image":
			images = true
			link := b.Source.URL
			if b.Source.Type == "base64" {
				link = "data:" + b.Source.MediaType + ";base64," + b.Source.Data
			}
			parts = append(parts, map[string]any{"type": "image_url", "image_url": map[string]string{"url": link}})
		case "tool_use":
			calls = append(calls, map[string]any{"id": b.ID, "type": "function", "function": map[string]string{"name": b.Name, "arguments": compactText(b.Input)}})
		case "tool_result":
			inner, err := blocks(b.Content)
			if err != nil {
				inner = nil
			}
			out = append(out, mustJSON(map[string]string{"role": "tool", "tool_call_id": b.ToolUseID, "content": joinText(inner)}))
		}
	}
	if images {
		msg["content"] = parts
	} else {
		msg["content"] = joinText(list)
	}
	if calls != nil {
		msg["tool_calls"] = calls
	}
	if len(parts) > 0 || calls != nil || len(out) == 0 {
		out = append(out, mustJSON(msg))
	}
	return out
}

func compactText(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "{}"
	}
	return string(mustJSON(raw))
}

func joinText(list []block) string {
	var texts []string
	for _, b := range list {
		if b.Type == "text" {
			texts = append(texts, b.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// anthropicBody gives the request as it came, with the policy's model, for a server that speaks the protocol.
func (a *ask) anthropicBody() []byte {
	if a.target.Model == "" {
		return a.raw
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(a.raw, &fields) != nil { // it was read before
		return a.raw
	}
	fields["model"] = mustJSON(a.target.Model)
	return mustJSON(fields)
}

func (anthropicFront) failure(status int, code, message string) []byte {
	kinds := map[int]string{400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 529: "overloaded_error"}
	kind, ok := kinds[status]
	if !ok {
		kind = "api_error"
		if status < 500 {
			kind = "invalid_request_error"
		}
	}
	return mustJSON(map[string]any{"type": "error", "error": map[string]string{"type": kind, "message": code + ": " + message}})
}

var stopReasons = map[string]string{"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "function_call": "tool_use", "content_filter": "refusal"}

func stopReason(finish string) any {
	if finish == "" {
		return nil
	}
	if r, ok := stopReasons[finish]; ok {
		return r
	}
	return finish
}

func (anthropicFront) whole(a *ask, c *trajectory.ModelCall) []byte {
	content := []any{}
	m, err := trajectory.ParseMessage(c.Output)
	if err == nil {
		if m.Reasoning != "" {
			content = append(content, map[string]any{"type": "thinking", "thinking": m.Reasoning, "signature": ""})
		}
		if m.Content != "" {
			content = append(content, map[string]any{"type": "text", "text": m.Content})
		}
		for _, t := range m.ToolCalls {
			content = append(content, map[string]any{"type": "tool_use", "id": t.ID, "name": t.Name, "input": inputOf(t.Arguments)})
		}
	}
	return mustJSON(map[string]any{"id": messageID(a), "type": "message", "role": "assistant", "model": c.Model, "content": content,
		"stop_reason": stopReason(c.FinishReason), "stop_sequence": nil, "usage": usageOf(c)})
}

// inputOf gives sampled arguments as an object; what is none is kept as text, so that nothing is lost.
func inputOf(arguments string) any {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &object) == nil && object != nil {
		return object
	}
	return map[string]string{"_text": arguments}
}

func messageID(a *ask) string { return fmt.Sprintf("msg_%x", a.sum[:12]) }

func usageOf(c *trajectory.ModelCall) map[string]int {
	u := map[string]int{"input_tokens": len(c.PromptIDs), "output_tokens": len(c.OutputIDs)}
	if c.Usage != nil {
		u["input_tokens"], u["output_tokens"] = c.Usage.Prompt, c.Usage.Output
	}
	return u
}
