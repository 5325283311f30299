package pool

import (
	"context"
	"slices"
	"time"

	"proctor/sandbox"
)

// slowStart is the time of a start past which the engine counts as overloaded; the Docker engine's own gate
// uses the same measure.
const slowStart = 5 * time.Second

// Expect says that n sandboxes of spec's kind will be asked for soon: so many are made ready, as far as
// there is room, and kept for the idle time.
func (e *Engine) Expect(ctx context.Context, spec sandbox.Spec, n int) error {
	if !poolable(spec) || n < 1 {
		return nil
	}
	digest, err := e.digests.of(ctx, spec.Image)
	if err != nil {
		return err
	}
	e.mu.Lock()
	k, err := e.kindLocked(digest, spec)
	if err != nil {
		e.mu.Unlock()
		return err
	}
	k.demand.announce(n, e.clock())
	e.mu.Unlock()
	e.refill()
	return nil
}

// Ready gives how many spares of spec's kind wait now.
func (e *Engine) Ready(ctx context.Context, spec sandbox.Spec) (int, error) {
	digest, err := e.digests.of(ctx, spec.Image)
	if err != nil {
		return 0, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if k := e.kinds[keyOf(digest, spec)]; k != nil {
		return len(k.ready), nil
	}
	return 0, nil
}

// Spares gives how many spares of all kinds wait now.
func (e *Engine) Spares() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sparesLocked()
}

func (e *Engine) sparesLocked() int {
	n := 0
	for _, k := range e.kinds {
		n += len(k.ready)
	}
	return n
}

// lackLocked gives how many spares k lacks to its target, within what Max leaves to it. Preconditions: mu
// is held.
func (e *Engine) lackLocked(k *kind) int {
	return min(k.demand.target(e.clock())-len(k.ready), e.opt.Max-e.sparesLocked())
}

// refill begins makes for stock: for the kind that lacks most first, by as many at once as the bound allows,
// and none while a caller waits, whose make the engine is to see first.
func (e *Engine) refill() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for !e.closed && e.waiting == 0 && e.stocking < e.bound && e.sparesLocked()+e.stocking < e.opt.Max {
		var neediest *kind
		most := 0
		for _, k := range e.kinds {
			if lack := e.lackLocked(k) - len(k.makes); lack > most {
				neediest, most = k, lack
			}
		}
		if neediest == nil {
			break
		}
		e.beginLocked(neediest, neediest.spec, true)
	}
	e.tellLocked()
}

// adaptLocked learns from a make for stock: a slow or failed one halves the bound, never below 1, a quick
// one raises it by one. Preconditions: mu is held.
func (e *Engine) adaptLocked(m *making, took time.Duration, ok bool) {
	switch {
	case !m.stock:
	case !ok || took > slowStart:
		e.bound = max(1, e.bound/2)
	default:
		e.bound = min(e.opt.Parallel, e.bound+1)
	}
}

// ticks holds stock against demand until the pool is closed.
func (e *Engine) ticks() {
	defer e.work.Done()
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			e.Tick()
		case <-e.ctx.Done():
			return
		}
	}
}

// Tick removes spares that demand no longer asks for, forgets kinds that nobody asks for, and begins makes.
func (e *Engine) Tick() {
	e.mu.Lock()
	now := e.clock()
	var surplus []sandbox.Session
	for key, k := range e.kinds {
		if over := len(k.ready) - max(k.demand.target(now), 0); over > 0 {
			surplus = append(surplus, k.ready[:over]...)
			k.ready = slices.Clone(k.ready[over:])
		}
		if len(k.ready)+len(k.makes)+len(k.waiting) == 0 && k.demand.over(now) {
			delete(e.kinds, key)
		}
	}
	e.tellLocked()
	e.mu.Unlock()
	e.discardAll(surplus, "idle")
	e.refill()
	e.forgetNames()
}

// namesKept bounds the names of claimed sandboxes before those of removed ones are looked for.
const namesKept = 4096

// forgetNames drops the names of sandboxes that are gone.
func (e *Engine) forgetNames() {
	e.mu.Lock()
	many := len(e.names) > namesKept
	e.mu.Unlock()
	if !many {
		return
	}
	ctx, cancel := context.WithTimeout(e.ctx, discardLimit)
	defer cancel()
	listed, err := e.Engine.List(ctx)
	if err != nil {
		return // the next tick tries again
	}
	there := map[string]bool{}
	for _, l := range listed {
		there[l.ID] = true
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for id := range e.names {
		if !there[id] {
			delete(e.names, id)
		}
	}
}
