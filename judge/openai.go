package judge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	openai "github.com/sashabaranov/go-openai"
	"golang.org/x/time/rate"
)

// Config is what an OpenAI-compatible judge is made from. Zero fields take the defaults named.
type Config struct {
	BaseURL     string        // with the version: "http://127.0.0.1:8000/v1"; required
	Model       string        // required
	APIKey      string        // "" for none
	Temperature float32       // 0 by default, so that decisions repeat
	MaxTokens   int           // of an answer; 400
	Timeout     time.Duration // of one try; 20 s
	Retries     int           // tries after the first; 2; negative for none
	RPS         float64       // requests a second, retries included; 0: no limit
	Concurrency int           // requests at once; 16
	MaxWait     time.Duration // longest Retry-After that is waited for; 15 s
	PriceIn     float64       // for a million tokens of prompt
	PriceOut    float64       // for a million tokens of answer
	Logger      *slog.Logger  // nil: none
}

func (c Config) withDefaults() (Config, error) {
	u, err := url.Parse(c.BaseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return c, fmt.Errorf("judge URL %q: want http://host/v1 or https://host/v1", c.BaseURL)
	}
	if c.Model == "" {
		return c, errors.New("judge model is not set: name the model that the endpoint serves")
	}
	if c.Temperature < 0 || c.Temperature > 2 {
		return c, fmt.Errorf("judge temperature %v: want 0 to 2", c.Temperature)
	}
	if c.MaxTokens <= 0 {
		c.MaxTokens = 400
	}
	if c.Timeout <= 0 {
		c.Timeout = 20 * time.Second
	}
	if c.Retries == 0 {
		c.Retries = 2
	}
	if c.Concurrency <= 0 {
		c.Concurrency = 16
	}
	if c.MaxWait <= 0 {
		c.MaxWait = 15 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// OpenAI is a judge behind an OpenAI-compatible endpoint. Safe for concurrent use.
type OpenAI struct {
	cfg    Config
	client *openai.Client
	slots  chan struct{}
	pace   *rate.Limiter
	tally  tally
}

// Usage is what a judge has used so far.
type Usage struct {
	Requests  int64   `json:"requests"` // tries included
	Failures  int64   `json:"failures"` // opinions that failed
	TokensIn  int64   `json:"tokens_in"`
	TokensOut int64   `json:"tokens_out"`
	Cost      float64 `json:"cost"` // in the price's currency
}

type tally struct{ requests, failures, in, out atomic.Int64 }

// NewOpenAI gives a judge behind an endpoint; it does not call it yet.
func NewOpenAI(cfg Config) (*OpenAI, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	cc := openai.DefaultConfig(cfg.APIKey)
	cc.BaseURL = cfg.BaseURL
	cc.HTTPClient = &http.Client{Transport: &transport{next: http.DefaultTransport.(*http.Transport).Clone()}}
	j := &OpenAI{cfg: cfg, client: openai.NewClientWithConfig(cc), slots: make(chan struct{}, cfg.Concurrency)}
	if cfg.RPS > 0 {
		j.pace = rate.NewLimiter(rate.Limit(cfg.RPS), max(1, int(cfg.RPS)))
	}
	return j, nil
}

// Name implements Judge.
func (j *OpenAI) Name() string { return "openai:" + j.cfg.Model }

// Digest implements Judge: prompt, schema, model and sampling.
func (j *OpenAI) Digest() string {
	return digest("openai", PromptHash(), j.cfg.Model, fmt.Sprint(j.cfg.Temperature), strconv.Itoa(j.cfg.MaxTokens))
}

// Usage gives what was used so far.
func (j *OpenAI) Usage() Usage {
	in, out := j.tally.in.Load(), j.tally.out.Load()
	return Usage{Requests: j.tally.requests.Load(), Failures: j.tally.failures.Load(), TokensIn: in, TokensOut: out, Cost: j.cost(int(in), int(out))}
}

func (j *OpenAI) cost(in, out int) float64 {
	return (float64(in)*j.cfg.PriceIn + float64(out)*j.cfg.PriceOut) / 1e6
}

// Judge implements Judge.
func (j *OpenAI) Judge(ctx context.Context, c Case) Opinion {
	message, err := userMessage(c)
	if err != nil {
		return j.fail(Opinion{}, FailGarbage, err.Error())
	}
	select {
	case j.slots <- struct{}{}:
		defer func() { <-j.slots }()
	case <-ctx.Done():
		return j.fail(Opinion{}, FailTimeout, "no free slot for another question in time")
	}
	return j.tries(ctx, c, message)
}

// tries asks until there is an answer, a failure that a retry cannot mend, or no time.
func (j *OpenAI) tries(ctx context.Context, c Case, message string) Opinion {
	var spent Opinion
	for try := 0; ; try++ {
		if j.pace != nil && j.pace.Wait(ctx) != nil {
			return j.fail(spent, FailRateLimited, "our own rate limit left no time for the question")
		}
		hint := &retryHint{}
		res, err := j.request(withHint(ctx, hint), message)
		spent.TokensIn += res.Usage.PromptTokens
		spent.TokensOut += res.Usage.CompletionTokens
		if err == nil {
			return j.read(c, res, spent)
		}
		failure, again := classify(ctx, err)
		j.cfg.Logger.Warn("judge request failed", "judge", j.Name(), "try", try+1, "failure", failure, "error", err)
		wait := hint.after
		if wait == 0 {
			wait = backoff(try)
		}
		if !again || try >= j.cfg.Retries || wait > j.cfg.MaxWait || !pause(ctx, wait) {
			return j.fail(spent, failure, describe(err))
		}
	}
}

// request makes one try, bounded by the timeout.
func (j *OpenAI) request(ctx context.Context, message string) (openai.ChatCompletionResponse, error) {
	ctx, stop := context.WithTimeout(ctx, j.cfg.Timeout)
	defer stop()
	j.tally.requests.Add(1)
	res, err := j.client.CreateChatCompletion(ctx, openai.ChatCompletionRequest{
		Model:       j.cfg.Model,
		Temperature: j.cfg.Temperature,
		//lint:ignore SA1019 servers of open models know this name and not max_completion_tokens
		MaxTokens: j.cfg.MaxTokens,
		Messages: []openai.ChatCompletionMessage{
			{Role: openai.ChatMessageRoleSystem, Content: systemPrompt},
			{Role: openai.ChatMessageRoleUser, Content: message},
		},
		ResponseFormat: &openai.ChatCompletionResponseFormat{
			Type:       openai.ChatCompletionResponseFormatTypeJSONSchema,
			JSONSchema: &openai.ChatCompletionResponseFormatJSONSchema{Name: "opinion", Strict: true, Schema: json.RawMessage(answerSchema)},
		},
	})
	j.tally.in.Add(int64(max(0, res.Usage.PromptTokens)))
	j.tally.out.Add(int64(max(0, res.Usage.CompletionTokens)))
	return res, err
}

// read makes the opinion of a response.
func (j *OpenAI) read(c Case, res openai.ChatCompletionResponse, spent Opinion) Opinion {
	if len(res.Choices) == 0 {
		return j.fail(spent, FailGarbage, "the response holds no choice")
	}
	choice := res.Choices[0]
	if choice.Message.Refusal != "" || choice.FinishReason == openai.FinishReasonContentFilter {
		return j.fail(spent, FailRefused, cut("refused: "+choice.Message.Refusal, 300))
	}
	if choice.FinishReason == openai.FinishReasonLength {
		return j.fail(spent, FailGarbage, "the answer was cut off at the token limit")
	}
	o, err := parseAnswer(choice.Message.Content)
	if err != nil {
		return j.fail(spent, FailGarbage, err.Error())
	}
	o = grounded(c, o)
	if o.Failure != "" {
		j.tally.failures.Add(1)
	}
	return j.account(o, spent)
}

// fail gives an unsure opinion.
func (j *OpenAI) fail(spent Opinion, failure, reason string) Opinion {
	j.tally.failures.Add(1)
	return j.account(Opinion{Verdict: Unsure, Failure: failure, Reason: cut(reason, 400)}, spent)
}

func (j *OpenAI) account(o, spent Opinion) Opinion {
	o.By = j.Name()
	o.TokensIn, o.TokensOut = max(0, spent.TokensIn), max(0, spent.TokensOut)
	o.Cost = j.cost(o.TokensIn, o.TokensOut)
	return o
}

// backoff is 0.25 s, doubled for each try, at most 8 s, less up to half by chance, so that many
// rollouts do not come back at once.
func backoff(try int) time.Duration {
	d := 250 * time.Millisecond << min(try, 5)
	return d - time.Duration(rand.Int64N(int64(d/2)))
}

// pause waits, and reports whether ctx let it.
func pause(ctx context.Context, d time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < d {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
