package pool

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"proctor/sandbox"
)

// Defaults and limits of Options.
const (
	DefaultIdle  = 10 * time.Minute // a kind that nobody asked for as long has no spares
	MaxSpares    = 4096
	tickEvery    = 2 * time.Second  // how often stock is held against demand
	checkLimit   = 2 * time.Second  // for a spare to show that it answers; a healthy one takes 0.1 ms
	discardLimit = 30 * time.Second // for the removal of one
)

// Options make an Engine.
type Options struct {
	// Max is the most spares of all kinds together, made and being made; 1 to MaxSpares.
	Max int
	// Parallel is the most spares that are made at once; 0 means the number of processors. The pool goes
	// below it by itself while starts are slow.
	Parallel int
	// Idle is how long demand lasts without claims; 0 means DefaultIdle.
	Idle time.Duration
	// Observer is told what happens.
	Observer Observer
	// Log takes what is worth a line; nil discards.
	Log *slog.Logger

	clock func() time.Time // nil: time.Now; for tests
}

// Engine is a sandbox.Engine with spares. Safe for concurrent use. Close removes the spares, lets go of the
// wrapped engine, and leaves claimed sandboxes running.
type Engine struct {
	sandbox.Engine // the wrapped one

	opt     Options
	clock   func() time.Time
	digests *digests
	ctx     context.Context // ends with the pool; makes run under it
	cancel  context.CancelFunc
	work    sync.WaitGroup

	mu       sync.Mutex
	kinds    map[string]*kind
	stocking int // makes for stock under way
	waiting  int // callers that wait for a make
	bound    int // on stocking, adaptive
	names    map[string]string
	closed   bool
}

var _ sandbox.Engine = (*Engine)(nil)

// kind is one kind of sandboxes. Guarded by Engine.mu.
type kind struct {
	spec    sandbox.Spec // of spares
	ready   []sandbox.Session
	waiting []*waiter // in order of arrival; none while ready holds any
	makes   []*making // in order of their begin
	demand  demand
}

// waiter is a caller that waits for a make.
type waiter struct {
	got chan product // takes one
}

// product is what a make gave.
type product struct {
	session sandbox.Session
	err     error
}

// New wraps an engine.
func New(engine sandbox.Engine, opt Options) (*Engine, error) {
	if opt.Max < 1 || opt.Max > MaxSpares {
		return nil, fmt.Errorf("pool: Max is %d; 1 to %d spares can be kept", opt.Max, MaxSpares)
	}
	if opt.Parallel == 0 {
		opt.Parallel = runtime.NumCPU()
	}
	if opt.Idle == 0 {
		opt.Idle = DefaultIdle
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	e := &Engine{Engine: engine, opt: opt, clock: opt.clock, bound: opt.Parallel, kinds: map[string]*kind{}, names: map[string]string{}}
	if e.clock == nil {
		e.clock = time.Now
	}
	e.digests = &digests{engine: engine, clock: e.clock, known: map[string]digest{}}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.work.Add(1)
	go e.ticks()
	return e, nil
}

// Unwrap gives the wrapped engine.
func (e *Engine) Unwrap() sandbox.Engine { return e.Engine }

// Create gives a waiting sandbox of spec's kind, or makes one. Errors are the wrapped engine's.
func (e *Engine) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Session, error) {
	began := time.Now()
	if !poolable(spec) {
		s, err := e.Engine.Create(ctx, spec)
		e.opt.Observer.claimed(Apart, time.Since(began), err)
		return s, err
	}
	digest, err := e.digests.of(ctx, spec.Image)
	if err != nil {
		e.opt.Observer.claimed(Cold, time.Since(began), err)
		return nil, err
	}
	e.mu.Lock()
	k, err := e.kindLocked(digest, spec)
	if err != nil {
		e.mu.Unlock()
		return nil, err
	}
	k.demand.claim(e.clock())
	e.mu.Unlock()
	s, err := e.spare(ctx, k)
	how := Warm
	if s == nil && err == nil {
		how = Cold
		s, err = e.await(ctx, k, spec)
	}
	e.opt.Observer.claimed(how, time.Since(began), err)
	if err != nil {
		return nil, err
	}
	e.name(s.ID(), spec.Name)
	e.refill()
	return s, nil
}

// kindLocked finds or makes the kind of spec. Preconditions: mu is held.
func (e *Engine) kindLocked(digest string, spec sandbox.Spec) (*kind, error) {
	if e.closed {
		return nil, errClosed
	}
	key := keyOf(digest, spec)
	k := e.kinds[key]
	if k == nil {
		k = &kind{spec: spareOf(spec), demand: demand{idle: e.opt.Idle}}
		e.kinds[key] = k
	}
	return k, nil
}

var errClosed = fmt.Errorf("%w: the pool of sandboxes is closed", sandbox.ErrUnavailable)

// spare takes the spare of k that has waited longest and answers; nil where there is none. One that does
// not answer is no sandbox to hand out, whatever the reason, and is removed.
func (e *Engine) spare(ctx context.Context, k *kind) (sandbox.Session, error) {
	for {
		e.mu.Lock()
		if len(k.ready) == 0 {
			e.mu.Unlock()
			return nil, nil
		}
		s := k.ready[0]
		k.ready = k.ready[1:]
		e.tellLocked()
		e.mu.Unlock()
		err := e.answers(ctx, s)
		switch {
		case err == nil:
			return s, nil
		case ctx.Err() != nil:
			e.deliver(k, product{session: s})
			return nil, ctx.Err()
		}
		e.opt.Log.Warn("a waiting sandbox does not answer and is removed", "sandbox", s.ID(), "err", err)
		e.work.Go(func() { e.discard(s, "dead") }) // a claim does not wait for it
	}
}

// answers makes sure that a sandbox's agent answers now.
func (e *Engine) answers(ctx context.Context, s sandbox.Session) error {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	state, err := s.State(ctx, "ready")
	if err == nil && state != sandbox.CallUnknown {
		err = fmt.Errorf("it knows a call that nobody made (%s)", state)
	}
	return err
}

// await queues for what makes of k give, and begins one for this caller.
func (e *Engine) await(ctx context.Context, k *kind, spec sandbox.Spec) (sandbox.Session, error) {
	w := &waiter{got: make(chan product, 1)}
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil, errClosed
	}
	if len(k.ready) > 0 { // one came to be meanwhile
		e.mu.Unlock()
		if s, err := e.spare(ctx, k); s != nil || err != nil {
			return s, err
		}
		return e.await(ctx, k, spec)
	}
	k.waiting = append(k.waiting, w)
	e.waiting++
	if len(k.makes) < len(k.waiting) {
		e.beginLocked(k, spec, false)
	}
	e.tellLocked()
	e.mu.Unlock()
	select {
	case p := <-w.got:
		return p.session, p.err
	case <-ctx.Done():
		e.leave(k, w)
		return nil, ctx.Err()
	}
}

// leave takes a caller that gave up out of the queue. A make that nobody needs then is stopped, and what it
// made is gone when leave returns.
func (e *Engine) leave(k *kind, w *waiter) {
	e.mu.Lock()
	if !e.dropLocked(k, w) { // it was served at the same moment
		e.mu.Unlock()
		if p := <-w.got; p.session != nil {
			e.deliver(k, p)
		}
		return
	}
	stopped := e.stopLocked(k, len(k.waiting)+max(e.lackLocked(k), 0))
	e.tellLocked()
	e.mu.Unlock()
	for _, m := range stopped {
		<-m.done
	}
}

// stopLocked stops the makes of k that came last, down to want, and gives them: what they made is gone once
// they are done. Preconditions: mu is held.
func (e *Engine) stopLocked(k *kind, want int) (stopped []*making) {
	for len(k.makes) > want {
		last := k.makes[len(k.makes)-1]
		k.makes = k.makes[:len(k.makes)-1]
		e.forgetLocked(last)
		last.cancel()
		stopped = append(stopped, last)
	}
	return stopped
}

// dropLocked removes w from the queue, and reports whether it was there. Preconditions: mu is held.
func (e *Engine) dropLocked(k *kind, w *waiter) bool {
	for i, other := range k.waiting {
		if other == w {
			k.waiting = append(k.waiting[:i:i], k.waiting[i+1:]...)
			e.waiting--
			return true
		}
	}
	return false
}

// name keeps under which name a spare was claimed.
func (e *Engine) name(id, name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.names[id] = name
}

// List lists as the wrapped engine does, claimed sandboxes under the names that they were asked for with.
func (e *Engine) List(ctx context.Context) ([]sandbox.Listed, error) {
	listed, err := e.Engine.List(ctx)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, l := range listed {
		if name, ok := e.names[l.ID]; ok {
			listed[i].Name = name
		}
	}
	return listed, nil
}

// Remove removes a sandbox by id.
func (e *Engine) Remove(ctx context.Context, id string) error {
	err := e.Engine.Remove(ctx, id)
	if err == nil {
		e.mu.Lock()
		delete(e.names, id)
		e.mu.Unlock()
	}
	return err
}

// Drain removes all spares, those too that are being made, and forgets all demand; the pool goes on.
func (e *Engine) Drain() {
	e.mu.Lock()
	var spares []sandbox.Session
	var stopped []*making
	for key, k := range e.kinds {
		spares = append(spares, k.ready...)
		stopped = append(stopped, e.stopLocked(k, len(k.waiting))...)
		k.ready, k.demand = nil, demand{idle: e.opt.Idle, took: k.demand.took}
		if len(k.makes) == 0 && len(k.waiting) == 0 {
			delete(e.kinds, key)
		}
	}
	e.tellLocked()
	e.mu.Unlock()
	e.discardAll(spares, "drained")
	for _, m := range stopped {
		<-m.done
	}
}

// Close removes the spares and closes the wrapped engine. Callers that wait are told that it is unavailable.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	for _, k := range e.kinds {
		for _, w := range k.waiting {
			w.got <- product{err: errClosed}
		}
		e.waiting -= len(k.waiting)
		k.waiting = nil
	}
	e.mu.Unlock()
	e.cancel()
	e.Drain()
	e.work.Wait()
	return e.Engine.Close()
}
