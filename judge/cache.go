package judge

import (
	"container/list"
	"context"
	"encoding/json"
	"sync"
)

// Cache remembers the opinions of a judge. The key holds all that decides: the rule set, the
// judge's own digest (prompt, model, sampling), the task, the call with its event and hits, and the
// history that was shown. Failures are not remembered. Questions that are the same and asked at the
// same time are asked once.
type Cache struct {
	inner Judge
	limit int

	mu      sync.Mutex
	order   *list.List               // newest first; values are *cacheEntry
	entries map[string]*list.Element // by key
	flights map[string]*flight
}

type cacheEntry struct {
	key     string
	opinion Opinion
}

type flight struct {
	done    chan struct{}
	opinion Opinion
}

// NewCache wraps inner; limit is the number of opinions kept, 4096 where it is not positive.
func NewCache(inner Judge, limit int) *Cache {
	if limit <= 0 {
		limit = 4096
	}
	return &Cache{inner: inner, limit: limit, order: list.New(), entries: map[string]*list.Element{}, flights: map[string]*flight{}}
}

// Name implements Judge.
func (c *Cache) Name() string { return c.inner.Name() }

// Digest implements Judge: a cache decides nothing.
func (c *Cache) Digest() string { return c.inner.Digest() }

// Judge implements Judge.
func (c *Cache) Judge(ctx context.Context, k Case) Opinion {
	key, err := c.key(k)
	if err != nil {
		return c.inner.Judge(ctx, k)
	}
	c.mu.Lock()
	if e, ok := c.entries[key]; ok {
		c.order.MoveToFront(e)
		o := e.Value.(*cacheEntry).opinion
		c.mu.Unlock()
		return cached(o)
	}
	if f, ok := c.flights[key]; ok {
		c.mu.Unlock()
		select {
		case <-f.done:
			if f.opinion.Failure == "" {
				return cached(f.opinion)
			}
			return c.inner.Judge(ctx, k) // it may have failed for want of the other caller's time
		case <-ctx.Done():
			return Opinion{By: c.Name(), Verdict: Unsure, Failure: FailTimeout, Reason: "waited for the same question in vain"}
		}
	}
	f := &flight{done: make(chan struct{})}
	c.flights[key] = f
	c.mu.Unlock()

	f.opinion = c.inner.Judge(ctx, k)
	c.mu.Lock()
	delete(c.flights, key)
	if f.opinion.Failure == "" {
		c.keep(key, f.opinion)
	}
	c.mu.Unlock()
	close(f.done)
	return f.opinion
}

// keep adds an opinion and drops the oldest beyond the limit. The lock is held.
func (c *Cache) keep(key string, o Opinion) {
	c.entries[key] = c.order.PushFront(&cacheEntry{key, o})
	if c.order.Len() > c.limit {
		last := c.order.Back()
		delete(c.entries, last.Value.(*cacheEntry).key)
		c.order.Remove(last)
	}
}

// key pins the question.
func (c *Cache) key(k Case) (string, error) {
	packs := k.Packs
	k.Packs = ""
	task, err := json.Marshal(k.Task)
	if err != nil {
		return "", err
	}
	rest, err := json.Marshal(k)
	if err != nil {
		return "", err
	}
	return digest(packs, c.inner.Digest(), string(task), string(rest)), nil
}

// cached marks an opinion as one that cost nothing this time.
func cached(o Opinion) Opinion {
	o.Cached, o.TokensIn, o.TokensOut, o.Cost = true, 0, 0, 0
	return o
}
