package rollouts

import (
	"context"
	"errors"

	"proctor/sandbox"
	"proctor/tasks"
)

// forkSpec gives the sandbox of a fork. The label keeps it out of a pool: nobody else can use one like it.
func forkSpec(d *document, network *NetworkOverride, carrier tasks.Egress) sandbox.Spec {
	s := spec(d, network, carrier)
	s.Image = d.Base
	s.Labels = map[string]string{"snapshot": d.View.Fork.Snapshot}
	return s
}

// inherit gives a new fork, whose row is in the store, the record that it shares, and brings its Gate, its
// numbers and its shell to where the other's stood. Calls that were under way have no outcome here and never
// will: they are interrupted.
func (r *rollout) inherit(ctx context.Context, p *forkPlan) error {
	s := p.snapshot
	if err := r.m.opt.Store.CopyRecord(ctx, s.RolloutID, r.id, s.Ordinal, s.Event); err != nil {
		return storeError("copy the record", err)
	}
	if err := r.replay(ctx); err != nil {
		return asError(CodeStore, "the record could not be replayed", err)
	}
	r.interruptPending(ctx, "the rollout was forked while it ran")
	if err := s.seed(ctx, r.box.sess); err != nil {
		return asError(CodeEngine, "the fork's shell could not be started", err)
	}
	return nil
}

// abandonRow removes the row of a rollout that did not come to be.
func (m *Manager) abandonRow(ctx context.Context, id string, cause error) error {
	return errors.Join(cause, m.opt.Store.DropRollout(context.WithoutCancel(ctx), id))
}
