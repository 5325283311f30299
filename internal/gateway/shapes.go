package gateway

import (
	"encoding/json"
	"fmt"
	"strings"
)

// delta is one part of a streamed answer.
type delta struct {
	text, reasoning string
	tools           []toolDelta
	finish          string
}

type toolPart struct {
	ID, Name string
	args     strings.Builder
}

type toolDelta struct {
	Index    int    `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// maxLine bounds one event of a stream, in bytes; a longer one is passed on and not read.
const maxLine = 32 << 20

type answer struct {
	PromptIDs     []int32   `json:"prompt_token_ids"`
	Choices       []choice  `json:"choices"`
	Usage         *usage    `json:"usage"`
	Fingerprint   string    `json:"system_fingerprint"`
	WeightVersion anyText   `json:"weight_version"`
	Metadata      *metadata `json:"metadata"`
	MetaInfo      *metadata `json:"meta_info"`
	Timings       *struct{} `json:"timings"` // llama.cpp's own
}

type usage struct {
	Prompt int `json:"prompt_tokens"`
	Output int `json:"completion_tokens"`
}

type metadata struct {
	WeightVersion anyText  `json:"weight_version"`
	InputIDs      []int32  `json:"input_token_ids"`
	Output        []triple `json:"output_token_logprobs"`
}

type choice struct {
	Index    int             `json:"index"`
	Message  json.RawMessage `json:"message"`
	Delta    *deltaBody      `json:"delta"`
	Finish   string          `json:"finish_reason"`
	Logprobs *struct {
		Content []entry `json:"content"`
	} `json:"logprobs"`
	TokenIDs  []int32   `json:"token_ids"`
	PromptIDs []int32   `json:"prompt_token_ids"`
	MetaInfo  *metadata `json:"meta_info"`
}

type deltaBody struct {
	Role      string      `json:"role"`
	Content   string      `json:"content"`
	Reasoning string      `json:"reasoning_content"`
	Thought   string      `json:"reasoning"`
	ToolCalls []toolDelta `json:"tool_calls"`
}

type entry struct {
	Token   string   `json:"token"`
	ID      *int32   `json:"id"`
	TokenID *int32   `json:"token_id"`
	Logprob *float64 `json:"logprob"`
}

// triple is SGLang's [logprob, id, text].
type triple struct {
	logprob float64
	id      int32
}

// UnmarshalJSON reads [logprob, id, ...].
func (t *triple) UnmarshalJSON(raw []byte) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(raw, &parts); err != nil {
		return err
	}
	if len(parts) < 2 {
		return fmt.Errorf("output_token_logprobs has an entry of %d parts", len(parts))
	}
	if err := json.Unmarshal(parts[0], &t.logprob); err != nil {
		return err
	}
	return json.Unmarshal(parts[1], &t.id)
}

// anyText is text, or a number as text.
type anyText string

// UnmarshalJSON reads text and numbers; all else is "".
func (a *anyText) UnmarshalJSON(raw []byte) error {
	var text string
	var n json.Number
	switch {
	case json.Unmarshal(raw, &text) == nil:
		*a = anyText(text)
	case json.Unmarshal(raw, &n) == nil:
		*a = anyText(n.String())
	}
	return nil
}
