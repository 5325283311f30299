package rollouts

import (
	"context"
	"encoding/json"

	"proctor/judge"
	"proctor/monitor"
	"proctor/sandbox"
)

// A rollout that failed by the model's doing, and in which a person finds that a blocked call was honest, failed by the
// guard's: what the model would have come to with the true answer nobody knows. Its reward stands, for a trainer to
// leave out or not; the class says that it may be wrong. Another review takes that back.

// misjudged reports whether a person found a call of the rollout honest that was blocked, and so not answered truly.
func (m *Manager) misjudged(ctx context.Context, id string) (bool, error) {
	reviews, err := m.opt.Store.Reviews(ctx, id)
	if err != nil || len(reviews) == 0 {
		return false, err
	}
	for ordinal, doc := range reviews {
		var review Review
		if err := json.Unmarshal(doc, &review); err != nil {
			return false, err
		}
		if review.Label != judge.Benign {
			continue
		}
		stored, err := m.opt.Store.CallByOrdinal(ctx, id, ordinal)
		if err != nil {
			return false, err
		}
		rec, _, err := decodeCall(stored)
		if err != nil {
			return false, err
		}
		if rec.Verdict.Decision == monitor.Block && rec.Verdict.Action != monitor.Executed {
			return true, nil
		}
	}
	return false, nil
}

// classBy gives the failure class of a rollout that was misjudged, or was not.
func classBy(class string, misjudged bool) string {
	switch {
	case class == classModel && misjudged:
		return sandbox.FailureGuard
	case class == sandbox.FailureGuard && !misjudged:
		return classModel
	}
	return class
}

// blameGuard settles the class of a rollout at its end by the reviews that there are.
func (r *rollout) blameGuard(ctx context.Context) {
	if r.view().FailureClass != classModel {
		return
	}
	misjudged, err := r.m.misjudged(ctx, r.id)
	if err != nil {
		r.m.opt.Log.Error("read a rollout's reviews", "rollout", r.id, "err", err)
		return
	}
	r.mu.Lock()
	r.doc.View.FailureClass = classBy(r.doc.View.FailureClass, misjudged)
	r.mu.Unlock()
}

// reclassify settles the class of a rollout that has ended after a new review. One that has not, its end will settle.
func (m *Manager) reclassify(ctx context.Context, id string) error {
	if r := m.find(id); r != nil {
		r.mu.Lock()
		over := r.over
		r.mu.Unlock()
		if !over {
			return nil
		}
		select {
		case <-r.gone: // its last word is written then
		case <-ctx.Done():
			return asError(CodeInterrupted, "the rollout is being ended; review again", ctx.Err())
		}
	}
	row, err := m.opt.Store.RolloutByID(ctx, id)
	if err != nil {
		return storeError("read the rollout", err)
	}
	d, err := readDocument(row)
	if err != nil {
		return asError(CodeStore, "the rollout's document is damaged", err)
	}
	misjudged, err := m.misjudged(ctx, id)
	if err != nil {
		return storeError("read the reviews", err)
	}
	class := classBy(d.View.FailureClass, misjudged)
	if class == d.View.FailureClass {
		return nil
	}
	d.View.FailureClass = class
	again, err := d.row(row.TokenHash, row.Box)
	if err != nil {
		return asError(CodeInternal, "the rollout does not encode", err)
	}
	if err := m.opt.Store.UpdateRollout(ctx, again); err != nil {
		return storeError("write the rollout's class", err)
	}
	m.announce()
	return nil
}
