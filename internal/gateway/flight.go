package gateway

import (
	"context"
	"crypto/sha256"
	"net/http"
	"strconv"
	"time"

	"proctor/internal/trajectory"
)

// flightKey names requests that are one: those with one Idempotency-Key, or those with one body where
// the first one's client has hung up.
type flightKey struct {
	rollout string
	key     string
	sum     [sha256.Size]byte // of the body, where key is empty
}

// flight is a request on its way to the policy, which others may be waiting for.
type flight struct {
	done   chan struct{}
	call   *trajectory.ModelCall // once done; nil where it failed
	sum    [sha256.Size]byte
	orphan bool // its client hung up: the next one with its body takes it. Guarded by Gateway.mu
}

// join finds the flight that answers a, or begins one. Of a flight that it finds it gives joined.
func (g *Gateway) join(a *ask) (f *flight, joined bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if a.key != "" {
		if f := g.flights[flightKey{rollout: a.rollout, key: a.key}]; f != nil {
			if f.sum != a.sum {
				return nil, false, conflict()
			}
			return f, true, nil
		}
	}
	body := flightKey{rollout: a.rollout, sum: a.sum}
	if f := g.flights[body]; f != nil && f.orphan {
		f.orphan = false
		select {
		case <-f.done: // nobody else is to have it
			delete(g.flights, body)
		default:
		}
		return f, true, nil
	}
	f = &flight{done: make(chan struct{}), sum: a.sum}
	if a.key != "" {
		g.flights[flightKey{rollout: a.rollout, key: a.key}] = f
	}
	if g.flights[body] == nil {
		g.flights[body] = f
	}
	return f, false, nil
}

// land ends a flight. A finished answer that nobody took waits for a request with its body.
func (g *Gateway) land(a *ask, f *flight, c *trajectory.ModelCall) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f.call = c
	close(f.done)
	if a.key != "" {
		delete(g.flights, flightKey{rollout: a.rollout, key: a.key})
	}
	body := flightKey{rollout: a.rollout, sum: a.sum}
	if g.flights[body] == f && (c == nil || !f.orphan) {
		delete(g.flights, body)
	}
	if g.flights[body] != f {
		return
	}
	if len(g.flights) > total+keptOrphans { // so many were left that they are not kept
		delete(g.flights, body)
		return
	}
	time.AfterFunc(linger, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.flights[body] == f {
			delete(g.flights, body)
		}
	})
}

// keptOrphans bounds the answers that are kept for clients that hung up.
const keptOrphans = 256

// orphaned says that a flight's client hung up.
func (g *Gateway) orphaned(f *flight) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f.orphan = true
}

func conflict() error {
	return refuse(http.StatusConflict, "idempotency_conflict", "this Idempotency-Key was used for another request; use a new key for a new request")
}

// recorded answers a from the record under its key; nil where there is nothing.
func (g *Gateway) recorded(ctx context.Context, a *ask) (*trajectory.ModelCall, error) {
	if a.key == "" {
		return nil, nil
	}
	known, ok, err := g.opt.Records.ByKey(ctx, a.rollout, a.key)
	if err != nil || !ok {
		return nil, err
	}
	if known.Request != a.sum {
		return nil, conflict()
	}
	calls, err := g.opt.Records.Calls(ctx, a.rollout)
	if err != nil {
		return nil, err
	}
	if known.Ordinal > len(calls) {
		return nil, nil
	}
	return calls[known.Ordinal-1], nil
}

// replay answers with a recorded call.
func (g *Gateway) replay(w http.ResponseWriter, a *ask, c *trajectory.ModelCall) {
	g.opt.Metrics.count("replayed")
	kind, body := "application/json", []byte(nil)
	if a.stream {
		kind, body = "text/event-stream", a.front.events(a, c)
	} else {
		body = a.front.whole(a, c)
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body) // the client hung up once more
}
