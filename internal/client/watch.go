package client

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Event is one thing that happened to a rollout.
type Event struct {
	Number int64           `json:"number"`
	Kind   string          `json:"kind"`
	At     time.Time       `json:"at"`
	Data   json.RawMessage `json:"data"`
	Raw    string          `json:"-"` // the event as the server sent it
}

// Line gives what an event tells, in one line.
func (e Event) Line() string {
	var rec struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Verdict   struct {
			Decision string `json:"decision"`
			Action   string `json:"action"`
		} `json:"verdict"`
	}
	if err := json.Unmarshal(e.Data, &rec); err != nil || rec.Name == "" {
		return string(e.Data)
	}
	return fmt.Sprintf("%-8s %-9s %s %.100s", rec.Verdict.Decision, rec.Verdict.Action, rec.Name, rec.Arguments)
}

// Watch follows a rollout's events until it ends, ctx does, or each gives an error. It takes the
// stream up again where a connection is lost.
func (c *Client) Watch(ctx context.Context, id string, each func(Event) error) error {
	last := int64(0)
	for {
		ended, err := c.stream(ctx, id, &last, each)
		if ended || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// stream reads one connection's events; ended is true where the server closed the stream because
// the rollout is over.
func (c *Client) stream(ctx context.Context, id string, last *int64, each func(Event) error) (ended bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL+rollout(id)+"/events", nil)
	if err != nil {
		return false, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+c.Key)
	req.Header.Set("Last-Event-ID", fmt.Sprint(*last))
	res, err := c.HTTP.Do(req)
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrNoServer, err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return false, read(res, nil)
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(make([]byte, 64<<10), 64<<20) // an event holds a call's record with its output
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		e := Event{Raw: data}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return false, fmt.Errorf("decode event: %w", err)
		}
		*last = e.Number
		if err := each(e); err != nil {
			return false, err
		}
	}
	return lines.Err() == nil, nil
}
