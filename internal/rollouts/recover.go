package rollouts

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"proctor/internal/store"
	"proctor/monitor"
	"proctor/sandbox"
	"proctor/tasks"
)

// recover takes up what an earlier server left in the store and in the engine.
func (m *Manager) recover(ctx context.Context) error {
	if err := m.dropHalfGroups(ctx); err != nil {
		return err
	}
	rows, err := m.opt.Store.Rollouts(ctx, store.Filter{Statuses: []string{StatusRunning, StatusSubmitted}})
	if err != nil {
		return fmt.Errorf("rollouts: %w", err)
	}
	for _, row := range rows {
		if err := m.takeUp(ctx, row); err != nil {
			return fmt.Errorf("rollouts: take up rollout %s: %w", row.ID, err)
		}
	}
	if err := m.dropStaleKeys(ctx); err != nil {
		return err
	}
	return errors.Join(m.reap(ctx), m.reapImages(ctx))
}

// takeUp attaches a rollout's sandbox again, and rebuilds all that the dead server held of it.
func (m *Manager) takeUp(ctx context.Context, row *store.Rollout) error {
	d, err := readDocument(row)
	if err != nil {
		return err
	}
	d.Deadline = m.deadline(d)
	sess, err := m.opt.Engine.Attach(ctx, row.Box)
	if err == nil {
		err = sess.Alive(ctx)
	}
	var dead *sandbox.DeadError
	switch {
	case errors.As(err, &dead):
	case errors.Is(err, sandbox.ErrGone):
		dead = &sandbox.DeadError{Class: classInfra, Reason: "its sandbox was gone when the server came back"}
	case err != nil:
		if _, down := m.opt.Engine.Capabilities(ctx); down != nil || ctx.Err() != nil {
			return fmt.Errorf("the engine does not answer, and no rollout is given up for that; start it, then the server: %w", err)
		}
		// The engine is well and this one box is not: it must not keep the others from going on.
		dead = &sandbox.DeadError{Class: classInfra, Reason: "its sandbox could not be taken up when the server came back: " + err.Error()}
	}
	if sess == nil {
		sess = goneSession{id: row.Box, engine: m.opt.Engine}
	}
	r, err := m.newRollout(d, row.TokenHash, sess)
	if err != nil {
		return err
	}
	if err := r.replay(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	m.live[r.id] = r
	m.mu.Unlock()
	if dead != nil {
		r.die(dead)
		return nil
	}
	r.samePacks()
	r.reopenReach(ctx, sess)
	r.join(ctx)
	return nil
}

// samePacks notes where a rollout goes on under another rule set than it started with: the packs
// were changed while the server was down.
func (r *rollout) samePacks() {
	if r.doc.View.Mode == monitor.Off || r.m.opt.Rules == nil {
		return
	}
	from, to := r.doc.View.Digests.Packs, r.m.opt.Rules().Digest()
	if from != to {
		r.m.opt.Log.Warn("a rollout goes on under other packs than it started with", "rollout", r.id, "from", from, "to", to)
		r.note("packs_changed", map[string]any{"from": from, "to": to})
	}
}

// replay rebuilds numbers, keys, figures and the Gate's state from the record.
func (r *rollout) replay(ctx context.Context) error {
	calls, err := r.m.opt.Store.Calls(ctx, r.id)
	if err != nil {
		return err
	}
	v := &r.doc.View
	v.Calls, v.Blocked, v.Flagged, v.Hacks = 0, 0, 0, 0
	disturbed := false
	for _, c := range calls {
		rec, _, err := decodeCall(c)
		if err != nil {
			return err
		}
		r.rec.ordinal = max(r.rec.ordinal, c.Ordinal)
		r.rec.event = max(r.rec.event, c.Event)
		if c.Key != "" {
			r.keys[callKey{c.Principal, c.Key}] = &keyed{args: c.Fingerprint, ordinal: c.Ordinal, done: c.Done}
		}
		if !c.Done {
			r.pending[c.Ordinal] = true
			continue
		}
		tally(v, rec)
		disturbed = disturbed || rec.Principal == monitor.Harness
		if err := r.restore(rec); err != nil {
			return err
		}
	}
	if disturbed {
		r.gate.HarnessRan(ctx)
	}
	events, err := r.m.opt.Store.Events(ctx, r.id, 0)
	if err != nil {
		return err
	}
	for _, e := range events {
		r.rec.event = max(r.rec.event, e.Event)
	}
	return nil
}

// restore lets the Gate follow a finished call, as if it had been through it.
func (r *rollout) restore(rec *monitor.Record) error {
	if rec.Observation == nil || rec.Principal != monitor.Agent || rec.Name == execName {
		return nil
	}
	if rec.Name == monitor.ToolSubmit && r.doc.View.Status == StatusRunning {
		// The server died between the call's outcome and the rollout's new status.
		r.doc.View.Status, r.doc.View.StopReason = StatusSubmitted, "submitted"
	}
	call, err := parseAgain(rec)
	if err != nil {
		return err
	}
	r.gate.Restore(call, rec)
	return nil
}

// parseAgain gives the call that a record is of. Whether it asked for base64 shows in its hash.
func parseAgain(rec *monitor.Record) (monitor.Call, error) {
	var plain monitor.Call
	for _, encoding := range []string{"base64", ""} {
		call, err := monitor.ParseCall(rec.CallID, rec.Key, rec.Name, rec.Arguments, encoding)
		if err != nil {
			return monitor.Call{}, fmt.Errorf("call %d: its recorded arguments no longer fit the tool: %w", rec.Ordinal, err)
		}
		call.Principal = rec.Principal
		if monitor.ArgsSHA256(call) == rec.ArgsSHA256 {
			return call, nil
		}
		plain = call
	}
	return plain, nil
}

// join takes up the calls that the sandbox knows, or that never needed it, in the background; they
// hold their places in the queue. The others stay pending: a retry with its key runs one, and the
// next call without it marks it interrupted.
func (r *rollout) join(ctx context.Context) {
	r.mu.Lock()
	ordinals := slices.Sorted(maps.Keys(r.pending))
	r.mu.Unlock()
	for _, ordinal := range ordinals {
		rec, known, err := r.known(ctx, ordinal)
		if err != nil {
			r.m.opt.Log.Warn("a call of a dead server stays pending", "rollout", r.id, "ordinal", ordinal, "err", err)
			continue
		}
		if known {
			r.rejoin(rec)
		}
	}
}

// known gives a pending call, and whether it can be finished without the risk of running it when
// nobody asked for it again.
func (r *rollout) known(ctx context.Context, ordinal int) (*monitor.Record, bool, error) {
	stored, err := r.m.opt.Store.CallByOrdinal(ctx, r.id, ordinal)
	if err != nil {
		return nil, false, err
	}
	rec, _, err := decodeCall(stored)
	if err != nil {
		return nil, false, err
	}
	if rec.Name == monitor.ToolSubmit || rec.Verdict.Action == monitor.Decoyed && rec.BoxCommand == nil {
		return rec, true, nil
	}
	state, err := r.box.sess.State(ctx, rec.BoxID)
	if err != nil {
		return rec, false, err
	}
	return rec, state != sandbox.CallUnknown, nil
}

// rejoin starts a flight that finishes a pending call.
func (r *rollout) rejoin(rec *monitor.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := &flight{
		key: callKey{rec.Principal, rec.Key}, arguments: rec.ArgsSHA256, ordinal: rec.Ordinal, resume: true, done: make(chan struct{}),
	}
	do := func(ctx context.Context, f *flight) error { return r.finishExec(ctx, f, rec) }
	if rec.Name != execName {
		call, err := parseAgain(rec)
		if err != nil {
			r.m.opt.Log.Error("a call of a dead server stays pending", "rollout", r.id, "ordinal", rec.Ordinal, "err", err)
			return
		}
		f.serial = !call.Box.Op.Control()
		do = func(ctx context.Context, f *flight) error { return r.gated(ctx, f, call) }
	}
	delete(r.pending, rec.Ordinal)
	if rec.Key != "" {
		r.keys[f.key] = &keyed{args: rec.ArgsSHA256, flight: f, ordinal: rec.Ordinal}
	}
	r.launch(f, do)
}

// settle gives every pending call its outcome before the next one runs: those that the sandbox
// knows are finished, the others are interrupted.
func (r *rollout) settle(ctx context.Context) error {
	for _, ordinal := range r.takePending() {
		if err := r.settleOne(ctx, ordinal); err != nil {
			r.mu.Lock()
			r.pending[ordinal] = true
			r.mu.Unlock()
			return asError(CodeEngine, "an earlier call is not settled yet", err)
		}
	}
	return nil
}

func (r *rollout) takePending() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	ordinals := slices.Sorted(maps.Keys(r.pending))
	clear(r.pending)
	return ordinals
}

func (r *rollout) settleOne(ctx context.Context, ordinal int) error {
	// The flight in ctx is of the call that waits, not of the one that is settled.
	ctx = context.WithValue(ctx, flightKey{}, (*flight)(nil))
	rec, known, err := r.known(ctx, ordinal)
	if err != nil {
		return err
	}
	if !known {
		return r.interrupt(ctx, ordinal, "interrupted: the server stopped before the sandbox had the call")
	}
	defer r.markDone(rec)
	if rec.Name == execName {
		return r.finishExec(ctx, nil, rec)
	}
	call, err := parseAgain(rec)
	if err != nil {
		return err
	}
	_, err = r.gate.Resume(ctx, call, rec)
	return err
}

// interrupt writes an outcome that says that nothing is known of the call.
func (r *rollout) interrupt(ctx context.Context, ordinal int, why string) error {
	stored, err := r.m.opt.Store.CallByOrdinal(ctx, r.id, ordinal)
	if err != nil {
		return err
	}
	rec, _, err := decodeCall(stored)
	if err != nil {
		return err
	}
	rec.Error = why
	defer r.markDone(rec)
	return r.rec.write(ctx, rec, nil, true)
}

// markDone lets a key answer from the record from now on.
func (r *rollout) markDone(rec *monitor.Record) {
	if rec.Key == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if k := r.keys[callKey{rec.Principal, rec.Key}]; k != nil && k.flight == nil {
		k.done = true
	}
}

// dropStaleKeys frees the keys of creations that a dead server did not finish.
func (m *Manager) dropStaleKeys(ctx context.Context) error {
	for _, scope := range []string{"rollout", "group"} {
		keys, err := m.opt.Store.Keys(ctx, scope)
		if err != nil {
			return fmt.Errorf("rollouts: %w", err)
		}
		for _, k := range keys {
			if scope == "rollout" {
				_, err = m.opt.Store.RolloutByID(ctx, k.Target)
			} else {
				_, err = m.opt.Store.GroupByID(ctx, k.Target)
			}
			if errors.Is(err, store.ErrNotFound) {
				err = m.opt.Store.DropKey(ctx, k.Target)
			}
			if err != nil {
				return fmt.Errorf("rollouts: %w", err)
			}
		}
	}
	return nil
}

// reap removes the sandboxes of ours that no rollout holds: of creations and gradings that a dead
// server did not finish. The engine lists only those that carry this data folder's label.
func (m *Manager) reap(ctx context.Context) error {
	listed, err := m.opt.Engine.List(ctx)
	if err != nil {
		return fmt.Errorf("rollouts: list sandboxes: %w", err)
	}
	held := map[string]bool{}
	m.mu.Lock()
	rs := m.liveLocked()
	m.mu.Unlock()
	for _, r := range rs {
		held[r.box.sess.ID()] = true
	}
	for _, l := range listed {
		if held[l.ID] {
			continue
		}
		m.opt.Log.Info("remove an orphan sandbox", "sandbox", l.ID, "name", l.Name)
		if err := m.opt.Engine.Remove(ctx, l.ID); err != nil {
			return fmt.Errorf("rollouts: remove orphan sandbox %s: %w", l.ID, err)
		}
	}
	return nil
}

// goneSession stands for a sandbox that could not be attached because it is gone: whatever is left
// of it is removed by id.
type goneSession struct {
	sandbox.Session
	id     string
	engine sandbox.Engine
}

func (g goneSession) ID() string                      { return g.id }
func (g goneSession) Detach() error                   { return nil }
func (g goneSession) Close(ctx context.Context) error { return g.engine.Remove(ctx, g.id) }
func (g goneSession) State(context.Context, string) (sandbox.CallState, error) {
	return "", sandbox.ErrGone
}
func (g goneSession) Do(context.Context, sandbox.Call) (sandbox.Result, error) {
	return sandbox.Result{}, sandbox.ErrGone
}

// failedGrade gives the grade that stands for a rollout that ended without one.
func failedGrade(v View) *tasks.Grade {
	g := &tasks.Grade{Outcome: v.Outcome, Reward: v.Reward, FailureClass: v.FailureClass, Notes: []string{v.StopReason}}
	if g.Outcome == "" {
		g.Outcome = tasks.InfraFailure
	}
	return g
}
