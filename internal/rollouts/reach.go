package rollouts

import (
	"context"
	"errors"
	"maps"

	"proctor/sandbox"
	"proctor/sandbox/egress"
	"proctor/tasks"
)

// What a rollout's sandbox reaches of the world. A task's allowlist goes through the server's egress proxy,
// over a relay that lives as long as the agent's part does: it opens before the agent's first call, again
// when a server takes the rollout up, and ends with submit, so that the record holds every connection.

// reachEnv gives the environment of a task's sandbox: the task's own, and where its package indexes are.
func reachEnv(t *tasks.Task, carrier tasks.Egress) map[string]string {
	policy, listed := t.AgentReach()
	if !listed || policy.Index == nil || carrier == nil {
		return t.Env
	}
	env := carrier.IndexEnv()
	maps.Copy(env, t.Env)
	return env
}

// openReach lets the sandbox reach what the task's allowlist names. Without an allowlist there is nothing
// to do.
func (r *rollout) openReach(ctx context.Context, sess sandbox.Session) error {
	policy, listed := r.doc.Task.AgentReach()
	if !listed {
		return nil
	}
	err := tasks.OpenRelay(ctx, sess, r.m.opt.Egress, egress.Client{Name: r.id, Policy: policy, Record: func(e egress.Event) {
		r.note("egress", map[string]any{"connection": e, "duration_ms": e.Took.Milliseconds()})
	}})
	switch {
	case err == nil:
		r.mu.Lock()
		r.relayer, _ = sess.(sandbox.Relayer)
		r.mu.Unlock()
		return nil
	case errors.Is(err, egress.ErrNoIndex):
		return &Error{Code: CodeUnsupported, Err: err,
			Detail: "task " + r.doc.Task.ID + " has a package_index, and this server has no index to ask; start it with --package-index URL, --npm-index URL or both"}
	}
	return asError(CodeEngine, "the allowlist of task "+r.doc.Task.ID+" could not be opened", err)
}

// reopenReach opens the relay of a rollout that was taken up. Where it cannot, the rollout goes on without:
// it reaches less than it may, never more.
func (r *rollout) reopenReach(ctx context.Context, sess sandbox.Session) {
	if r.view().Status != StatusRunning {
		return
	}
	if err := r.openReach(ctx, sess); err != nil {
		r.m.opt.Log.Error("a rollout goes on without its allowlist", "rollout", r.id, "err", err)
		r.note("egress_lost", map[string]any{"reason": err.Error()})
	}
}

// endReach ends what the sandbox reaches; the connections there were are in the record when it comes back.
func (r *rollout) endReach() {
	r.mu.Lock()
	relayer := r.relayer
	r.relayer = nil
	r.mu.Unlock()
	if relayer == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), closeTimeout)
	defer cancel()
	if err := relayer.Relay(ctx, nil); err != nil {
		r.m.opt.Log.Warn("end a relay", "rollout", r.id, "err", err)
	}
}
