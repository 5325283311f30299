package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"proctor/internal/trajectory"
)

// Chat serves POST .../openai/v1/chat/completions.
func (g *Gateway) Chat(w http.ResponseWriter, r *http.Request, rollout string) {
	g.serve(w, r, rollout, openaiFront{})
}

// Messages serves POST .../anthropic/v1/messages.
func (g *Gateway) Messages(w http.ResponseWriter, r *http.Request, rollout string) {
	g.serve(w, r, rollout, anthropicFront{})
}

// Models serves GET .../openai/v1/models: the one model, by the name that requests are sent with. The
// server is not asked, since what else it serves is none of the agent's.
func (g *Gateway) Models(w http.ResponseWriter, r *http.Request, rollout string) {
	target, err := g.target(r.Context(), rollout)
	if err != nil {
		g.refuse(w, openaiFront{}, err)
		return
	}
	name := target.Model
	if name == "" {
		name = "policy"
	}
	writeBody(w, http.StatusOK, mustJSON(map[string]any{"object": "list", "data": []any{
		map[string]any{"id": name, "object": "model", "created": 0, "owned_by": "policy"}}}))
}

func (g *Gateway) target(ctx context.Context, rollout string) (Target, error) {
	target, err := g.opt.Target(ctx, rollout)
	switch {
	case err != nil:
		return Target{}, refuse(http.StatusGone, "rollout_ended", "the rollout has ended")
	case target.BaseURL == "":
		return Target{}, refuse(http.StatusNotFound, "no_model_server", "the rollout was created without policy.base_url; name the model's server there")
	}
	return target, nil
}

// serve carries one request through.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request, rollout string, f front) {
	target, err := g.target(r.Context(), rollout)
	if err == nil {
		err = g.answer(w, r, rollout, f, target)
	}
	if err != nil {
		g.refuse(w, f, err)
	}
}

func (g *Gateway) answer(w http.ResponseWriter, r *http.Request, rollout string, f front, target Target) error {
	a, err := g.understand(r, f, rollout, target)
	if err != nil {
		return err
	}
	for {
		if c, err := g.recorded(r.Context(), a); err != nil {
			return err
		} else if c != nil {
			g.replay(w, a, c)
			return nil
		}
		fl, joined, err := g.join(a)
		if err != nil {
			return err
		}
		if !joined {
			if !g.enter(rollout) {
				g.land(a, fl, nil)
				busy := refuse(http.StatusTooManyRequests, "at_capacity", "too many requests at once; ask again in a moment")
				busy.after = "1"
				return busy
			}
			defer g.leave(rollout)
			g.fly(w, r, a, fl)
			return nil
		}
		select {
		case <-fl.done:
		case <-r.Context().Done():
			g.orphaned(fl)
			return nil
		}
		if fl.call != nil {
			g.replay(w, a, fl.call)
			return nil
		}
		// It failed: this request tries by itself.
	}
}

// fly sends a request to the policy's server, passes the answer on and records it.
func (g *Gateway) fly(w http.ResponseWriter, r *http.Request, a *ask, fl *flight) {
	var kept *trajectory.ModelCall
	defer func() { g.land(a, fl, kept) }()
	// The upstream request outlives its client, so that a client that gave up too early finds the
	// answer when it asks again; a stream that is cut off is another matter (pump).
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	stop := context.AfterFunc(r.Context(), func() {
		g.orphaned(fl)
		if a.stream {
			cancel()
			return
		}
		late := time.AfterFunc(linger, cancel)
		context.AfterFunc(ctx, func() { late.Stop() })
	})
	defer stop()
	prompt := g.promptIDs(ctx, a)
	res, err := g.send(ctx, a)
	c := a.record()
	if err != nil {
		c.Error = "the model server does not answer"
		c.Disconnected = r.Context().Err() != nil
		g.append(ctx, a, c, "")
		g.opt.Metrics.count("unreachable")
		g.opt.Log.Warn("the model server does not answer", "rollout", a.rollout, "err", err)
		g.refuse(w, a.front, refuse(http.StatusBadGateway, "model_server_unreachable", "the model server does not answer"))
		return
	}
	defer func() { _ = res.Body.Close() }()
	c.Status = res.StatusCode
	c.FirstMS = time.Since(a.started).Milliseconds()
	if res.StatusCode/100 != 2 {
		g.passError(w, a, c, res)
		return
	}
	pass := &passage{g: g, w: w, client: r.Context(), a: a, c: c, cap: &capture{}, prompt: prompt}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		pass.stream(ctx, res)
	} else {
		pass.whole(ctx, res)
	}
	if pass.complete {
		kept = c
	}
}

// passError passes an error of the server on, without what names the server, and records it.
func (g *Gateway) passError(w http.ResponseWriter, a *ask, c *trajectory.ModelCall, res *http.Response) {
	g.opt.Metrics.count("upstream_error")
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		body = nil
	}
	body = scrub(body, a.target)
	if c.Error = string(body[:min(len(body), 2000)]); c.Error == "" {
		c.Error = res.Status
	}
	g.append(context.Background(), a, c, "")
	passHeaders(w, res)
	if a.front.name() != dialectName(a.target) {
		body = a.front.failure(res.StatusCode, "model_server", errorText(body))
		w.Header().Set("Content-Type", "application/json")
	}
	status := res.StatusCode
	if status/100 == 3 { // not followed, and where it leads is not told
		status, body = http.StatusBadGateway, a.front.failure(http.StatusBadGateway, "model_server", "the model server answered with a redirect")
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// dialectName is the protocol that the server speaks.
func dialectName(t Target) string {
	if t.Dialect == "anthropic" {
		return "anthropic"
	}
	return "openai"
}

// errorText finds the words of an error body.
func errorText(body []byte) string {
	var e struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &e) == nil && e.Error.Message+e.Message != "" {
		return e.Error.Message + e.Message
	}
	return string(body)
}

// append records a call; what cannot be recorded is logged, and the client is not made to suffer for
// it: its answer is gone if it is held back.
func (g *Gateway) append(ctx context.Context, a *ask, c *trajectory.ModelCall, key string) bool {
	c.DurationMS = time.Since(a.started).Milliseconds()
	if err := g.opt.Records.Append(ctx, a.rollout, key, a.sum, c); err != nil {
		g.opt.Metrics.count("not_recorded")
		g.opt.Log.Error("record a model call", "rollout", a.rollout, "err", err)
		return false
	}
	return true
}

// refuse answers with an error of the gateway's own.
func (g *Gateway) refuse(w http.ResponseWriter, f front, err error) {
	var no *refusal
	if !errors.As(err, &no) {
		g.opt.Log.Error("a gateway request failed", "err", err)
		no = refuse(http.StatusInternalServerError, "internal", "the server could not answer")
	}
	if no.after != "" {
		w.Header().Set("Retry-After", no.after)
	}
	g.opt.Metrics.count("refused")
	writeBody(w, no.status, f.failure(no.status, no.code, no.words))
}

func writeBody(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
