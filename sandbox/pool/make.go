package pool

import (
	"context"
	"slices"
	"time"

	"proctor/sandbox"
)

// making is a sandbox that is being made.
type making struct {
	stock  bool // begun for stock, not for a caller
	cancel context.CancelFunc
	done   chan struct{} // closed when the engine has answered, and cleaned up where it was stopped
}

// beginLocked begins a make of k. Preconditions: mu is held, and the pool is not closed.
func (e *Engine) beginLocked(k *kind, spec sandbox.Spec, stock bool) {
	ctx, cancel := context.WithCancel(e.ctx)
	m := &making{stock: stock, cancel: cancel, done: make(chan struct{})}
	k.makes = append(k.makes, m)
	if stock {
		e.stocking++
	}
	e.work.Add(1)
	go func() {
		defer e.work.Done()
		defer cancel()
		defer close(m.done)
		began := time.Now()
		s, err := e.Engine.Create(ctx, spec)
		e.made(k, m, product{s, err}, time.Since(began))
	}()
}

// made takes what a make gave. A failure is told the caller that has waited longest where there are fewer
// makes than callers left.
func (e *Engine) made(k *kind, m *making, p product, took time.Duration) {
	e.mu.Lock()
	i := slices.Index(k.makes, m)
	if i >= 0 {
		k.makes = slices.Delete(k.makes, i, i+1)
		e.forgetLocked(m)
	}
	if p.err == nil {
		k.demand.started(took)
		e.adaptLocked(m, took, true)
		kept := e.deliverLocked(k, p) // before anybody else takes the place in stock that its make had
		e.mu.Unlock()
		if !kept {
			e.discard(p.session, "surplus")
		}
		e.refill()
		return
	}
	if i >= 0 { // else it was stopped, which says nothing of the engine
		e.adaptLocked(m, took, false)
		k.demand = demand{idle: e.opt.Idle, took: k.demand.took} // what cannot be made is not tried again and again
		if len(k.waiting) > len(k.makes) {
			e.serveLocked(k, p)
		}
	}
	e.tellLocked()
	e.mu.Unlock()
	if m.stock && i >= 0 {
		e.opt.Log.Warn("a sandbox could not be made ready", "image", k.spec.Image, "err", p.err)
	}
}

// forgetLocked counts a make that is no longer under way. Preconditions: mu is held.
func (e *Engine) forgetLocked(m *making) {
	if m.stock {
		e.stocking--
	}
}

// serveLocked gives the caller that has waited longest what a make gave. Preconditions: mu is held, and
// there is one.
func (e *Engine) serveLocked(k *kind, p product) {
	w := k.waiting[0]
	k.waiting = k.waiting[1:]
	e.waiting--
	w.got <- p
}

// deliver hands a ready sandbox to the caller that has waited longest, or puts it into stock, or removes it.
func (e *Engine) deliver(k *kind, p product) {
	e.mu.Lock()
	kept := e.deliverLocked(k, p)
	e.mu.Unlock()
	if !kept {
		e.discard(p.session, "surplus")
	}
}

// deliverLocked is deliver, and reports false where there is neither a caller nor room in stock.
// Preconditions: mu is held.
func (e *Engine) deliverLocked(k *kind, p product) bool {
	defer e.tellLocked()
	switch {
	case len(k.waiting) > 0:
		e.serveLocked(k, p)
	case !e.closed && e.lackLocked(k) > 0 && e.sparesLocked()+e.stocking < e.opt.Max:
		k.ready = append(k.ready, p.session)
	default:
		return false
	}
	return true
}

// discard removes a sandbox that nobody gets.
func (e *Engine) discard(s sandbox.Session, why string) {
	e.opt.Observer.discarded(why)
	ctx, cancel := context.WithTimeout(context.Background(), discardLimit)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		e.opt.Log.Error("remove a spare; the next start reaps it", "sandbox", s.ID(), "err", err)
	}
}

func (e *Engine) discardAll(spares []sandbox.Session, why string) {
	for _, s := range spares {
		e.discard(s, why)
	}
}
