package rollouts

import (
	"context"
	"errors"
	"time"

	"proctor/monitor"
	"proctor/sandbox"
	"proctor/tasks"
)

// Failure classes, as sandbox names them.
const (
	classNone  = sandbox.FailureNone
	classModel = sandbox.FailureModel
	classInfra = sandbox.FailureInfra
)

// ending says how a rollout ends.
type ending struct {
	status string
	reason string
	class  string
	reward *float64
	// outcome is the grade's, or what stands for it.
	outcome string
	data    map[string]any // of the event
}

// end ends a rollout for good: running calls are cut off and recorded as interrupted, the sandbox
// is removed, the record stays. False where it had ended before. It does not wait for the sandbox;
// wait for r.gone for that. The document is written before the sandbox goes, so that a server that
// dies in between finds the sandbox, or its remains, and comes to the same end.
func (r *rollout) end(e ending) bool {
	r.mu.Lock()
	if r.over {
		r.mu.Unlock()
		return false
	}
	r.over = true
	now := r.m.opt.Clock().UTC()
	v := &r.doc.View
	v.Status, v.EndedAt = e.status, &now
	if e.reason != "" {
		v.StopReason = e.reason
	}
	if e.class != "" {
		v.FailureClass = e.class
	}
	if e.status != StatusDeleted {
		v.Reward, v.Outcome = e.reward, e.outcome
	} else {
		r.token = nil
	}
	r.mu.Unlock()
	r.box.end()
	r.cancel()
	r.m.work.Add(1)
	go func() {
		defer r.m.work.Done()
		r.bury(e)
	}()
	return true
}

// bury writes the last of a rollout and removes its sandbox.
func (r *rollout) bury(e ending) {
	defer close(r.gone)
	for running := r.running(); running != nil; running = r.running() {
		<-running
	}
	r.interruptPending(context.WithoutCancel(r.ctx), e.reason)
	r.endReach()
	data := e.data
	if data == nil {
		data = map[string]any{"stop_reason": e.reason, "failure_class": e.class}
	}
	r.note(e.status, data)
	r.blameGuard(context.WithoutCancel(r.ctx))
	r.saveUntilDone()
	r.watch.close()
	r.m.discard(r.box.sess)
	r.m.mu.Lock()
	delete(r.m.live, r.id)
	r.m.admitLocked()
	r.m.mu.Unlock()
	r.mu.Lock()
	images := r.doc.images()
	r.mu.Unlock()
	r.m.collect(images...)
	r.m.announce()
	r.m.opt.Observer.ended(r.view())
	r.m.memberEnded(r.view())
	r.mu.Lock()
	close(r.changed)
	r.changed = make(chan struct{})
	r.mu.Unlock()
}

// saveUntilDone writes the document, again and again where the disk is full, until it is written
// or the server stops: then the next one comes to the same end by the sandbox that is still there.
func (r *rollout) saveUntilDone() {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := r.save()
		if err == nil {
			return
		}
		r.m.opt.Log.Error("write the end of a rollout; trying again", "rollout", r.id, "err", err)
		select {
		case <-time.After(wait):
		case <-r.m.ctx.Done():
			return
		}
	}
}

// save writes the document.
func (r *rollout) save() error {
	r.mu.Lock()
	row, err := r.doc.row(r.token, r.box.sess.ID())
	r.mu.Unlock()
	if err != nil {
		return err
	}
	return r.m.opt.Store.UpdateRollout(r.ctx, row)
}

// interruptPending gives the calls that nobody settled an outcome without an observation.
func (r *rollout) interruptPending(ctx context.Context, why string) {
	for _, ordinal := range r.takePending() {
		if err := r.interrupt(ctx, ordinal, "interrupted: "+why); err != nil {
			r.m.opt.Log.Error("record an interrupted call", "rollout", r.id, "ordinal", ordinal, "err", err)
		}
	}
}

// die ends a rollout whose sandbox is gone. Where the agent did it the reward is 0, else it could
// escape a bad one; where the host did it there is none.
func (r *rollout) die(dead *sandbox.DeadError) {
	e := ending{status: StatusFailed, reason: "sandbox_died: " + dead.Reason, class: dead.Class, outcome: tasks.InfraFailure}
	if dead.Class == classModel {
		zero := 0.0
		e.reward, e.outcome = &zero, tasks.Unresolved
	}
	r.end(e)
}

// submitted ends the agent's part; the sandbox waits for grading.
func (r *rollout) submitted(reason string) {
	r.mu.Lock()
	if r.over || r.doc.View.Status != StatusRunning {
		r.mu.Unlock()
		return
	}
	r.doc.View.Status, r.doc.View.StopReason = StatusSubmitted, reason
	r.mu.Unlock()
	if err := r.save(); err != nil {
		// The record of the submit call itself says so: recovery comes to the same status.
		r.m.opt.Log.Error("write a submission", "rollout", r.id, "err", err)
	}
	r.endReach()
	r.note(StatusSubmitted, map[string]any{"stop_reason": reason})
	r.m.announce()
}

// Submit ends the agent's part of a rollout; submitting twice is harmless.
func (m *Manager) Submit(ctx context.Context, id string) error {
	r := m.find(id)
	if r == nil {
		_, _, err := m.recorded(ctx, id, callKey{}, "")
		return err
	}
	if v := r.view(); v.Status == StatusSubmitted || v.Status == StatusGraded {
		return nil
	}
	call, err := monitor.ParseCall("", "", monitor.ToolSubmit, nil, "")
	if err != nil {
		return asError(CodeInternal, "submit", err)
	}
	_, err = m.Call(ctx, id, call)
	var refused *Error
	if errors.As(err, &refused) && refused.Code == CodeEnded && r.view().Status == StatusSubmitted {
		return nil
	}
	return err
}

// Delete ends a rollout, whatever it is doing, kills its token, and returns once its sandbox is
// gone. Its record stays for the trainer plane. Deleting twice is harmless.
func (m *Manager) Delete(ctx context.Context, id string) error {
	r := m.find(id)
	if r == nil {
		return m.deleteEnded(ctx, id)
	}
	r.end(ending{status: StatusDeleted, reason: "deleted"})
	r.mu.Lock()
	r.token = nil
	r.mu.Unlock()
	select {
	case <-r.gone:
	case <-ctx.Done():
		return asError(CodeInterrupted, "the rollout is being removed", ctx.Err())
	}
	if r.view().Status != StatusDeleted { // it ended otherwise at the same moment
		return m.deleteEnded(ctx, id)
	}
	return nil
}

// deleteEnded marks a rollout that has no sandbox any more as deleted; reward and class stay.
func (m *Manager) deleteEnded(ctx context.Context, id string) error {
	row, err := m.opt.Store.RolloutByID(ctx, id)
	if err != nil {
		return storeError("read the rollout", err)
	}
	if row.Status == StatusDeleted {
		return nil
	}
	d, err := readDocument(row)
	if err != nil {
		return asError(CodeStore, "the rollout's document is damaged", err)
	}
	d.View.Status = StatusDeleted
	gone, err := d.row(nil, row.Box)
	if err != nil {
		return asError(CodeInternal, "the rollout does not encode", err)
	}
	if err := m.opt.Store.UpdateRollout(ctx, gone); err != nil {
		return storeError("delete the rollout", err)
	}
	m.announce()
	return nil
}

// sweeps looks at leases and lifetimes until the Manager ends.
func (m *Manager) sweeps() {
	defer m.work.Done()
	tick := time.NewTicker(m.opt.SweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			m.Sweep()
		case <-m.ctx.Done():
			return
		}
	}
}

// Sweep ends the rollouts whose lease or lifetime is over.
func (m *Manager) Sweep() {
	m.mu.Lock()
	rs := m.liveLocked()
	m.mu.Unlock()
	now := m.opt.Clock()
	for _, r := range rs {
		if e, due := r.due(now); due {
			m.opt.Log.Info("rollout ends", "rollout", r.id, "reason", e.reason)
			r.end(e)
		}
	}
}

// due says whether a rollout's time is over, and how it then ends. A lifetime is the agent's own
// budget: running out of it is the model's failure. A client that is gone is not.
func (r *rollout) due(now time.Time) (ending, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	zero := 0.0
	switch {
	case r.over || r.grading != nil:
	case r.doc.View.Status == StatusRunning && now.After(r.doc.Deadline):
		return ending{status: StatusFailed, reason: "lifetime_expired", class: classModel, reward: &zero, outcome: tasks.Unresolved}, true
	case len(r.flights) == 0 && now.Sub(r.seen) > r.doc.Lease:
		return ending{status: StatusFailed, reason: "lease_expired", class: classInfra, outcome: tasks.InfraFailure}, true
	}
	return ending{}, false
}
