package rollouts

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"proctor/internal/store"
	"proctor/monitor"
	"proctor/sandbox"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Call takes a call through the rollout's Gate and gives what the agent is shown. A call goes on
// when its caller hangs up. A key makes it idempotent: whoever calls again with it, at once or
// after a restart, gets the one answer, and the call runs once.
func (m *Manager) Call(ctx context.Context, id string, call monitor.Call) (monitor.Observation, error) {
	if call.Principal == "" {
		call.Principal = monitor.Agent
	}
	if len(call.Key) > maxKey {
		return monitor.Observation{}, refuse(CodeBadRequest, "the Idempotency-Key is longer than %d bytes", maxKey)
	}
	r := m.find(id)
	if r == nil {
		rec, _, err := m.recorded(ctx, id, callKey{call.Principal, call.Key}, monitor.ArgsSHA256(call))
		if err != nil {
			return monitor.Observation{}, err
		}
		return *rec.Observation, nil
	}
	ctx, span := m.opt.Tracer.Start(ctx, "rollout.call", trace.WithAttributes(attribute.String("rollout", id), attribute.String("tool", call.Name)))
	defer span.End()
	want := wanted{key: callKey{call.Principal, call.Key}, args: monitor.ArgsSHA256(call), serial: !call.Box.Op.Control()}
	f, err := r.fly(want, func(ctx context.Context, f *flight) error { return r.gated(ctx, f, call) })
	if err != nil {
		return monitor.Observation{}, err
	}
	if err := r.await(ctx, f); err != nil {
		return monitor.Observation{}, err
	}
	return f.obs, nil
}

// wanted is what a caller asks a rollout for.
type wanted struct {
	key    callKey
	args   string // hash of what is asked for
	serial bool
}

// fly gives the flight that answers a caller: the one that its key stands for, or a new one that
// do is run for, in its turn.
func (r *rollout) fly(w wanted, do func(context.Context, *flight) error) (*flight, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.m.opt.Clock()
	f := &flight{key: w.key, arguments: w.args, serial: w.serial, done: make(chan struct{})}
	if w.key.key != "" {
		if k := r.keys[w.key]; k != nil {
			switch {
			case k.args != w.args:
				return nil, errConflict()
			case k.flight != nil:
				r.seen = now
				return k.flight, nil
			case k.done:
				r.seen = now
				return r.fromRecord(k.ordinal), nil
			default: // a call without an outcome: this caller settles it
				f.resume, f.ordinal = true, k.ordinal
			}
		}
	}
	if err := r.openTo(w.key.principal); err != nil {
		return nil, err
	}
	r.seen = now
	if w.key.key != "" {
		r.keys[w.key] = &keyed{args: w.args, flight: f, ordinal: f.ordinal}
	}
	delete(r.pending, f.ordinal)
	r.launch(f, do)
	return f, nil
}

// launch runs a flight in its turn. The lock is held.
func (r *rollout) launch(f *flight, do func(context.Context, *flight) error) {
	r.flights[f] = struct{}{}
	var before <-chan struct{}
	if f.serial {
		before, r.tail = r.tail, f.done
	}
	go r.run(f, before, do)
}

// openTo says whether principal may make calls now. The lock is held.
func (r *rollout) openTo(principal string) error {
	v := &r.doc.View
	switch {
	case r.over:
		return errEnded(v)
	case v.Status == StatusRunning, v.Status == StatusSubmitted && principal == monitor.Harness && r.grading == nil:
	default:
		return errEnded(v)
	}
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	if r.m.draining {
		return errDraining()
	}
	return nil
}

func errEnded(v *View) *Error {
	if v.Status == StatusDeleted {
		return errNoRollout()
	}
	return refuse(CodeEnded, "the rollout has ended (%s); no more calls are taken", v.Status)
}

// run carries one flight through.
func (r *rollout) run(f *flight, before <-chan struct{}, do func(context.Context, *flight) error) {
	defer r.land(f)
	if before != nil {
		select {
		case <-before:
		case <-r.ctx.Done():
		}
	}
	if r.ctx.Err() != nil {
		f.err = r.stopped()
		return
	}
	ctx := context.WithValue(r.ctx, flightKey{}, f)
	if f.serial && !f.resume {
		if err := r.settle(ctx); err != nil {
			f.err = r.explain(f, err)
			return
		}
	}
	f.err = r.explain(f, r.guard(func() error { return do(ctx, f) }))
}

// guard turns a panic in one call into that call's error: the server and its other rollouts go on.
func (r *rollout) guard(do func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			r.m.opt.Log.Error("a call panicked", "rollout", r.id, "panic", v, "stack", string(debug.Stack()))
			err = fmt.Errorf("a call panicked: %v", v)
		}
	}()
	return do()
}

// land hands a flight's answer to all that wait for it.
func (r *rollout) land(f *flight) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.flights, f)
	r.seen = r.m.opt.Clock()
	if f.ordinal > 0 && !f.recorded {
		r.pending[f.ordinal] = true
	}
	if f.key.key != "" {
		if f.ordinal == 0 {
			delete(r.keys, f.key) // nothing was written: a retry runs it
		} else {
			r.keys[f.key] = &keyed{args: f.arguments, ordinal: f.ordinal, done: f.recorded}
		}
	}
	close(f.done)
}

// await waits for a flight or for the caller to leave, which does not stop the call.
func (r *rollout) await(ctx context.Context, f *flight) error {
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return asError(CodeInterrupted, "the caller left; the call goes on, and the same Idempotency-Key gives its answer", ctx.Err())
	}
}

// gated takes a call through the Gate, or through what is left of it.
func (r *rollout) gated(ctx context.Context, f *flight, call monitor.Call) (err error) {
	if f.resume {
		f.obs, err = r.resume(ctx, f.ordinal, call)
	} else {
		f.obs, err = r.gate.Do(ctx, call)
	}
	if err == nil && call.Name == monitor.ToolSubmit && call.Principal == monitor.Agent {
		r.submitted("submitted")
	}
	return err
}

// resume takes a call whose intent is in the store through the steps that are left.
func (r *rollout) resume(ctx context.Context, ordinal int, call monitor.Call) (monitor.Observation, error) {
	stored, err := r.m.opt.Store.CallByOrdinal(ctx, r.id, ordinal)
	if err != nil {
		return monitor.Observation{}, err
	}
	rec, _, err := decodeCall(stored)
	if err != nil {
		return monitor.Observation{}, err
	}
	return r.gate.Resume(ctx, call, rec)
}

// explain gives the error of a call its code, and ends the rollout where its sandbox is dead.
func (r *rollout) explain(f *flight, err error) error {
	if err == nil {
		return nil
	}
	var dead *sandbox.DeadError
	switch {
	case errors.As(err, &dead):
		r.die(dead)
		return &Error{Code: CodeSandboxDead, Detail: "the sandbox is gone, and the rollout with it"}
	case errors.Is(err, sandbox.ErrGone):
		r.die(&sandbox.DeadError{Class: classInfra, Reason: err.Error()})
		return &Error{Code: CodeSandboxDead, Detail: "the sandbox is gone, and the rollout with it"}
	case r.ctx.Err() != nil:
		return r.stopped()
	case errors.Is(err, errPending):
		cause := r.box.why(f.ordinal)
		e := asError(CodeEngine, "the sandbox engine does not answer; the same Idempotency-Key gives the call's answer once it does", cause)
		r.m.opt.Log.Error("a call is pending", "rollout", r.id, "ordinal", f.ordinal, "err", cause)
		e.Retry, e.Err = true, nil
		return e
	case errors.Is(err, sandbox.ErrStart):
		return &Error{Code: CodeInvalidCall, Detail: "the command could not be started", Err: err}
	}
	e := asError(CodeInternal, "the call could not be made", err)
	// The cause may name things of the host, which are not the agent's to know; the log has it.
	r.m.opt.Log.Error("a call failed", "rollout", r.id, "ordinal", f.ordinal, "err", err)
	return &Error{Code: e.Code, Detail: e.Detail, Retry: e.Retry, After: e.After}
}

// stopped says why calls of an ended rollout, or of a Manager that lets go, do not go on.
func (r *rollout) stopped() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return errEnded(&r.doc.View)
	}
	e := errDraining()
	e.Code = CodeInterrupted
	return e
}

// fromRecord gives a landed flight with the answer of a call that was made before. The lock is held.
func (r *rollout) fromRecord(ordinal int) *flight {
	f := &flight{ordinal: ordinal, recorded: true, done: make(chan struct{})}
	go func() {
		defer close(f.done)
		stored, err := r.m.opt.Store.CallByOrdinal(context.WithoutCancel(r.ctx), r.id, ordinal)
		if err != nil {
			f.err = storeError("read the call", err)
			return
		}
		rec, exec, err := decodeCall(stored)
		if err == nil {
			err = f.answer(rec, exec)
		}
		f.err = err
	}()
	return f
}

// answer fills a flight from a record.
func (f *flight) answer(rec *monitor.Record, exec *sandbox.ExecResult) error {
	if rec.Observation == nil {
		return errUnknown(rec)
	}
	f.obs = *rec.Observation
	if exec != nil {
		f.exec = *exec
	}
	return nil
}

// errUnknown is final: however often the call is asked for, no answer will come.
func errUnknown(rec *monitor.Record) *Error {
	return refuse(CodeUnknown, "call %d was made under this Idempotency-Key and was interrupted; whether it ran is not known; use a new key to call again", rec.Ordinal)
}

// recorded answers a call to a rollout that is not live: what was recorded under its key, or why
// there is nothing to be had.
func (m *Manager) recorded(ctx context.Context, id string, key callKey, args string) (*monitor.Record, *sandbox.ExecResult, error) {
	row, err := m.opt.Store.RolloutByID(ctx, id)
	if err != nil {
		return nil, nil, storeError("read the rollout", err)
	}
	if row.Status == StatusDeleted {
		return nil, nil, errNoRollout()
	}
	ended := errEnded(&View{Status: row.Status})
	if key.key == "" {
		return nil, nil, ended
	}
	stored, err := m.opt.Store.CallByKey(ctx, id, key.principal, key.key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil, ended
	case err != nil:
		return nil, nil, storeError("read the call", err)
	case stored.Fingerprint != args:
		return nil, nil, errConflict()
	}
	rec, exec, err := decodeCall(stored)
	if err != nil {
		return nil, nil, asError(CodeStore, "the record is damaged", err)
	}
	if rec.Observation == nil {
		return nil, nil, ended // it was cut off by that end
	}
	return rec, exec, nil
}

// why gives the fault of a call.
func (b *boxHold) why(ordinal int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.faults[boxID(ordinal)]; err != nil {
		return err
	}
	return sandbox.ErrUnavailable
}

func boxID(ordinal int) string { return fmt.Sprintf("c%d", ordinal) }

// Heartbeat renews a rollout's lease.
func (m *Manager) Heartbeat(ctx context.Context, id string) error {
	if r := m.find(id); r != nil {
		r.touch()
		return nil
	}
	_, _, err := m.recorded(ctx, id, callKey{}, "")
	return err
}

// Authenticate reports, in constant time, whether token opens the agent plane of rollout id.
func (m *Manager) Authenticate(id, token string) bool {
	if r := m.find(id); r != nil {
		r.mu.Lock()
		hash := r.token
		r.mu.Unlock()
		return sameToken(token, hash)
	}
	ctx, cancel := context.WithTimeout(m.ctx, 10*time.Second)
	defer cancel()
	row, err := m.opt.Store.RolloutByID(ctx, id)
	if err != nil || row.Status == StatusDeleted {
		return sameToken(token, nil)
	}
	return sameToken(token, row.TokenHash)
}
