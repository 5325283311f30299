package evalrun

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	openai "github.com/sashabaranov/go-openai"
)

// What is wrong with an endpoint.
const (
	EndpointDown      = "down"
	EndpointSlow      = "slow"
	EndpointMalformed = "malformed"
	EndpointLimited   = "rate limited"
	EndpointRefuses   = "refuses"
)

// EndpointError is a model's endpoint that gave no usable answer, after all tries.
type EndpointError struct {
	What   string
	Status int // of HTTP, 0 for none
	Err    error
}

func (e *EndpointError) Error() string {
	text := "the model's endpoint " + map[string]string{EndpointDown: "is down", EndpointSlow: "is too slow", EndpointMalformed: "answers nonsense",
		EndpointLimited: "is at its rate limit", EndpointRefuses: "refuses"}[e.What]
	if e.Status > 0 {
		text += fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	return text + ": " + cut(e.Err.Error(), 300)
}

// Unwrap gives the cause.
func (e *EndpointError) Unwrap() error { return e.Err }

// maxReply bounds an answer: the longest replies of reasoning models take some hundred KiB.
const maxReply = 16 << 20

// Endpoint is a model behind an OpenAI-compatible API. Safe for concurrent use.
type Endpoint struct {
	Tries   int           // 0: 6
	Timeout time.Duration // of one request; 0: 10 minutes
	Pause   time.Duration // before the second try, doubled each time; 0: 1 second

	client *openai.Client
}

// NewEndpoint gives an endpoint at base.
func NewEndpoint(base, key string) *Endpoint {
	c := openai.DefaultConfig(key)
	c.BaseURL = strings.TrimRight(base, "/")
	c.HTTPClient = &http.Client{Transport: &hinting{http.DefaultTransport}}
	return &Endpoint{client: openai.NewClientWithConfig(c)}
}

// hinting bounds what is read, and notes Retry-After, which go-openai does not hand on.
type hinting struct{ next http.RoundTripper }

type hintKey struct{}

// RoundTrip implements http.RoundTripper.
func (h *hinting) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := h.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if after, ok := req.Context().Value(hintKey{}).(*time.Duration); ok {
		if s, err := strconv.ParseFloat(res.Header.Get("Retry-After"), 64); err == nil && s > 0 {
			*after = time.Duration(min(s, 300) * float64(time.Second))
		}
	}
	res.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(res.Body, maxReply), res.Body}
	return res, nil
}

// Ask gives a model's reply. It tries again where that may help; the error is an *EndpointError, or
// ctx's.
func (e *Endpoint) Ask(ctx context.Context, req openai.ChatCompletionRequest) (openai.ChatCompletionResponse, error) {
	tries, pause := cmp.Or(e.Tries, 6), cmp.Or(e.Pause, time.Second)
	for n := 1; ; n++ {
		var after time.Duration
		res, err := e.once(context.WithValue(ctx, hintKey{}, &after), req)
		if err == nil {
			return res, nil
		}
		if ctx.Err() != nil {
			return res, ctx.Err()
		}
		failure, again := classify(err)
		if !again || n >= tries {
			return res, failure
		}
		select {
		case <-time.After(max(pause, after)):
		case <-ctx.Done():
			return res, ctx.Err()
		}
		pause = min(2*pause, time.Minute)
	}
}

var errEmpty = errors.New("the answer holds no choice")

// once sends a request once.
func (e *Endpoint) once(ctx context.Context, req openai.ChatCompletionRequest) (openai.ChatCompletionResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(e.Timeout, 10*time.Minute))
	defer cancel()
	res, err := e.client.CreateChatCompletion(ctx, req)
	if err == nil && len(res.Choices) == 0 {
		err = errEmpty
	}
	return res, err
}

// classify names what is wrong and says whether to try again.
func classify(err error) (*EndpointError, bool) {
	var api *openai.APIError
	var req *openai.RequestError
	status := 0
	switch {
	case errors.As(err, &api):
		status = api.HTTPStatusCode
	case errors.As(err, &req):
		status = req.HTTPStatusCode
	}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	nonsense := errors.As(err, &syntax) || errors.As(err, &kind) || errors.Is(err, errEmpty) || errors.Is(err, io.ErrUnexpectedEOF)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return &EndpointError{EndpointSlow, status, err}, true
	case status == http.StatusTooManyRequests:
		return &EndpointError{EndpointLimited, status, err}, true
	case status >= 500, status == http.StatusRequestTimeout:
		return &EndpointError{EndpointDown, status, err}, true
	case status >= 400:
		return &EndpointError{EndpointRefuses, status, err}, false // the same again would not help
	case nonsense, status >= 200:
		return &EndpointError{EndpointMalformed, status, err}, true
	}
	return &EndpointError{EndpointDown, 0, err}, true
}

// refusesTools reports whether an endpoint cannot do tool calls.
func refusesTools(err error) bool {
	var e *EndpointError
	if !errors.As(err, &e) || e.What != EndpointRefuses {
		return false
	}
	text := strings.ToLower(e.Err.Error())
	return strings.Contains(text, "tool") || strings.Contains(text, "function")
}

// tooLong reports whether an endpoint refused a prompt for its length.
func tooLong(err error) bool {
	var e *EndpointError
	if !errors.As(err, &e) || e.What != EndpointRefuses {
		return false
	}
	text := strings.ToLower(e.Err.Error())
	return e.Status == http.StatusRequestEntityTooLarge || strings.Contains(text, "context") || strings.Contains(text, "too long") || strings.Contains(text, "maximum")
}

func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "..."
}
