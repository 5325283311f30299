package gateway

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// Anthropic's requests reach a server that speaks OpenAI's protocol, and its answers come back as
// Anthropic's: whole and as events.
func TestAnthropicTranslated(t *testing.T) {
	w := newWorld(t)
	w.says("vllm.json")
	status, _, got := w.ask(message, claude)
	var m struct {
		Type, Role string
		Content    []struct {
			Type, Text, ID, Name string
			Input                map[string]string
		}
		Stop string `json:"stop_reason"`
	}
	if err := json.Unmarshal([]byte(got), &m); err != nil || status != 200 {
		t.Fatalf("%d %s", status, got)
	}
	if m.Type != "message" || m.Stop != "tool_use" || len(m.Content) != 2 || m.Content[0].Text != "Hi" || m.Content[1].Input["command"] != "ls" || m.Content[1].ID != "call_1" {
		t.Errorf("message %s", got)
	}
	var sent struct {
		Messages []struct{ Role, Content string }
		Tools    []struct{ Function struct{ Name string } }
		Max      int `json:"max_tokens"`
	}
	if err := json.Unmarshal([]byte(w.asked[0]), &sent); err != nil || len(sent.Messages) != 2 || sent.Messages[0].Role != "system" || sent.Messages[1].Content != "Hello" ||
		len(sent.Tools) != 1 || sent.Tools[0].Function.Name != "bash" || sent.Max != 100 {
		t.Errorf("sent %s: %v", w.asked[0], err)
	}
	w.says("vllm.sse")
	status, header, got := w.ask(message, strings.Replace(claude, `"max_tokens"`, `"stream": true, "max_tokens"`, 1))
	if status != 200 || !strings.HasPrefix(header.Get("Content-Type"), "text/event-stream") {
		t.Errorf("%d %v", status, header)
	}
	var kinds []string
	for _, line := range strings.Split(got, "\n") {
		if kind, ok := strings.CutPrefix(line, "event: "); ok {
			kinds = append(kinds, kind)
		}
	}
	want := "message_start content_block_start content_block_delta content_block_delta content_block_stop " +
		"content_block_start content_block_delta content_block_delta content_block_stop message_delta message_stop"
	if strings.Join(kinds, " ") != want {
		t.Errorf("events %v\n%s", kinds, got)
	}
	for _, c := range w.calls(2) {
		if c.TextOnly != "" || c.Protocol != "anthropic" || len(c.PromptIDs) != 3 {
			t.Errorf("recorded %+v", c)
		}
	}
}

// A server that speaks Anthropic's protocol is passed through, and recorded as text.
func TestAnthropicPassedThrough(t *testing.T) {
	for _, file := range []string{"anthropic.json", "anthropic.sse"} {
		w := newWorld(t)
		w.target.Dialect = "anthropic"
		w.says(file)
		status, _, got := w.ask(message, claude)
		want, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if status != 200 || got != string(want) || w.paths[0] != "/v1/messages" {
			t.Errorf("%s: %d from %v\n%s", file, status, w.paths, got)
		}
		c := w.calls(1)[0]
		if c.TextOnly != noIDs || c.FinishReason != "tool_calls" || !strings.Contains(string(c.Output), `\"ls\"`) || c.Usage == nil || c.Usage.Output != 2 {
			t.Errorf("%s: recorded %+v output %s usage %+v", file, c, c.Output, c.Usage)
		}
		if status, _, got := w.ask(chat, hello); status != 400 || !strings.Contains(got, "Anthropic") {
			t.Errorf("OpenAI's protocol: %d %s", status, got)
		}
	}
}

func TestAnthropicHistory(t *testing.T) {
	w := newWorld(t)
	w.says("vllm.json")
	w.ask(message, `{"model": "m", "max_tokens": 5, "messages": [
		{"role": "user", "content": "Go"},
		{"role": "assistant", "content": [{"type": "text", "text": "I look."}, {"type": "tool_use", "id": "t1", "name": "bash", "input": {"command": "ls"}}]},
		{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "a.py"}]}, {"type": "text", "text": "and now?"}]}]}`)
	want := `[{"content":"Go","role":"user"},{"content":"I look.","role":"assistant","tool_calls":[{"function":{"arguments":"{\"command\":\"ls\"}","name":"bash"},"id":"t1","type":"function"}]},` +
		`{"content":"a.py","role":"tool","tool_call_id":"t1"},{"content":"and now?","role":"user"}]`
	if got, err := json.Marshal(w.calls(1)[0].Messages); err != nil || string(got) != want {
		t.Errorf("messages\n%s\nwant\n%s", got, want)
	}
}
