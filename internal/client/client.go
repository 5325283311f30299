// Package client is a client of a running server: what the command line, the demo and the
// benchmarks speak HTTP with.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"proctor/internal/rollouts"
	"proctor/monitor"
	"proctor/tasks"
)

// Client speaks to one server. Safe for concurrent use.
type Client struct {
	URL  string // "http://127.0.0.1:8080"
	Key  string // a trainer key
	HTTP *http.Client
}

// New gives a client of the server at url.
func New(url, key string) *Client { return &Client{URL: url, Key: key, HTTP: &http.Client{}} }

// ErrNoServer says that no running server could be found.
var ErrNoServer = errors.New("no server found")

// Find gives a client by PROCTOR_URL and PROCTOR_API_KEY or, on one machine, by the data folder,
// where the running server keeps its address and key.
func Find(data string, getenv func(string) string) (*Client, error) {
	c := &Client{URL: getenv("PROCTOR_URL"), Key: getenv("PROCTOR_API_KEY"), HTTP: &http.Client{}}
	if c.URL == "" {
		body, err := os.ReadFile(filepath.Join(data, "server.json"))
		if err != nil {
			return nil, fmt.Errorf("%w: set PROCTOR_URL and PROCTOR_API_KEY, or name the data folder of a server on this machine (--data; %s holds none)", ErrNoServer, data)
		}
		var ready struct {
			URL string `json:"url"`
		}
		if err := json.Unmarshal(body, &ready); err != nil || ready.URL == "" {
			return nil, fmt.Errorf("%w: %s/server.json does not hold an address", ErrNoServer, data)
		}
		c.URL = ready.URL
	}
	if c.Key == "" {
		key, err := os.ReadFile(filepath.Join(data, "keys", "trainer.key"))
		if err != nil {
			return nil, fmt.Errorf("%w: no key: set PROCTOR_API_KEY: %w", ErrNoServer, err)
		}
		c.Key = strings.TrimSpace(string(key))
	}
	return c, nil
}

// Problem is an error answer of the server.
type Problem struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
	Retry  bool   `json:"retry"`
}

func (p *Problem) Error() string {
	if p.Detail == "" {
		return fmt.Sprintf("%s (%s, HTTP %d)", p.Title, p.Code, p.Status)
	}
	return fmt.Sprintf("%s (%s, HTTP %d)", p.Detail, p.Code, p.Status)
}

// Do sends a request as token ("" is the client's key) and decodes the answer into out, which may
// be nil, or *[]byte for the bytes as they are.
func (c *Client) Do(ctx context.Context, method, path, token string, in, out any, headers ...string) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("encode request: %w", err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.URL+path, body)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	if token == "" {
		token = c.Key
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := c.HTTP.Do(req)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoServer, err)
	}
	defer func() { _ = res.Body.Close() }()
	return read(res, out)
}

// read decodes an answer, or gives its problem.
func read(res *http.Response, out any) error {
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<30))
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if res.StatusCode >= 300 {
		p := &Problem{Status: res.StatusCode, Title: http.StatusText(res.StatusCode)}
		_ = json.Unmarshal(body, p) // a proxy's page is no problem document: the status says enough
		return p
	}
	switch out := out.(type) {
	case nil:
		return nil
	case *[]byte:
		*out = body
		return nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("decode answer of %s: %w", res.Request.URL.Path, err)
	}
	return nil
}

func rollout(id string) string { return "/v1/rollouts/" + url.PathEscape(id) }

// Create makes a rollout.
func (c *Client) Create(ctx context.Context, req rollouts.CreateRequest) (rollouts.Created, error) {
	var made rollouts.Created
	err := c.Do(ctx, http.MethodPost, "/v1/rollouts", "", req, &made)
	return made, err
}

// Call makes a tool call as token, "" for the harness.
func (c *Client) Call(ctx context.Context, id, token, callID, name string, arguments any, headers ...string) (monitor.Observation, error) {
	var seen monitor.Observation
	body := map[string]any{"call_id": callID, "name": name, "arguments": arguments}
	err := c.Do(ctx, http.MethodPost, rollout(id)+"/calls", token, body, &seen, headers...)
	return seen, err
}

// Submit ends the agent's part.
func (c *Client) Submit(ctx context.Context, id, token string) error {
	return c.Do(ctx, http.MethodPost, rollout(id)+"/submit", token, struct{}{}, nil)
}

// Grade grades a rollout and waits for the grade.
func (c *Client) Grade(ctx context.Context, id string) (tasks.Grade, error) {
	var g tasks.Grade
	err := c.Do(ctx, http.MethodPost, rollout(id)+"/grade?wait=true", "", struct{}{}, &g)
	return g, err
}

// Trajectory gives the record of a rollout.
func (c *Client) Trajectory(ctx context.Context, id string) (*rollouts.Trajectory, error) {
	t := &rollouts.Trajectory{}
	return t, c.Do(ctx, http.MethodGet, rollout(id)+"/trajectory", "", nil, t)
}

// Get gives one rollout.
func (c *Client) Get(ctx context.Context, id string) (rollouts.View, error) {
	var v rollouts.View
	err := c.Do(ctx, http.MethodGet, rollout(id), "", nil, &v)
	return v, err
}

// List gives one page of rollouts.
func (c *Client) List(ctx context.Context, query url.Values) (views []rollouts.View, next string, err error) {
	var page struct {
		Rollouts []rollouts.View `json:"rollouts"`
		Next     *string         `json:"next"`
	}
	if err := c.Do(ctx, http.MethodGet, "/v1/rollouts?"+query.Encode(), "", nil, &page); err != nil {
		return nil, "", err
	}
	if page.Next != nil {
		next = *page.Next
	}
	return page.Rollouts, next, nil
}

// Delete ends a rollout.
func (c *Client) Delete(ctx context.Context, id string) error {
	return c.Do(ctx, http.MethodDelete, rollout(id), "", nil, nil)
}

// Verdicts gives a rollout's calls that a rule hit.
func (c *Client) Verdicts(ctx context.Context, id string) ([]rollouts.VerdictView, error) {
	var page struct {
		Verdicts []rollouts.VerdictView `json:"verdicts"`
	}
	err := c.Do(ctx, http.MethodGet, rollout(id)+"/verdicts", "", nil, &page)
	return page.Verdicts, err
}

// Review records what a person says of a verdict.
func (c *Client) Review(ctx context.Context, id string, ordinal int, label, note string) error {
	return c.Do(ctx, http.MethodPost, fmt.Sprintf("%s/verdicts/%d/review", rollout(id), ordinal), "",
		map[string]string{"label": label, "note": note}, nil)
}

// WaitReady polls /readyz until the server can make rollouts or ctx ends.
func (c *Client) WaitReady(ctx context.Context) error {
	for {
		err := c.Do(ctx, http.MethodGet, "/readyz", "", nil, nil)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("server at %s is not ready: %w", c.URL, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
