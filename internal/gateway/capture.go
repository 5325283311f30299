package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"proctor/internal/trajectory"
)

// capture reads an answer in OpenAI's form on the side, whole or as events, in the shapes of those
// servers that give token ids:
//
//	vLLM       prompt_token_ids, choices[].token_ids, choices[].logprobs.content[].logprob
//	SGLang     choices[].meta_info.output_token_logprobs [[logprob, id, text]], meta_info.weight_version,
//	           input_token_ids, or vLLM's names
//	llama.cpp  choices[].logprobs.content[].id and .logprob
//	any        tokens that are called "token_id:123"
//
// It never fails: what does not fit becomes the reason why the call is recorded as text only.
type capture struct {
	prompt   []int32
	ids      []int32 // choices[].token_ids
	entries  []int32 // ids of the entries of logprobs; -1 where an entry has none
	logprobs []float64

	text     strings.Builder
	thought  strings.Builder
	tools    []toolPart
	finish   string
	versions [2]string
	usage    *trajectory.Usage
	llama    bool
	whole    json.RawMessage // choices[0].message of an answer that was no stream

	bad  string // why the ids cannot be used
	done bool   // the end was seen

	line    []byte // of an event stream, the part of a line that has come
	tooLong bool
	onDelta func(delta) // told of each part of an event stream, for translation
}

// read takes one document: an answer, or an event's data.
func (c *capture) read(data []byte) {
	var a answer
	if err := json.Unmarshal(data, &a); err != nil {
		c.spoil("the answer does not decode: " + err.Error())
		return
	}
	c.llama = c.llama || a.Timings != nil
	if len(a.PromptIDs) > 0 {
		c.prompt = a.PromptIDs
	}
	if a.Usage != nil {
		c.usage = &trajectory.Usage{Prompt: a.Usage.Prompt, Output: a.Usage.Output}
	}
	c.version(a.WeightVersion, a.Metadata, a.MetaInfo)
	for i := range a.Choices {
		if a.Choices[i].Index != 0 {
			c.spoil("the answer has several choices")
			continue
		}
		c.choice(&a.Choices[i])
	}
	c.meta(a.MetaInfo)
}

func (c *capture) choice(ch *choice) {
	if len(ch.PromptIDs) > 0 {
		c.prompt = ch.PromptIDs
	}
	c.ids = append(c.ids, ch.TokenIDs...)
	if ch.Logprobs != nil {
		for _, e := range ch.Logprobs.Content {
			c.entry(e)
		}
	}
	c.version("", ch.MetaInfo, nil)
	c.meta(ch.MetaInfo)
	if ch.Finish != "" {
		c.finish = ch.Finish
	}
	if len(ch.Message) > 0 {
		c.whole = ch.Message
	}
	if ch.Delta == nil {
		return
	}
	d := ch.Delta
	if d.Reasoning == "" {
		d.Reasoning = d.Thought
	}
	c.text.WriteString(d.Content)
	c.thought.WriteString(d.Reasoning)
	for _, t := range d.ToolCalls {
		c.tool(t)
	}
	if c.onDelta != nil {
		c.onDelta(delta{d.Content, d.Reasoning, d.ToolCalls, ch.Finish})
	}
}

// maxTools bounds the tool calls of one answer.
const maxTools = 1024

func (c *capture) tool(t toolDelta) {
	if t.Index < 0 || t.Index >= maxTools {
		c.spoil(fmt.Sprintf("the answer has tool call number %d", t.Index))
		return
	}
	for len(c.tools) <= t.Index {
		c.tools = append(c.tools, toolPart{})
	}
	p := &c.tools[t.Index]
	if t.ID != "" {
		p.ID = t.ID
	}
	if t.Function.Name != "" {
		p.Name = t.Function.Name
	}
	p.args.WriteString(t.Function.Arguments)
}

func (c *capture) entry(e entry) {
	id := int32(-1)
	switch text, called := strings.CutPrefix(e.Token, "token_id:"); {
	case e.ID != nil:
		id = *e.ID
	case e.TokenID != nil:
		id = *e.TokenID
	case called:
		if n, err := strconv.ParseInt(text, 10, 32); err == nil {
			id = int32(n)
		}
	}
	if e.Logprob == nil || math.IsNaN(*e.Logprob) || math.IsInf(*e.Logprob, 0) {
		c.spoil("the server gave a logprob that is no number")
		return
	}
	c.entries = append(c.entries, id)
	c.logprobs = append(c.logprobs, *e.Logprob)
}

// meta reads SGLang's own form, which is whole in each event: the last one counts.
func (c *capture) meta(m *metadata) {
	if m == nil {
		return
	}
	if len(m.InputIDs) > 0 {
		c.prompt = m.InputIDs
	}
	if len(m.Output) == 0 {
		return
	}
	c.entries, c.logprobs = c.entries[:0], c.logprobs[:0]
	for _, t := range m.Output {
		c.entries, c.logprobs = append(c.entries, t.id), append(c.logprobs, t.logprob)
	}
}

func (c *capture) version(plain anyText, metas ...*metadata) {
	v := string(plain)
	for _, m := range metas {
		if m != nil && m.WeightVersion != "" {
			v = string(m.WeightVersion)
		}
	}
	if v == "" {
		return
	}
	if c.versions[0] == "" {
		c.versions[0] = v
	}
	c.versions[1] = v
}

func (c *capture) spoil(why string) {
	if c.bad == "" {
		c.bad = why
	}
}

// feed takes bytes of an event stream, and gives how many of them lie before the event that ends it;
// len(data) where that has not come.
func (c *capture) feed(data []byte) int { return c.lines(data, c.event) }

// lines cuts the pieces of a stream into lines for event, until that sets done.
func (c *capture) lines(data []byte, event func([]byte)) int {
	whole := len(data)
	for at := 0; at < whole; {
		i := bytes.IndexByte(data[at:], '\n')
		if i < 0 {
			if len(c.line)+whole-at > maxLine {
				c.tooLong, c.line = true, c.line[:0]
				c.spoil("an event of the stream is too long to be read")
			} else if !c.tooLong {
				c.line = append(c.line, data[at:]...)
			}
			break
		}
		line := data[at : at+i]
		if len(c.line) > 0 {
			c.line = append(c.line, line...)
			line = c.line
		}
		start := at
		at += i + 1
		if c.tooLong {
			c.tooLong = false
			continue
		}
		event(bytes.TrimRight(line, "\r"))
		c.line = c.line[:0]
		if c.done {
			return start
		}
	}
	return whole
}

func (c *capture) event(line []byte) {
	data, ok := bytes.CutPrefix(line, []byte("data:"))
	if !ok {
		return
	}
	data = bytes.TrimSpace(data)
	if string(data) == "[DONE]" {
		c.done = true
		return
	}
	if len(data) > 0 {
		c.read(data)
	}
}

// message gives the assistant's message.
func (c *capture) message() json.RawMessage {
	if len(c.whole) > 0 {
		return c.whole
	}
	if c.text.Len() == 0 && c.thought.Len() == 0 && len(c.tools) == 0 && c.finish == "" {
		return nil
	}
	m := map[string]any{"role": "assistant", "content": c.text.String()}
	if c.thought.Len() > 0 {
		m["reasoning_content"] = c.thought.String()
	}
	if len(c.tools) > 0 {
		var calls []any
		for i := range c.tools {
			t := &c.tools[i]
			calls = append(calls, map[string]any{"id": t.ID, "type": "function", "function": map[string]any{"name": t.Name, "arguments": t.args.String()}})
		}
		m["tool_calls"] = calls
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return nil
	}
	return raw
}

// fill puts what was read into a record.
func (c *capture) fill(m *trajectory.ModelCall) {
	m.Output, m.FinishReason, m.Usage = c.message(), c.finish, c.usage
	m.VersionStart, m.VersionEnd = c.versions[0], c.versions[1]
	ids, why := c.output()
	switch {
	case c.bad != "":
		why = c.bad
	case why == "" && len(c.prompt) == 0:
		why = "the server gave no ids of the prompt's tokens"
	}
	if why != "" {
		m.TextOnly = why
		return
	}
	m.PromptIDs, m.OutputIDs, m.Logprobs = c.prompt, ids, c.logprobs
}

// output gives the ids of what was sampled, or why there are none.
func (c *capture) output() ([]int32, string) {
	ids := c.ids
	if len(ids) == 0 {
		ids = c.entries
	}
	switch {
	case len(ids) == 0 && len(c.message()) > 0:
		return nil, "the server gave no ids of the tokens that it sampled"
	case len(ids) != len(c.logprobs):
		return nil, fmt.Sprintf("the server gave %d token ids and %d logprobs", len(ids), len(c.logprobs))
	}
	for _, id := range ids {
		if id < 0 {
			return nil, "the server gave logprobs without token ids"
		}
	}
	return ids, ""
}
