package evalrun

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"proctor/internal/client"
	"proctor/internal/rollouts"
	"proctor/monitor"
	"proctor/tasks"
)

// server is a client that waits for a server that restarts or is full. Safe for concurrent use.
type server struct {
	*client.Client
	patience time.Duration // longest wait for one request's answer
}

// again repeats a request that is harmless to repeat, while the server says that this may help.
func (s *server) again(ctx context.Context, request func() error) error {
	deadline := time.Now().Add(s.patience)
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 10*time.Second) {
		err := request()
		var p *client.Problem
		retry := errors.Is(err, client.ErrNoServer) || errors.As(err, &p) && p.Retry
		if err == nil || !retry || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// create makes a rollout, or gives the one that key made.
func (s *server) create(ctx context.Context, key string, req rollouts.CreateRequest) (*rollouts.Created, error) {
	made := &rollouts.Created{}
	err := s.again(ctx, func() error {
		return s.Do(ctx, http.MethodPost, "/v1/rollouts", "", req, made, "Idempotency-Key", key)
	})
	return made, err
}

func (s *server) call(ctx context.Context, made *rollouts.Created, c modelCall, key string) (o monitor.Observation, err error) {
	err = s.again(ctx, func() error {
		o, err = s.Call(ctx, made.ID, made.AgentToken, c.id, c.name, c.arguments, "Idempotency-Key", key)
		return err
	})
	return o, err
}

func (s *server) submit(ctx context.Context, made *rollouts.Created) error {
	return s.again(ctx, func() error { return s.Submit(ctx, made.ID, made.AgentToken) })
}

func (s *server) grade(ctx context.Context, id string) (g tasks.Grade, err error) {
	err = s.again(ctx, func() error { g, err = s.Grade(ctx, id); return err })
	return g, err
}

func (s *server) record(ctx context.Context, id string) (body []byte, err error) {
	err = s.again(ctx, func() error {
		return s.Do(ctx, http.MethodGet, "/v1/rollouts/"+url.PathEscape(id)+"/trajectory", "", nil, &body)
	})
	return body, err
}

func (s *server) patch(ctx context.Context, id string) (body []byte, err error) {
	err = s.again(ctx, func() error {
		return s.Do(ctx, http.MethodGet, "/v1/rollouts/"+url.PathEscape(id)+"/patch", "", nil, &body)
	})
	return body, err
}

// beat keeps a rollout's lease until ctx ends: a slow model must not lose its sandbox.
func (s *server) beat(ctx context.Context, id string, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = s.Do(ctx, http.MethodPost, "/v1/rollouts/"+url.PathEscape(id)+"/heartbeat", "", struct{}{}, nil) // the next one may do
		}
	}
}

// ended reports whether a rollout takes no more calls.
func ended(err error) bool {
	var p *client.Problem
	return errors.As(err, &p) && (p.Status == http.StatusGone || p.Status == http.StatusConflict && p.Code == "rollout_ended" || p.Status == http.StatusNotFound)
}
