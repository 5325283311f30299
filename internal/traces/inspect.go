package traces

import (
	"encoding/json"
	"fmt"
	"strings"
)

// fitsInspect takes a log (.json) or one sample of a .eval archive.
func fitsInspect(o object) bool {
	return o.has("eval", "samples") || o.has("id", "epoch", "messages")
}

// sample is one sample of an Inspect log.
type sample struct {
	ID          json.RawMessage   `json:"id"`
	Epoch       int               `json:"epoch"`
	Input       json.RawMessage   `json:"input"`
	Messages    []json.RawMessage `json:"messages"`
	Attachments map[string]string `json:"attachments"`
}

// readInspect reads a log or a sample.
func readInspect(_ *Document, o object) ([]*Trace, error) {
	var samples []json.RawMessage
	if !o.has("eval", "samples") {
		t, err := readSample(object(o))
		return one(t, err)
	}
	if err := json.Unmarshal(o["samples"], &samples); err != nil {
		return nil, fmt.Errorf("samples: %w", err)
	}
	var out []*Trace
	for i, raw := range samples {
		var s object
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, fmt.Errorf("sample %d: %w", i+1, err)
		}
		t, err := readSample(s)
		if err != nil {
			return nil, fmt.Errorf("sample %d: %w", i+1, err)
		}
		out = append(out, t)
	}
	return out, nil
}

func readSample(o object) (*Trace, error) {
	var s sample
	for key, into := range map[string]any{"id": &s.ID, "epoch": &s.Epoch, "messages": &s.Messages, "attachments": &s.Attachments, "input": &s.Input} {
		if raw, ok := o[key]; ok {
			if err := json.Unmarshal(raw, into); err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
		}
	}
	id := object{"id": s.ID}.first("id")
	if len(s.Attachments) > 0 {
		for i, m := range s.Messages {
			s.Messages[i] = attach(m, s.Attachments)
		}
	}
	t, err := readTalk(s.Messages)
	if err != nil {
		return nil, err
	}
	t.ID, t.Task = id, id
	if s.Epoch > 1 {
		t.ID = fmt.Sprintf("%s_epoch_%d", id, s.Epoch)
	}
	var input string
	if json.Unmarshal(s.Input, &input) == nil {
		t.Instruction = input
	}
	return t, nil
}

// attach puts attachments in the place of the references to them: Inspect keeps long texts apart.
func attach(message json.RawMessage, attachments map[string]string) json.RawMessage {
	if !strings.Contains(string(message), "attachment://") {
		return message
	}
	var v any
	if json.Unmarshal(message, &v) != nil {
		return message
	}
	out, err := json.Marshal(resolve(v, attachments))
	if err != nil {
		return message
	}
	return out
}

func resolve(v any, attachments map[string]string) any {
	switch v := v.(type) {
	case string:
		if id, ok := strings.CutPrefix(v, "attachment://"); ok {
			if text, ok := attachments[id]; ok {
				return text
			}
		}
	case []any:
		for i := range v {
			v[i] = resolve(v[i], attachments)
		}
	case map[string]any:
		for k := range v {
			v[k] = resolve(v[k], attachments)
		}
	}
	return v
}
