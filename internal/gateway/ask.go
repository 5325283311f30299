package gateway

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"proctor/internal/trajectory"
)

// ask is a request of a client, understood.
type ask struct {
	rollout string
	front   front
	target  Target
	key     string            // Idempotency-Key
	sum     [sha256.Size]byte // of protocol and body, as the client sent it
	kind    string            // declared, "" for not
	stream  bool
	logs    bool // the client wants logprobs itself

	fields   map[string]json.RawMessage // of the request in OpenAI's form
	raw      []byte                     // the request as it came, where the server speaks the client's protocol
	messages []json.RawMessage
	started  time.Time
}

// front is a protocol that clients speak.
type front interface {
	name() string
	// parse fills fields, messages, stream and logs of an ask from the body.
	parse(a *ask, body map[string]json.RawMessage) error
	// failure gives the body of an error in the protocol's form.
	failure(status int, code, message string) []byte
	// whole gives a recorded call as an answer that is no stream.
	whole(a *ask, c *trajectory.ModelCall) []byte
	// events gives a recorded call as a stream.
	events(a *ask, c *trajectory.ModelCall) []byte
	// translator turns the parts of an OpenAI stream into the protocol's; nil where they are the same.
	translator(a *ask, out func([]byte)) translator
}

// translator is told of the parts of an answer in turn.
type translator interface {
	delta(d delta)
	end(c *trajectory.ModelCall)
}

// refusal is an answer that is none of the policy's.
type refusal struct {
	status int
	code   string
	words  string
	after  string // Retry-After
}

func (r *refusal) Error() string { return r.words }

func refuse(status int, code, format string, args ...any) *refusal {
	return &refusal{status: status, code: code, words: fmt.Sprintf(format, args...)}
}

// understand reads a request.
func (g *Gateway) understand(r *http.Request, f front, rollout string, target Target) (*ask, error) {
	a := &ask{rollout: rollout, front: f, target: target, key: r.Header.Get("Idempotency-Key"), started: time.Now()}
	if len(a.key) > 512 {
		return nil, refuse(http.StatusBadRequest, "bad_request", "the Idempotency-Key is longer than 512 bytes")
	}
	if a.kind = r.Header.Get("X-Call-Kind"); a.kind != "" && !slices.Contains(trajectory.Kinds(), a.kind) {
		return nil, refuse(http.StatusBadRequest, "bad_request", "header X-Call-Kind is %.40q; it must be one of %v", a.kind, trajectory.Kinds())
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, bodyLimit+1))
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "bad_request", "the body could not be read whole")
	}
	if len(body) > bodyLimit {
		return nil, refuse(http.StatusRequestEntityTooLarge, "body_too_large", "a request may have %d bytes", bodyLimit)
	}
	h := sha256.New()
	h.Write([]byte(f.name() + "\x00"))
	h.Write(body)
	h.Sum(a.sum[:0])
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil || fields == nil {
		return nil, refuse(http.StatusBadRequest, "bad_request", "the body must be a JSON object%s", because(err))
	}
	a.raw = body
	if target.Dialect == "anthropic" && f.name() != "anthropic" {
		return nil, refuse(http.StatusBadRequest, "bad_request", "this policy's server speaks Anthropic's protocol alone; ask at .../anthropic/v1/messages")
	}
	if err := f.parse(a, fields); err != nil {
		return nil, err
	}
	if len(a.messages) == 0 {
		return nil, refuse(http.StatusBadRequest, "bad_request", "field messages must be a list of at least one message")
	}
	return a, nil
}

func because(err error) string {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Sprintf(": %v at byte %d", syntax, syntax.Offset)
	}
	return ""
}

// own are the fields that the gateway adds, so that the server gives token ids.
var own = map[string]json.RawMessage{"logprobs": json.RawMessage("true"), "return_token_ids": json.RawMessage("true")}

// body gives the request that is sent on; plain leaves out what OpenAI's own servers refuse.
func (a *ask) body(plain bool) ([]byte, error) {
	out := make(map[string]json.RawMessage, len(a.fields)+3)
	for k, v := range a.fields {
		out[k] = v
	}
	if a.target.Model != "" {
		name, err := json.Marshal(a.target.Model)
		if err != nil {
			return nil, err
		}
		out["model"] = name
	}
	for k, v := range own {
		if _, there := out[k]; (!there || string(bytes.TrimSpace(out[k])) == "false") && !plain {
			out[k] = v
		}
	}
	return json.Marshal(out)
}

// sampled are the request's fields that say how it was sampled.
var sampled = []string{"temperature", "top_p", "top_k", "min_p", "max_tokens", "max_completion_tokens", "seed", "stop", "presence_penalty",
	"frequency_penalty", "repetition_penalty", "logit_bias", "reasoning_effort", "response_format", "tool_choice", "chat_template_kwargs"}

// record gives the model call of an ask, without its answer.
func (a *ask) record() *trajectory.ModelCall {
	c := &trajectory.ModelCall{
		Kind: a.kind, Declared: a.kind != "", Protocol: a.front.name(), Model: a.target.Model, Messages: a.messages, Tools: a.fields["tools"],
		StartedAt: a.started.UTC(),
	}
	if c.Kind == "" {
		c.Kind = trajectory.KindAction
	}
	if c.Model == "" {
		_ = json.Unmarshal(a.fields["model"], &c.Model) // a name that is no text is the server's to refuse
	}
	sampling := map[string]json.RawMessage{}
	for _, k := range sampled {
		if v, ok := a.fields[k]; ok {
			sampling[k] = v
		}
	}
	if len(sampling) > 0 {
		c.Sampling, _ = json.Marshal(sampling) // raw JSON as it came
	}
	return c
}

// openaiFront is OpenAI's chat completions.
type openaiFront struct{}

func (openaiFront) name() string { return "openai" }

func (openaiFront) parse(a *ask, body map[string]json.RawMessage) error {
	a.fields = body
	if n, ok := body["n"]; ok && string(n) != "1" && string(n) != "null" {
		return refuse(http.StatusBadRequest, "bad_request", "field n is %.20s; one answer a request is recorded: make several requests", n)
	}
	if err := json.Unmarshal(body["messages"], &a.messages); err != nil {
		return refuse(http.StatusBadRequest, "bad_request", "field messages must be a list")
	}
	for i, m := range a.messages {
		if _, err := trajectory.ParseMessage(m); err != nil {
			return refuse(http.StatusBadRequest, "bad_request", "field messages[%d] is no chat message", i)
		}
	}
	_ = json.Unmarshal(body["stream"], &a.stream) // the server refuses what is no truth value
	_ = json.Unmarshal(body["logprobs"], &a.logs)
	return nil
}

func (openaiFront) failure(status int, code, message string) []byte {
	kind := "invalid_request_error"
	if status >= 500 {
		kind = "server_error"
	}
	raw, err := json.Marshal(map[string]any{"error": map[string]any{"message": message, "type": kind, "param": nil, "code": code}})
	if err != nil {
		return []byte(`{"error":{}}`)
	}
	return raw
}

func (openaiFront) translator(*ask, func([]byte)) translator { return nil }

func (openaiFront) whole(a *ask, c *trajectory.ModelCall) []byte {
	ch := map[string]any{"index": 0, "message": c.Output, "finish_reason": orNull(c.FinishReason), "logprobs": logprobs(a, c)}
	if c.OutputIDs != nil {
		ch["token_ids"] = c.OutputIDs
	}
	out := envelope(a, c, "chat.completion", ch)
	if c.PromptIDs != nil {
		out["prompt_token_ids"] = c.PromptIDs
	}
	return mustJSON(out)
}

func (openaiFront) events(a *ask, c *trajectory.ModelCall) []byte {
	d := map[string]json.RawMessage{}
	_ = json.Unmarshal(c.Output, &d) // recorded by us
	var calls []map[string]any
	if json.Unmarshal(d["tool_calls"], &calls) == nil && calls != nil {
		for i := range calls {
			calls[i]["index"] = i
		}
		d["tool_calls"] = mustJSON(calls)
	}
	first := map[string]any{"index": 0, "delta": d, "finish_reason": nil, "logprobs": logprobs(a, c)}
	if c.OutputIDs != nil {
		first["token_ids"] = c.OutputIDs
	}
	head := envelope(a, c, "chat.completion.chunk", first)
	delete(head, "usage")
	if c.PromptIDs != nil {
		head["prompt_token_ids"] = c.PromptIDs
	}
	tail := envelope(a, c, "chat.completion.chunk", map[string]any{"index": 0, "delta": struct{}{}, "finish_reason": orNull(c.FinishReason)})
	var b bytes.Buffer
	fmt.Fprintf(&b, "data: %s\n\ndata: %s\n\ndata: [DONE]\n\n", mustJSON(head), mustJSON(tail))
	return b.Bytes()
}

func envelope(a *ask, c *trajectory.ModelCall, object string, ch any) map[string]any {
	out := map[string]any{"id": fmt.Sprintf("chatcmpl-%x", a.sum[:12]), "object": object, "created": c.StartedAt.Unix(), "model": c.Model, "choices": []any{ch}}
	if c.Usage != nil {
		out["usage"] = map[string]int{"prompt_tokens": c.Usage.Prompt, "completion_tokens": c.Usage.Output, "total_tokens": c.Usage.Prompt + c.Usage.Output}
	}
	return out
}

// logprobs gives the logprobs of a recorded call to a client that asked for them. What each token
// looks like is not recorded.
func logprobs(a *ask, c *trajectory.ModelCall) any {
	if !a.logs || c.Logprobs == nil {
		return nil
	}
	list := make([]any, len(c.Logprobs))
	for i, lp := range c.Logprobs {
		list[i] = map[string]any{"token": fmt.Sprintf("token_id:%d", c.OutputIDs[i]), "logprob": lp, "bytes": nil, "top_logprobs": []any{}}
	}
	return map[string]any{"content": list, "refusal": nil}
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// mustJSON encodes what was made of JSON values and always encodes.
func mustJSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return raw
}
