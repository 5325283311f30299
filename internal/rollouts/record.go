package rollouts

import (
	"context"
	"errors"
	"sync"

	"proctor/internal/store"
	"proctor/monitor"
	"proctor/sandbox"
)

// errPending says that a call has an intent and no outcome, because what it needs is out for now:
// it is settled later, by a retry with its key, or before the next call.
var errPending = errors.New("the call is pending")

// recorder appends a rollout's calls to the store and numbers them. Safe for concurrent use:
// control calls run beside the call that they control.
type recorder struct {
	store   *store.Store
	rollout string
	box     *boxHold
	// appended is told each outcome that was written.
	appended func(rec *monitor.Record, interrupted bool)

	mu      sync.Mutex
	ordinal int   // the last one given
	event   int64 // the last one given, to an outcome or another event
}

// Intent gives rec its ordinal and its name in the sandbox and writes it. A number is used up only
// by a write that succeeded, so that there are no gaps.
func (r *recorder) Intent(ctx context.Context, rec *monitor.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec.Ordinal = r.ordinal + 1
	rec.BoxID = boxID(rec.Ordinal)
	doc, err := encodeIntent(rec)
	if err != nil {
		return err
	}
	err = r.store.AppendIntent(ctx, r.rollout, &store.Call{
		Ordinal: rec.Ordinal, Principal: rec.Principal, Key: rec.Key, Fingerprint: rec.ArgsSHA256,
		BoxID: rec.BoxID, BoxCommand: rec.BoxCommand, Intent: doc,
	})
	if err != nil {
		return err
	}
	r.ordinal = rec.Ordinal
	if f := flightOf(ctx); f != nil {
		f.ordinal = rec.Ordinal
	}
	return nil
}

// Outcome writes the rest of rec. A call that failed because the engine is out for now, or because
// this server lets go of its rollouts, gets no outcome yet: errPending.
func (r *recorder) Outcome(ctx context.Context, rec *monitor.Record) error {
	return r.outcome(ctx, rec, nil)
}

func (r *recorder) outcome(ctx context.Context, rec *monitor.Record, exec *sandbox.ExecResult) error {
	interrupted := rec.Error != ""
	if interrupted && !r.box.final(rec.BoxID) {
		rec.Error = ""
		return errPending
	}
	return r.write(ctx, rec, exec, interrupted)
}

// write appends the outcome of rec, whatever it is.
func (r *recorder) write(ctx context.Context, rec *monitor.Record, exec *sandbox.ExecResult, interrupted bool) error {
	doc, err := encodeOutcome(rec, exec)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	err = r.store.AppendOutcome(ctx, r.rollout, &store.Call{
		Ordinal: rec.Ordinal, Event: r.event + 1, Interrupted: interrupted, Cwd: rec.Cwd, Outcome: doc,
	})
	if err != nil {
		return err
	}
	r.event++
	if f := flightOf(ctx); f != nil {
		f.recorded = true
	}
	if r.appended != nil {
		r.appended(rec, interrupted)
	}
	return nil
}

// note appends an event that is not a call.
func (r *recorder) note(ctx context.Context, doc func(number int64) ([]byte, error)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	data, err := doc(r.event + 1)
	if err != nil {
		return err
	}
	if err := r.store.AppendEvent(ctx, r.rollout, store.Event{Event: r.event + 1, Doc: data}); err != nil {
		return err
	}
	r.event++
	return nil
}

// boxHold makes a rollout's calls in its sandbox, and remembers why one failed, which the record
// needs to tell what is final from what may pass.
type boxHold struct {
	sess sandbox.Session

	mu     sync.Mutex
	faults map[string]error
	ended  bool // the rollout is over: what failed stays failed
}

// Do makes the call.
func (b *boxHold) Do(ctx context.Context, call sandbox.Call) (sandbox.Result, error) {
	res, err := b.sess.Do(ctx, call)
	b.fault(call.ID, err)
	return res, err
}

func (b *boxHold) fault(id string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		delete(b.faults, id)
		return
	}
	if b.faults == nil {
		b.faults = map[string]error{}
	}
	b.faults[id] = err
}

// final reports whether the failure of a call is for good: its sandbox is dead or its rollout over.
func (b *boxHold) final(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	var dead *sandbox.DeadError
	err := b.faults[id]
	return b.ended || errors.As(err, &dead) || errors.Is(err, sandbox.ErrGone) || errors.Is(err, sandbox.ErrStart)
}

func (b *boxHold) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
}
