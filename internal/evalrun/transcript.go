package evalrun

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	openai "github.com/sashabaranov/go-openai"
)

// Kinds of transcript entries.
const (
	kindProtocol = "protocol" // which one is spoken, where the endpoint had to be asked
	kindReply    = "reply"    // what the model said
	kindShown    = "shown"    // what it was answered
	kindSummary  = "summary"  // what takes the place of all that was said so far
	kindCut      = "cut"      // earlier answers were shortened
)

// entry is a line of a transcript.
type entry struct {
	Kind      string                        `json:"kind"`
	Turn      int                           `json:"turn"`
	Message   *openai.ChatCompletionMessage `json:"message,omitempty"`
	Protocol  string                        `json:"protocol,omitempty"`
	TokensIn  int                           `json:"tokens_in,omitempty"`
	TokensOut int                           `json:"tokens_out,omitempty"`
	Seconds   float64                       `json:"seconds"` // of the agent's part so far, over all sittings
}

// talk is a conversation as it stands, rebuilt from its transcript.
type talk struct {
	log      *appendLog
	protocol string
	head     func(protocol string) []openai.ChatCompletionMessage // how it opens

	messages    []openai.ChatCompletionMessage // after the head
	turn        int                            // replies so far
	in, out     int                            // tokens so far
	last        int                            // tokens of the last prompt and its reply
	idle        int                            // replies without a call, in a row
	compactions int
	seconds     float64
}

// openTalk opens a transcript and plays it.
func openTalk(path, protocol string, head func(string) []openai.ChatCompletionMessage) (*talk, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	t := &talk{protocol: protocol, head: head}
	log, err := openLog(path, func(line []byte) error {
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		t.play(&e)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("transcript: %w", err)
	}
	t.log = log
	return t, nil
}

// note appends an entry, then lets the conversation follow.
func (t *talk) note(e entry) error {
	e.Turn = t.turn
	if e.Kind == kindReply {
		e.Turn++
	}
	if err := t.log.Append(e); err != nil {
		return fmt.Errorf("transcript: %w", err)
	}
	t.play(&e)
	return nil
}

func (t *talk) play(e *entry) {
	t.seconds = max(t.seconds, e.Seconds)
	t.in += e.TokensIn
	t.out += e.TokensOut
	switch e.Kind {
	case kindProtocol:
		t.protocol = e.Protocol
	case kindReply:
		t.turn++
		t.last = e.TokensIn + e.TokensOut
		t.messages = append(t.messages, *e.Message)
		if t.idle++; len(callsOf(e.Message, t.protocol)) > 0 {
			t.idle = 0
		}
	case kindShown:
		t.messages = append(t.messages, *e.Message)
		t.last += len(e.Message.Content) / bytesPerToken
	case kindSummary:
		t.compactions++
		t.messages, t.last = []openai.ChatCompletionMessage{*e.Message}, 0
	case kindCut:
		t.compactions++
		t.shorten()
	}
}

// prompt gives the messages to send.
func (t *talk) prompt() []openai.ChatCompletionMessage {
	return append(t.head(t.protocol), t.messages...)
}

// pending gives the calls of the last reply that were not answered yet, and how many messages followed
// it. After a summary there is no such reply.
func (t *talk) pending() (calls []modelCall, answered int) {
	for i := len(t.messages) - 1; i >= 0; i-- {
		m := &t.messages[i]
		if m.Role == openai.ChatMessageRoleAssistant {
			calls = callsOf(m, t.protocol)
			return calls[min(answered, len(calls)):], answered
		}
		answered++
	}
	return nil, answered
}

// shorten cuts the answers of the older half to their beginnings.
func (t *talk) shorten() {
	for i := range len(t.messages) / 2 {
		m := &t.messages[i]
		if m.Role != openai.ChatMessageRoleAssistant && len(m.Content) > 400 {
			m.Content = cut(m.Content, 200) + "\n(the rest was left out for length)"
		}
	}
	t.last = 0
}
