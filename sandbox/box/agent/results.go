package agent

import (
	"fmt"
	"sync"

	"proctor/sandbox"
	"proctor/sandbox/box/wire"
)

// Bounds on what is kept for a host that comes back.
const (
	keepResults = 1024
	keepBytes   = 8 << 20
	keepIDs     = 1 << 16 // IDs of calls whose results are dropped, so that they never run twice
)

// entry is a call that was made.
type entry struct {
	kind  wire.Kind
	done  chan struct{} // closed once reply is set
	reply wire.Frame    // without an id
}

// results remembers calls by their IDs. Safe for concurrent use.
type results struct {
	mu      sync.Mutex
	byID    map[string]*entry
	ended   []string // oldest first; may name dropped ones
	bytes   int
	dropped map[string]bool
	order   []string // of dropped, oldest first
}

func newResults() *results {
	return &results{byID: map[string]*entry{}, dropped: map[string]bool{}}
}

// join gives the entry of a call, and whether the caller is to make the call: it is the first. An ID
// whose result was dropped, or that is another kind of call's, is an error.
func (r *results) join(id string, kind wire.Kind) (e *entry, first bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.byID[id]; e != nil {
		if e.kind != kind {
			return nil, false, fmt.Errorf("the ID %q is another kind of call's", id)
		}
		return e, false, nil
	}
	if r.dropped[id] {
		return nil, false, fmt.Errorf("call %q: %w", id, wire.ErrForgotten)
	}
	e = &entry{kind: kind, done: make(chan struct{})}
	r.byID[id] = e
	return e, true, nil
}

// finish keeps the reply of a call and wakes all who joined it.
func (r *results) finish(id string, e *entry, reply wire.Frame) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.reply = reply
	close(e.done)
	r.ended = append(r.ended, id)
	r.bytes += len(reply.Payload)
	for len(r.ended) > 1 && (len(r.ended) > keepResults || r.bytes > keepBytes) {
		oldest := r.ended[0]
		r.ended = r.ended[1:]
		r.drop(oldest)
	}
}

// forget drops the results of ended calls.
func (r *results) forget(ids []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		r.drop(id)
	}
}

// drop keeps no more of an ended call than that it was made. The caller holds mu.
func (r *results) drop(id string) {
	e := r.byID[id]
	if e == nil {
		return
	}
	select {
	case <-e.done:
	default:
		return // still running
	}
	delete(r.byID, id)
	r.bytes -= len(e.reply.Payload)
	r.dropped[id] = true
	r.order = append(r.order, id)
	if len(r.order) > keepIDs {
		delete(r.dropped, r.order[0])
		r.order = r.order[1:]
	}
}

// state tells what is known of a call.
func (r *results) state(id string) sandbox.CallState {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.byID[id]
	switch {
	case e == nil && r.dropped[id]:
		return sandbox.CallDone
	case e == nil:
		return sandbox.CallUnknown
	}
	select {
	case <-e.done:
		return sandbox.CallDone
	default:
		return sandbox.CallRunning
	}
}
