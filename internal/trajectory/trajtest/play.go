// Package trajtest plays conversations of an agent with a made-up model and gives them as model
// calls: for tests of what reads records. The model "tokenises" one byte a token, so that what ought
// to come out can be said without a tokenizer.
package trajtest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"proctor/internal/trajectory"
)

// Play is a conversation under way.
type Play struct {
	Calls []*trajectory.ModelCall
	// Messages are the history that the next prompt is made of.
	Messages []json.RawMessage
	// Expect are what the model call of each ordinal must come out as.
	Expect map[int]Want

	rng     *rand.Rand
	tools   int
	drifted bool
}

// Want is what a model call must come out as.
type Want struct {
	Cause   string // of the segment that it begins; "" where it goes on with one
	Trained bool
}

// New begins a conversation.
func New(seed uint64) *Play {
	p := &Play{rng: rand.New(rand.NewPCG(seed, 7)), Expect: map[int]Want{}}
	p.Messages = []json.RawMessage{Msg("system", "You are a coding agent."), Msg("user", "Fix the bug in intervals/merge.py.")}
	return p
}

// Msg gives a chat message.
func Msg(role, text string) json.RawMessage {
	raw, err := json.Marshal(map[string]string{"role": role, "content": text})
	if err != nil {
		panic(err)
	}
	return raw
}

// Tokens gives the "token ids" of messages as a prompt: each closed, and the opening of an answer.
func Tokens(messages []json.RawMessage) []int32 {
	var ids []int32
	for _, m := range messages {
		parsed, err := trajectory.ParseMessage(m)
		if err != nil {
			panic(err)
		}
		if parsed.Role == "assistant" {
			ids = append(ids, Answer(m)...)
			continue
		}
		ids = append(ids, 1001)
		ids = append(ids, text(parsed.Role+"\n"+parsed.Content)...)
		ids = append(ids, 1002, 1003) // the end, and the opening of what comes next
	}
	return ids
}

// Answer gives the ids that a message is sampled as.
func Answer(m json.RawMessage) []int32 {
	parsed, err := trajectory.ParseMessage(m)
	if err != nil {
		panic(err)
	}
	ids := text(parsed.Content)
	for _, c := range parsed.ToolCalls {
		ids = append(ids, text(c.Name+c.Arguments)...)
	}
	return append(ids, 1004)
}

func text(s string) []int32 {
	ids := make([]int32, len(s))
	for i := range len(s) {
		ids[i] = int32(s[i])
	}
	return ids
}

// Sample asks the model with the messages at hand and records the call; the answer is not taken
// into the history.
func (p *Play) Sample(answer json.RawMessage, change ...func(*trajectory.ModelCall)) *trajectory.ModelCall {
	c := &trajectory.ModelCall{
		Ordinal: len(p.Calls) + 1, Kind: trajectory.KindAction, Protocol: "openai", Model: "m", Messages: slices.Clone(p.Messages),
		PromptIDs: Tokens(p.Messages), OutputIDs: Answer(answer), Output: answer, FinishReason: "stop", Status: 200,
		VersionStart: "step-1", VersionEnd: "step-1", StartedAt: time.Unix(1_800_000_000, 0).UTC().Add(time.Duration(len(p.Calls)) * time.Second), DurationMS: 500,
	}
	if p.drifted {
		// The server makes another token of the answer before, once.
		c.PromptIDs[len(c.PromptIDs)-len(Tokens(p.Messages[len(p.Messages)-1:]))-2]++
		p.drifted = false
	}
	for range c.OutputIDs {
		c.Logprobs = append(c.Logprobs, -p.rng.ExpFloat64())
	}
	for _, f := range change {
		f(c)
	}
	p.Calls = append(p.Calls, c)
	return c
}

// Bash gives an assistant's message that calls bash, and the id of its tool call.
func (p *Play) Bash(say, command string) (json.RawMessage, string) {
	p.tools++
	id := fmt.Sprintf("call_%d", p.tools)
	args, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		panic(err)
	}
	raw, err := json.Marshal(map[string]any{"role": "assistant", "content": say, "tool_calls": []any{map[string]any{
		"id": id, "type": "function", "function": map[string]string{"name": "bash", "arguments": string(args)}}}})
	if err != nil {
		panic(err)
	}
	return raw, id
}

// Turn asks, and takes the answer and what the tool gave into the history.
func (p *Play) Turn(command, output string, change ...func(*trajectory.ModelCall)) (*trajectory.ModelCall, string) {
	answer, id := p.Bash(fmt.Sprintf("Step %d.", p.tools), command)
	c := p.Sample(answer, change...)
	p.Take(answer, id, output)
	return c, id
}

// Take adds an answer and its tool's output to the history.
func (p *Play) Take(answer json.RawMessage, id, output string) {
	result, err := json.Marshal(map[string]string{"role": "tool", "tool_call_id": id, "content": output})
	if err != nil {
		panic(err)
	}
	p.Messages = append(p.Messages, answer, result)
}

// Drift makes the next prompt's tokens differ from what was sampled, at the same text.
func (p *Play) Drift() { p.drifted = true }
