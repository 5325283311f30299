// Package gateway stands between an agent's harness and the policy's server: it forwards requests to
// the one base URL that its rollout was created with, and records what was sampled, token by token.
//
// What is forwarded is never held back: an answer streams through as it comes, and is read on the side
// (capture.go). The record is written before the last event of an answer is passed on, so that a
// client that has an answer has a recorded one. A request that is made again, under the same
// Idempotency-Key or byte for byte after its client hung up, is answered from the record (flight.go).
//
// A harness has the agent token, so nothing of the policy's server may be read with it but answers:
// its address and key are cut out of error texts, redirects are not followed, its headers are not
// passed on but for a few.
package gateway

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"proctor/internal/records"
	"proctor/internal/trajectory"
)

// Limits of the gateway, each with a typed refusal.
const (
	bodyLimit   = 64 << 20         // bytes of a request: contexts with images
	answerLimit = 256 << 20        // bytes of an answer that are looked at
	perRollout  = 16               // requests of one rollout at once
	total       = 4096             // requests of all rollouts at once
	linger      = 10 * time.Minute // how long an answer is waited for whose client hung up
)

// Target is where a rollout's requests go.
type Target struct {
	BaseURL string // "http://host:8000/v1"; "" where the rollout has no policy server
	Model   string // replaces the model that the client names; "" leaves it
	APIKey  string
	// Dialect is what the server speaks: "" finds out (any that speaks OpenAI's), openai (plain: no
	// extra fields are sent), vllm, sglang, llama.cpp, anthropic.
	Dialect string
}

// Dialects lists the dialects, for checks.
func Dialects() []string { return []string{"", "openai", "vllm", "sglang", "llama.cpp", "anthropic"} }

// Recorder keeps model calls. *records.Service.
type Recorder interface {
	Append(ctx context.Context, rollout, key string, request [sha256.Size]byte, c *trajectory.ModelCall) error
	ByKey(ctx context.Context, rollout, key string) (records.Known, bool, error)
	Calls(ctx context.Context, rollout string) ([]*trajectory.ModelCall, error)
}

// Options are what a Gateway is made from.
type Options struct {
	// Target gives where a rollout's requests go, and counts as activity of its client. An error
	// means that the rollout has ended.
	Target  func(ctx context.Context, rollout string) (Target, error)
	Records Recorder
	Metrics *Metrics          // nil: none
	Log     *slog.Logger      // nil: none
	Proxy   http.RoundTripper // nil: a transport of its own that follows no redirect
}

// Gateway forwards and records. Safe for concurrent use.
type Gateway struct {
	opt   Options
	slots chan struct{} // one a request that may run

	mu      sync.Mutex
	open    map[string]int        // requests of a rollout that run
	flights map[flightKey]*flight // by Idempotency-Key or body
	learned map[string]learned    // by base URL
}

// New makes a Gateway.
func New(o Options) *Gateway {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Proxy == nil {
		dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
		o.Proxy = &http.Transport{
			DialContext: dialer.DialContext, MaxIdleConns: total, MaxIdleConnsPerHost: 512, IdleConnTimeout: 90 * time.Second,
			DisableCompression: true, ForceAttemptHTTP2: false,
		}
	}
	return &Gateway{opt: o, slots: make(chan struct{}, total), open: map[string]int{}, flights: map[flightKey]*flight{}, learned: map[string]learned{}}
}

// learned is what answers told of a server.
type learned struct {
	plain bool // it refuses fields that OpenAI does not have
	llama bool // it is llama.cpp's
}

func (g *Gateway) known(base string) learned {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.learned[base]
}

func (g *Gateway) learn(base string, f func(*learned)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.learned) > 4096 {
		clear(g.learned)
	}
	l := g.learned[base]
	f(&l)
	g.learned[base] = l
}

// enter takes a place for a request; false where there is none.
func (g *Gateway) enter(rollout string) bool {
	select {
	case g.slots <- struct{}{}:
	default:
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open[rollout] >= perRollout {
		<-g.slots
		return false
	}
	g.open[rollout]++
	return true
}

func (g *Gateway) leave(rollout string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open[rollout]--; g.open[rollout] <= 0 {
		delete(g.open, rollout)
	}
	<-g.slots
}
