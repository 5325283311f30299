package export

import (
	"bytes"
	"encoding/json"
	"testing"

	"proctor/internal/trajectory"
	"proctor/internal/trajectory/trajtest"
)

// Messages are passed on as they are stored. That is what encoding them anew gives, byte for byte.
func TestRawsIsValue(t *testing.T) {
	for seed := range uint64(10) {
		for _, c := range trajtest.Random(seed, 10).Calls {
			list := append(append([]json.RawMessage{}, c.Messages...), c.Output)
			for i := range list { // as package records stores them
				list[i] = enc(list[i])
			}
			var fast, slow line
			fast.raws("m", list)
			slow.value("m", list)
			if !bytes.Equal(fast.b, slow.b) {
				t.Fatalf("passed on\n%s\nencoded\n%s", fast.b, slow.b)
			}
		}
	}
}

// A message that does not hold the word assistant is none of the assistant's.
func TestWeighedSkips(t *testing.T) {
	w := &writer{Rollout: &Rollout{}}
	for _, raw := range []string{
		`{"role":"user","content":"x"}`, `{"role":"assistant","content":"x"}`, `{"content":"assistant","role":"user"}`, `{"role":"tool","content":"an \"assistant\" says"}`,
		`{"content":null,"role":"assistant","tool_calls":[]}`, `{"role":"\u0061ssistant","content":"\"role\":\"user\""}`,
	} {
		var m struct{ Role string }
		if err := json.Unmarshal([]byte(raw), &m); err != nil {
			t.Fatal(err)
		}
		got := w.weighed(json.RawMessage(raw), nil, 0)
		if weighed := bytes.Contains(got, []byte(`"weight":1`)); weighed != (m.Role == "assistant") {
			t.Errorf("%s comes out as %s", raw, got)
		}
		if m.Role != "assistant" && string(got) != raw {
			t.Errorf("%s is changed to %s", raw, got)
		}
	}
}

// Said is ParseMessage.
func TestSaidIsParsed(t *testing.T) {
	for _, c := range trajtest.Random(2, 10).Calls {
		want, err1 := trajectory.ParseMessage(c.Output)
		for range 2 {
			if got, err2 := c.Said(); (err1 == nil) != (err2 == nil) || got.Content != want.Content || len(got.ToolCalls) != len(want.ToolCalls) {
				t.Fatalf("said %+v %v, parsed %+v %v", got, err2, want, err1)
			}
		}
	}
}
