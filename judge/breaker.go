package judge

import (
	"context"
	"sync"
	"time"
)

// breaker spares an endpoint that is down, and the calls that would wait for it.
type breaker struct {
	inner    Judge
	after    int
	cooldown time.Duration
	now      func() time.Time

	mu      sync.Mutex
	failed  int       // failures in a row
	until   time.Time // open until then
	probing bool      // one question is through, to see whether the endpoint is back
}

// NewBreaker wraps inner: after n timeouts or outages in a row it is not asked for cooldown, and
// every opinion is an outage at once; then one question goes through, and its outcome decides.
// Defaults: 5 failures, 15 s.
func NewBreaker(inner Judge, n int, cooldown time.Duration) Judge {
	return newBreaker(inner, n, cooldown, time.Now)
}

func newBreaker(inner Judge, n int, cooldown time.Duration, now func() time.Time) *breaker {
	if n <= 0 {
		n = 5
	}
	if cooldown <= 0 {
		cooldown = 15 * time.Second
	}
	return &breaker{inner: inner, after: n, cooldown: cooldown, now: now}
}

// Name implements Judge.
func (b *breaker) Name() string { return b.inner.Name() }

// Digest implements Judge: a breaker decides nothing.
func (b *breaker) Digest() string { return b.inner.Digest() }

// Judge implements Judge.
func (b *breaker) Judge(ctx context.Context, c Case) Opinion {
	if !b.admit() {
		return Opinion{By: b.Name(), Verdict: Unsure, Failure: FailOutage, Reason: "the judge failed several times in a row and is left alone for a while"}
	}
	o := b.inner.Judge(ctx, c)
	b.settle(o.Failure == FailOutage || o.Failure == FailTimeout && context.Cause(ctx) != context.Canceled)
	return o
}

// admit reports whether a question may go through.
func (b *breaker) admit() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failed < b.after {
		return true
	}
	if b.probing || b.now().Before(b.until) {
		return false
	}
	b.probing = true
	return true
}

// settle takes in an outcome.
func (b *breaker) settle(failed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.probing = false
	if !failed {
		b.failed = 0
		return
	}
	b.failed++
	if b.failed >= b.after {
		b.until = b.now().Add(b.cooldown)
	}
}
