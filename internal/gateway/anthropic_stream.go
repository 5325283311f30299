package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"

	"proctor/internal/trajectory"
)

// anthropicStream turns the parts of an OpenAI stream into Anthropic's events, each as it comes.
type anthropicStream struct {
	a     *ask
	out   func([]byte)
	begun bool
	open  string      // kind of the block that is open: text, thinking, tool_use; "" for none
	index int         // of the block that is open, or of the next one
	tool  int         // number of the tool call that is open
	tools map[int]int // number of a tool call -> its block
}

func (anthropicFront) translator(a *ask, out func([]byte)) translator {
	return &anthropicStream{a: a, out: out, tools: map[int]int{}}
}

func (s *anthropicStream) send(kind string, fields map[string]any) {
	fields["type"] = kind
	var b bytes.Buffer
	fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", kind, mustJSON(fields))
	s.out(b.Bytes())
}

func (s *anthropicStream) begin() {
	if s.begun {
		return
	}
	s.begun = true
	s.send("message_start", map[string]any{"message": map[string]any{"id": messageID(s.a), "type": "message", "role": "assistant", "model": s.a.target.Model,
		"content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": map[string]int{"input_tokens": 0, "output_tokens": 0}}})
}

// enter opens a block of a kind, closing the one before.
func (s *anthropicStream) enter(kind string, content map[string]any) {
	s.begin()
	s.leave()
	s.open = kind
	content["type"] = kind
	s.send("content_block_start", map[string]any{"index": s.index, "content_block": content})
}

func (s *anthropicStream) leave() {
	if s.open == "" {
		return
	}
	s.send("content_block_stop", map[string]any{"index": s.index})
	s.open = ""
	s.index++
}

func (s *anthropicStream) piece(kind, field, text string) {
	s.send("content_block_delta", map[string]any{"index": s.index, "delta": map[string]string{"type": kind, field: text}})
}

// delta passes one part on.
func (s *anthropicStream) delta(d delta) {
	s.begin()
	if d.reasoning != "" {
		if s.open != "thinking" {
			s.enter("thinking", map[string]any{"thinking": "", "signature": ""})
		}
		s.piece("thinking_delta", "thinking", d.reasoning)
	}
	if d.text != "" {
		if s.open != "text" {
			s.enter("text", map[string]any{"text": ""})
		}
		s.piece("text_delta", "text", d.text)
	}
	for _, t := range d.tools {
		if _, known := s.tools[t.Index]; !known || s.open != "tool_use" || s.tool != t.Index {
			s.tools[t.Index], s.tool = s.index, t.Index
			s.enter("tool_use", map[string]any{"id": t.ID, "name": t.Function.Name, "input": struct{}{}})
		}
		if t.Function.Arguments != "" {
			s.piece("input_json_delta", "partial_json", t.Function.Arguments)
		}
	}
}

// end closes the message with what is known only then.
func (s *anthropicStream) end(c *trajectory.ModelCall) {
	s.begin()
	s.leave()
	s.send("message_delta", map[string]any{"delta": map[string]any{"stop_reason": stopReason(c.FinishReason), "stop_sequence": nil}, "usage": usageOf(c)})
	s.send("message_stop", map[string]any{})
}

func (f anthropicFront) events(a *ask, c *trajectory.ModelCall) []byte {
	var b bytes.Buffer
	s := &anthropicStream{a: a, out: func(p []byte) { b.Write(p) }, tools: map[int]int{}}
	if m, err := trajectory.ParseMessage(c.Output); err == nil {
		d := delta{text: m.Content, reasoning: m.Reasoning}
		for i, t := range m.ToolCalls {
			part := toolDelta{Index: i, ID: t.ID}
			part.Function.Name, part.Function.Arguments = t.Name, t.Arguments
			d.tools = append(d.tools, part)
		}
		s.delta(d)
	}
	s.end(c)
	return b.Bytes()
}

// noIDs is why calls of a server that speaks Anthropic's protocol are text only.
const noIDs = "the server speaks Anthropic's protocol, which gives no token ids"

// readAnthropic reads a whole answer of a server that speaks Anthropic's protocol.
func readAnthropic(c *capture, body []byte) {
	c.spoil(noIDs)
	var m struct {
		Content []block         `json:"content"`
		Stop    string          `json:"stop_reason"`
		Usage   *anthropicUsage `json:"usage"`
	}
	if json.Unmarshal(body, &m) != nil {
		return
	}
	for i, b := range m.Content {
		readBlock(c, i, b)
	}
	c.finish = finishOf(m.Stop)
	if m.Usage != nil {
		c.usage = &trajectory.Usage{Prompt: m.Usage.Input, Output: m.Usage.Output}
	}
}

type anthropicUsage struct {
	Input  int `json:"input_tokens"`
	Output int `json:"output_tokens"`
}

func readBlock(c *capture, i int, b block) {
	switch b.Type {
	case "text":
		c.text.WriteString(b.Text)
	case "thinking":
		c.thought.WriteString(b.Thinking)
	case "tool_use":
		t := toolDelta{Index: len(c.tools), ID: b.ID}
		t.Function.Name = b.Name
		if len(b.Input) > 2 {
			t.Function.Arguments = compactText(b.Input)
		}
		c.tool(t)
	}
}

func finishOf(stop string) string {
	for openai, name := range stopReasons {
		if name == stop && openai != "function_call" {
			return openai
		}
	}
	return stop
}

// anthropicReader reads an event stream of such a server.
type anthropicReader struct {
	cap *capture
}

func (r *anthropicReader) feed(data []byte) int {
	r.cap.spoil(noIDs)
	return r.cap.lines(data, r.event)
}

func (r *anthropicReader) event(line []byte) {
	data, ok := bytes.CutPrefix(line, []byte("data:"))
	if !ok {
		return
	}
	var e struct {
		Type  string `json:"type"`
		Index int    `json:"index"`
		Block block  `json:"content_block"`
		Delta struct {
			Text     string `json:"text"`
			Thinking string `json:"thinking"`
			Partial  string `json:"partial_json"`
			Stop     string `json:"stop_reason"`
		} `json:"delta"`
		Usage   *anthropicUsage `json:"usage"`
		Message struct {
			Usage *anthropicUsage `json:"usage"`
		} `json:"message"`
	}
	if json.Unmarshal(bytes.TrimSpace(data), &e) != nil {
		return
	}
	c := r.cap
	for _, u := range []*anthropicUsage{e.Message.Usage, e.Usage} {
		if u != nil {
			if c.usage == nil {
				c.usage = &trajectory.Usage{}
			}
			c.usage.Prompt, c.usage.Output = max(c.usage.Prompt, u.Input), max(c.usage.Output, u.Output)
		}
	}
	switch e.Type {
	case "content_block_start":
		readBlock(c, e.Index, e.Block)
	case "content_block_delta":
		c.text.WriteString(e.Delta.Text)
		c.thought.WriteString(e.Delta.Thinking)
		if e.Delta.Partial != "" && len(c.tools) > 0 {
			c.tools[len(c.tools)-1].args.WriteString(e.Delta.Partial)
		}
	case "message_delta":
		c.finish = finishOf(e.Delta.Stop)
	case "message_stop":
		c.done = true
	}
}
