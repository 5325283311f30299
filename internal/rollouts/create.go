package rollouts

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"proctor/internal/store"
	"proctor/monitor"
	"proctor/sandbox"
	"proctor/tasks"
)

// making is a creation under way. Several callers may wait for it under one key; it is given up
// when the last of them has left.
type making struct {
	done    chan struct{}
	cancel  context.CancelFunc
	created Created
	err     error

	waiting int // guarded by Manager.mu
}

// plan is a create request that was found good.
type plan struct {
	id, key string
	req     CreateRequest
	task    *tasks.Task
	fork    *forkPlan // nil: it is no fork
}

// Create makes a rollout: its sandbox is up when it returns. A key makes it idempotent: the same
// request under the same key gives the same rollout and token, also after a restart. A creation
// that fails, or whose callers all left, leaves nothing behind.
func (m *Manager) Create(ctx context.Context, key string, req CreateRequest) (Created, error) {
	task, err := m.check(&req)
	if err != nil {
		return Created{}, err
	}
	if len(key) > maxKey {
		return Created{}, refuse(CodeBadRequest, "the Idempotency-Key is longer than %d bytes", maxKey)
	}
	for {
		mk, err := m.claim(ctx, plan{id: newID("r_"), key: key, req: req, task: task})
		if err != nil {
			return Created{}, err
		}
		if mk == nil {
			continue // the key was freed in between
		}
		return m.await(ctx, mk)
	}
}

// claim starts a creation, or finds the one that p's key stands for. Nil where the key has just
// been freed: the caller asks again.
func (m *Manager) claim(ctx context.Context, p plan) (*making, error) {
	mk, err := m.begin(p.id)
	if err != nil {
		return nil, err
	}
	if p.key == "" {
		m.launch(mk, p)
		return mk, nil
	}
	hash := fingerprint(p.req.lasting())
	have, claimed, err := m.opt.Store.ClaimKey(ctx, store.Key{Scope: "rollout", Key: sum(p.key), Hash: hash, Target: p.id})
	if err == nil && claimed {
		m.launch(mk, p)
		return mk, nil
	}
	m.abandon(p.id)
	if err != nil {
		return nil, storeError("claim the key", err)
	}
	if have.Hash != hash {
		return nil, errConflict()
	}
	return m.earlier(ctx, have.Target, p.key)
}

func errConflict() *Error {
	return refuse(CodeConflict, "this Idempotency-Key was used for another request; use a new key for a new request")
}

// earlier gives the creation that target stands for: under way, or done long ago.
func (m *Manager) earlier(ctx context.Context, target, key string) (*making, error) {
	m.mu.Lock()
	if mk := m.making[target]; mk != nil {
		mk.waiting++
		m.mu.Unlock()
		return mk, nil
	}
	m.mu.Unlock()
	row, err := m.opt.Store.RolloutByID(ctx, target)
	if errors.Is(err, store.ErrNotFound) {
		return nil, m.opt.Store.DropKey(ctx, target)
	}
	if err != nil {
		return nil, storeError("read the rollout", err)
	}
	d, err := readDocument(row)
	if err != nil {
		return nil, asError(CodeStore, "the rollout's document is damaged", err)
	}
	mk := &making{done: make(chan struct{}), created: created(d, agentToken(d.Salt, key, d.View.ID)), waiting: 1}
	close(mk.done)
	return mk, nil
}

// begin takes a place for a creation.
func (m *Manager) begin(id string) (*making, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.draining || m.closed {
		return nil, errDraining()
	}
	mk := &making{done: make(chan struct{}), waiting: 1}
	m.making[id] = mk
	return mk, nil
}

// abandon gives the place of a creation back; whoever still holds it waits on its done channel.
func (m *Manager) abandon(id string) {
	m.mu.Lock()
	delete(m.making, id)
	m.mu.Unlock()
	m.announce()
}

// launch runs a creation apart from the callers that wait for it.
func (m *Manager) launch(mk *making, p plan) {
	ctx, cancel := context.WithCancel(m.ctx)
	m.mu.Lock()
	mk.cancel = cancel
	m.mu.Unlock()
	m.work.Add(1)
	go func() {
		defer m.work.Done()
		defer cancel()
		mk.created, mk.err = m.build(ctx, p)
		if mk.err != nil && p.key != "" {
			if err := m.opt.Store.DropKey(ctx, p.id); err != nil {
				m.opt.Log.Error("free the key of a failed create", "rollout", p.id, "err", err)
			}
		}
		if m.unwanted(mk, p.id) {
			mk.err = asError(CodeInterrupted, "the caller left before the rollout was made", context.Canceled)
			if err := m.forget(context.WithoutCancel(ctx), p.id); err != nil {
				m.opt.Log.Error("remove a rollout that nobody waits for; its lease does", "rollout", p.id, "err", err)
			}
		}
		close(mk.done)
	}()
}

// unwanted ends the making of a creation, and reports whether it came to be and all who waited have left.
func (m *Manager) unwanted(mk *making, id string) bool {
	m.mu.Lock()
	delete(m.making, id)
	left := mk.err == nil && mk.waiting == 0
	m.mu.Unlock()
	m.announce()
	return left
}

// await waits for a creation; the last caller to leave stops it.
func (m *Manager) await(ctx context.Context, mk *making) (Created, error) {
	select {
	case <-mk.done:
		return mk.created, mk.err
	case <-ctx.Done():
	}
	m.mu.Lock()
	mk.waiting--
	if mk.waiting == 0 && mk.cancel != nil {
		mk.cancel()
	}
	m.mu.Unlock()
	return Created{}, asError(CodeInterrupted, "the caller left before the rollout was made", ctx.Err())
}

// build makes the rollout of a plan, from the image to the row in the store.
func (m *Manager) build(ctx context.Context, p plan) (Created, error) {
	started := time.Now()
	if err := m.takeRoom(ctx, p.req.patience()); err != nil {
		return Created{}, err
	}
	housed := false // its place is then counted among the live
	defer func() {
		if !housed {
			m.freeRoom()
		}
	}()
	ctx, span := m.opt.Tracer.Start(ctx, "rollout.create")
	defer span.End()

	d, sandboxSpec, err := m.design(ctx, p)
	if err != nil {
		return Created{}, err
	}
	sess, err := m.opt.Engine.Create(ctx, sandboxSpec)
	if err != nil {
		return Created{}, asError(CodeEngine, "the sandbox could not be made", err)
	}
	made, err := m.settleIn(ctx, p, d, sess)
	if err != nil {
		m.discard(sess)
		return Created{}, err
	}
	housed = true
	m.opt.Observer.created(d, time.Since(started))
	return made, nil
}

// design describes a plan's rollout and its sandbox, and makes the image ready.
func (m *Manager) design(ctx context.Context, p plan) (*document, sandbox.Spec, error) {
	if p.fork != nil {
		d := m.forkDocument(p)
		return d, forkSpec(d, p.req.Network, m.opt.Egress), nil
	}
	img, err := m.opt.Lab.Prepare(ctx, p.task, p.req.Hardening == nil || *p.req.Hardening)
	if err != nil {
		return nil, sandbox.Spec{}, asError(CodePrepareFailed, "the image of task "+p.task.ID+" could not be prepared", err)
	}
	d := m.newDocument(p, img)
	return d, spec(d, p.req.Network, m.opt.Egress), nil
}

// clean makes sure that a fresh sandbox holds what it should and no more. A fork's holds what the agent did
// since, and has what was planted.
func (m *Manager) clean(ctx context.Context, p plan, d *document, sess sandbox.Session) error {
	if p.fork != nil {
		return nil
	}
	if d.View.Hardening {
		if err := m.opt.Lab.Verify(ctx, p.task, d.Image, sess); err != nil {
			return asError(CodePrepareFailed, "the sandbox of task "+p.task.ID+" is not clean", err)
		}
	}
	return m.plant(ctx, d, sess)
}

// settleIn turns a fresh sandbox into a rollout; its last step is the row in the store, and of a fork the
// record that it shares.
func (m *Manager) settleIn(ctx context.Context, p plan, d *document, sess sandbox.Session) (Created, error) {
	if err := m.clean(ctx, p, d, sess); err != nil {
		return Created{}, err
	}
	if can, err := m.opt.Engine.Capabilities(ctx); err == nil {
		d.Can = can
	}
	if p.key != "" {
		d.Salt = newSalt()
	}
	token := agentToken(d.Salt, p.key, p.id)
	r, err := m.newRollout(d, sum(token), sess)
	if err != nil {
		return Created{}, err
	}
	if err := r.openReach(ctx, sess); err != nil {
		r.watch.close()
		r.cancel()
		return Created{}, err
	}
	if err := ctx.Err(); err != nil {
		return Created{}, asError(CodeInterrupted, "the creation was given up", err)
	}
	row, err := d.row(sum(token), sess.ID())
	if err != nil {
		return Created{}, asError(CodeInternal, "the rollout could not be encoded", err)
	}
	// It is found among the live before its row can be: whoever deletes what a listing shows ends this one.
	m.house(p.id, r)
	if err := m.opt.Store.InsertRollout(ctx, row); err != nil {
		m.unhouse(p.id)
		return Created{}, storeError("add the rollout", err)
	}
	born := map[string]any{"task_id": d.View.TaskID}
	kind := "created"
	if p.fork != nil {
		kind, born["from"], born["ordinal"] = "forked", d.View.Fork.RolloutID, d.View.Fork.Ordinal
		if err := r.inherit(ctx, p.fork); err != nil {
			m.unhouse(p.id)
			r.watch.close()
			r.cancel()
			return Created{}, m.abandonRow(ctx, p.id, err)
		}
	}
	r.note(kind, born)
	return created(d, token), nil
}

// discard removes a sandbox that did not become a rollout's.
func (m *Manager) discard(sess sandbox.Session) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(m.ctx), closeTimeout)
	defer cancel()
	if err := sess.Close(ctx); err != nil {
		m.opt.Log.Error("remove a sandbox; the next start reaps it", "sandbox", sess.ID(), "err", err)
	}
}

// newDocument describes the rollout of a plan.
func (m *Manager) newDocument(p plan, img Image) *document {
	now := m.opt.Clock().UTC()
	limits := mergeLimits(p.task.Limits, p.req.Limits)
	lease := m.opt.Lease
	if p.req.LeaseS > 0 {
		lease = time.Duration(p.req.LeaseS) * time.Second
	}
	d := &document{
		View: View{
			ID: p.id, TaskID: p.task.ID, GroupID: p.req.GroupID, Policy: p.req.Policy.shown(), Mode: p.req.Mode, Preset: p.req.Preset,
			Answers: p.req.Answers, OnUnsure: p.req.OnUnsure, OnFailure: p.req.OnFailure, OnOutage: p.req.OnOutage,
			Honeypots: p.req.Honeypots,
			Hardening: p.req.Hardening == nil || *p.req.Hardening, Status: StatusRunning, FailureClass: classNone,
			Seed: p.req.Seed, Metadata: p.req.Metadata, CreatedAt: now, Digests: m.digests(p.req.Mode, img),
		},
		PolicyKey: p.req.Policy.APIKey,
		Task:      p.task, TaskDir: p.task.Dir, Image: img, Limits: limits, Lease: lease,
		Engine: m.opt.Engine.Name(), Offline: p.req.Network == nil && (p.task.Network.Agent == "none" || p.task.Network.Agent == ""),
	}
	m.endsAfter(d, now, limits.Lifetime)
	return d
}

func (m *Manager) digests(mode string, img Image) Digests {
	d := Digests{Image: img.Digest}
	if mode == monitor.Off || m.opt.Rules == nil {
		return d
	}
	d.Packs, d.Judge, d.Prompt = m.opt.Rules().Digest(), m.opt.Judge.Digest(), m.opt.Judge.Digest()
	d.Classifier = m.opt.Classifier.Digest()
	if j, ok := m.opt.Judge.(interface{ PromptDigest() string }); ok {
		d.Prompt = j.PromptDigest()
	}
	return d
}

// spec gives the sandbox of a rollout. carrier says where package indexes are.
func spec(d *document, network *NetworkOverride, carrier tasks.Egress) sandbox.Spec {
	t := d.Task
	s := sandbox.Spec{Name: d.View.ID, Image: d.Image.Ref, Workdir: t.Workdir, User: t.User, Env: reachEnv(t, carrier), Limits: d.Limits}
	switch {
	case network != nil:
		s.Network = sandbox.Network{Mode: "internal", Name: network.Name, Hosts: network.Hosts}
	case t.Network.Agent == "open":
		s.Network.Mode = "open"
	default: // an allowlist goes through a relay, beside no network at all
		s.Network.Mode = "none"
	}
	return s
}

// created answers a create.
func created(d *document, token string) Created {
	base := "/v1/rollouts/" + d.View.ID
	return Created{
		ID: d.View.ID, AgentToken: token, TaskID: d.View.TaskID, Instruction: d.Task.Instruction, Workdir: d.Task.Workdir,
		Tools: ToolList(),
		Links: map[string]string{"calls": base + "/calls", "mcp": base + "/mcp", "events": base + "/events", "gateway": base + "/openai/v1"},
	}
}

// lasting gives what a request asks for, without how long its caller waits: a retry may have other patience.
func (req CreateRequest) lasting() CreateRequest {
	req.Queue, req.WaitS = false, 0
	return req
}

// fingerprint pins a request, for its Idempotency-Key.
func fingerprint(req any) string {
	data, err := json.Marshal(req)
	if err != nil { // metadata came from JSON, and everything else is plain
		return ""
	}
	var compact bytes.Buffer
	if json.Compact(&compact, data) == nil {
		data = compact.Bytes()
	}
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}
