package critic

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	openai "github.com/sashabaranov/go-openai"
)

// Client asks an OpenAI-compatible critic. Safe for concurrent use.
type Client struct {
	BaseURL     string // with /v1
	Model       string
	APIKey      string
	Timeout     time.Duration // of one question; 0: two minutes
	MaxTokens   int           // of one answer; 0: 1024
	Temperature float32
	Concurrency int // questions at a time; 0: 8
}

// Value is a critic's word on one state.
type Value struct {
	Kind         string   `json:"kind"`
	Ordinal      int      `json:"ordinal"`
	Value        *float64 `json:"value"` // null: it did not parse, or the critic failed
	Text         string   `json:"text,omitempty"`
	PromptSHA256 string   `json:"prompt_sha256"`
	StateSHA256  string   `json:"state_sha256"`
	TokensIn     int      `json:"tokens_in"`
	TokensOut    int      `json:"tokens_out"`
	Error        string   `json:"error,omitempty"` // why the critic gave nothing; empty for an answer that did not parse
}

// maxText is how much of a critic's reasoning is kept.
const maxText = 16 << 10

// ErrNoCritic is given where no critic is configured.
var ErrNoCritic = errors.New("no critic: name base_url and model")

// Ask asks about every state, some at a time, and gives a value for each in order. A critic that fails on
// one state fails on that one only. An error is a missing configuration or a cancelled ctx.
func (c *Client) Ask(ctx context.Context, states []State, cond Conditioning) ([]Value, error) {
	if c.BaseURL == "" || c.Model == "" {
		return nil, ErrNoCritic
	}
	config := openai.DefaultConfig(c.APIKey)
	config.BaseURL = c.BaseURL
	api := openai.NewClientWithConfig(config)
	places := make(chan struct{}, max(1, orInt(c.Concurrency, 8)))
	values := make([]Value, len(states))
	var wg sync.WaitGroup
	for i, s := range states {
		wg.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			values[i] = c.one(ctx, api, s, cond)
		})
	}
	wg.Wait()
	return values, ctx.Err()
}

func (c *Client) one(ctx context.Context, api *openai.Client, s State, cond Conditioning) Value {
	p := Ask(s, cond)
	v := Value{Kind: s.Kind, Ordinal: s.Ordinal, PromptSHA256: p.SHA256, StateSHA256: s.SHA256}
	timeout := c.Timeout
	if timeout == 0 {
		timeout = 2 * time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	res, err := api.CreateChatCompletion(ctx, openai.ChatCompletionRequest{
		Model: c.Model, Temperature: c.Temperature,
		//lint:ignore SA1019 the servers that critics run on know no other name
		MaxTokens: orInt(c.MaxTokens, 1024),
		Messages:  []openai.ChatCompletionMessage{{Role: "system", Content: p.System}, {Role: "user", Content: p.User}},
	})
	if err != nil {
		v.Error = cut(fmt.Sprintf("ask the critic: %v", err), 512)
		return v
	}
	v.TokensIn, v.TokensOut = res.Usage.PromptTokens, res.Usage.CompletionTokens
	if len(res.Choices) == 0 {
		v.Error = "the critic's answer has no choices"
		return v
	}
	v.Text = cut(res.Choices[0].Message.Content, maxText)
	if x, ok := ParseAnswer(res.Choices[0].Message.Content); ok {
		v.Value = &x
	}
	return v
}

func orInt(n, or int) int {
	if n > 0 {
		return n
	}
	return or
}
