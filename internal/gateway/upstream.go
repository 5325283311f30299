package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// send sends a request on. A server that refuses the fields that the gateway adds is asked again
// without them, and not sent them any more.
func (g *Gateway) send(ctx context.Context, a *ask) (*http.Response, error) {
	if a.target.Dialect == "anthropic" {
		return g.post(ctx, a.target, "/messages", a.anthropicBody())
	}
	plain := a.target.Dialect == "openai" || g.known(a.target.BaseURL).plain
	for {
		body, err := a.body(plain)
		if err != nil {
			return nil, err
		}
		res, err := g.post(ctx, a.target, "/chat/completions", body)
		if err != nil || plain || res.StatusCode != http.StatusBadRequest && res.StatusCode != http.StatusUnprocessableEntity {
			return res, err
		}
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20))
		_ = res.Body.Close()
		if !strings.Contains(string(text), "return_token_ids") && !strings.Contains(string(text), "logprobs") {
			res.Body = io.NopCloser(bytes.NewReader(text))
			return res, nil
		}
		plain = true
		g.learn(a.target.BaseURL, func(l *learned) { l.plain = true })
	}
}

// post makes one request below the base URL, and nowhere else: the path is ours, and a redirect is an
// answer like any other.
func (g *Gateway) post(ctx context.Context, t Target, path string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(t.BaseURL, "/")+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "model-gateway")
	if t.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+t.APIKey)
	}
	if t.Dialect == "anthropic" {
		req.Header.Del("Authorization")
		req.Header.Set("X-Api-Key", t.APIKey)
		req.Header.Set("Anthropic-Version", "2023-06-01")
	}
	return g.opt.Proxy.RoundTrip(req)
}

// CheckBaseURL says whether an address is one that requests may be sent below.
func CheckBaseURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return fmt.Errorf("%.100q is no URL", text)
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("%.100q must begin with http:// or https://", text)
	case u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%.100q must be scheme, host and path alone", text)
	}
	return nil
}

// passed are the headers of an answer that are the client's business.
var passed = []string{"Content-Type", "Retry-After", "X-Request-Id", "Request-Id"}

func passHeaders(w http.ResponseWriter, res *http.Response) {
	for _, h := range passed {
		if v := res.Header.Get(h); v != "" {
			w.Header().Set(h, v)
		}
	}
}

// scrub cuts the server's address and key out of a text that an agent's harness will read.
func scrub(body []byte, t Target) []byte {
	secrets := []string{t.APIKey, t.BaseURL}
	if u, err := url.Parse(t.BaseURL); err == nil {
		secrets = append(secrets, u.Host, u.Hostname())
	}
	for _, s := range secrets {
		if len(s) > 2 {
			body = bytes.ReplaceAll(body, []byte(s), []byte("model-server"))
		}
	}
	return body
}

// promptIDs asks a llama.cpp server for the ids of the prompt, which its chat endpoint does not give,
// beside the sampling. The channel gives nil where there are none to be had.
func (g *Gateway) promptIDs(ctx context.Context, a *ask) func() []int32 {
	if a.target.Dialect != "llama.cpp" && !g.known(a.target.BaseURL).llama {
		return nil
	}
	got := make(chan []int32, 1)
	go func() { got <- g.llamaPrompt(ctx, a) }()
	return func() []int32 {
		select {
		case ids := <-got:
			return ids
		case <-ctx.Done():
			return nil
		}
	}
}

// llamaPrompt applies the server's own template and tokenizer to a request.
func (g *Gateway) llamaPrompt(ctx context.Context, a *ask) []int32 {
	body, err := a.body(false)
	if err != nil {
		return nil
	}
	root := a.target
	root.BaseURL = strings.TrimSuffix(strings.TrimRight(root.BaseURL, "/"), "/v1")
	var shaped struct {
		Prompt string `json:"prompt"`
	}
	if g.ask(ctx, root, "/apply-template", body, &shaped) != nil || shaped.Prompt == "" {
		return nil
	}
	question := mustJSON(map[string]any{"content": shaped.Prompt, "add_special": true, "parse_special": true})
	var cut struct {
		Tokens []int32 `json:"tokens"`
	}
	if g.ask(ctx, root, "/tokenize", question, &cut) != nil {
		return nil
	}
	return cut.Tokens
}

func (g *Gateway) ask(ctx context.Context, t Target, path string, body []byte, out any) error {
	res, err := g.post(ctx, t, path, body)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("HTTP %d", res.StatusCode)
	}
	return json.NewDecoder(io.LimitReader(res.Body, answerLimit)).Decode(out)
}
