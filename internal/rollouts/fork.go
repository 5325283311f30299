package rollouts

import (
	"context"
	"maps"
	"slices"
	"time"
)

// ForkRequest is the body of POST /v1/rollouts/{id}/fork. What it leaves out is as in the rollout that is
// forked.
type ForkRequest struct {
	N int `json:"n"` // 1 to 512
	// Snapshot names one that was taken before; left out, one is taken now, for these forks alone.
	Snapshot string         `json:"snapshot,omitempty"`
	Policy   *Policy        `json:"policy,omitempty"`
	Seed     *int64         `json:"seed,omitempty"` // of the first; the others follow
	Seeds    []int64        `json:"seeds,omitempty"`
	Metadata map[string]any `json:"metadata,omitempty"`
	LeaseS   int            `json:"lease_s,omitempty"`
	Need     int            `json:"need,omitempty"`  // as of a group
	Queue    bool           `json:"queue,omitempty"` // as of a rollout
	WaitS    int            `json:"wait_s,omitempty"`
}

// ForkOf says of a rollout what it is a fork of.
type ForkOf struct {
	RolloutID string `json:"rollout_id"`
	Ordinal   int    `json:"ordinal"` // the last call that it shares; its own come after
	Snapshot  string `json:"snapshot"`
	// Ancestors are the rollouts whose calls it begins with, oldest first, each with the last call of its
	// own; the last one is RolloutID.
	Ancestors []Ancestor `json:"ancestors"`
}

// Ancestor is a rollout that a fork descends from.
type Ancestor struct {
	RolloutID string `json:"rollout_id"`
	Ordinal   int    `json:"ordinal"`
}

// origin gives the rollout that made a call; "" for the rollout itself.
func (f *ForkOf) origin(ordinal int) string {
	if f == nil {
		return ""
	}
	for _, a := range f.Ancestors {
		if ordinal <= a.Ordinal {
			return a.RolloutID
		}
	}
	return ""
}

// forkPlan is what forks are made from.
type forkPlan struct {
	doc      document // of the rollout that is forked, as it was
	snapshot snapshotDoc
}

// Fork makes n rollouts that go on from where a rollout stood at a snapshot: its files, its record, the shell's
// folder and exported environment. They are a group of their own.
func (m *Manager) Fork(ctx context.Context, id, key string, req ForkRequest) (GroupCreated, error) {
	if err := m.checkFork(key, &req); err != nil {
		return GroupCreated{}, err
	}
	lasting := req
	lasting.Queue, lasting.WaitS = false, 0
	hash := fingerprint(struct {
		Of string `json:"of"`
		ForkRequest
	}{id, lasting})
	return m.keyedGroup(ctx, key, hash, func(group string) (GroupCreated, error) {
		r, err := m.forkable(ctx, id)
		if err != nil {
			return GroupCreated{}, err
		}
		s, err := r.toFork(ctx, req.Snapshot)
		if err != nil {
			return GroupCreated{}, err
		}
		defer func() {
			m.count(s.Image, -1)
			m.collect(s.Image)
		}()
		if s.Passing {
			if _, ok := r.release(s.ID); ok {
				_ = r.save() // should this fail, the next write of the rollout says the same
			}
		}
		return m.makeForks(ctx, group, key, r, s, req)
	})
}

// makeForks makes the forks of a snapshot, which the caller keeps meanwhile.
func (m *Manager) makeForks(ctx context.Context, group, key string, r *rollout, s snapshotDoc, req ForkRequest) (GroupCreated, error) {
	r.mu.Lock()
	doc := r.doc
	r.mu.Unlock()
	p := plan{key: key, task: doc.Task, fork: &forkPlan{doc: doc, snapshot: s}}
	p.req = CreateRequest{TaskID: doc.View.TaskID, Policy: doc.View.Policy, Seed: doc.View.Seed, Metadata: doc.View.Metadata, LeaseS: req.LeaseS,
		Queue: req.Queue, WaitS: req.WaitS}
	p.req.Policy.APIKey = doc.PolicyKey
	if req.Policy != nil {
		p.req.Policy = *req.Policy
	}
	if req.Seed != nil {
		p.req.Seed = *req.Seed
	}
	if req.Metadata != nil {
		p.req.Metadata = req.Metadata
	}
	return m.makeGroup(ctx, group, GroupRequest{CreateRequest: p.req, N: req.N, Need: req.Need, Seeds: req.Seeds}, p)
}

// checkFork holds a request against what it may be.
func (m *Manager) checkFork(key string, req *ForkRequest) error {
	shape := GroupRequest{N: req.N, Need: req.Need, Seeds: req.Seeds}
	if err := shape.check(key); err != nil {
		return err
	}
	if req.LeaseS < 0 || time.Duration(req.LeaseS)*time.Second > maxLease {
		return refuse(CodeInvalidField, "field lease_s: %d is out of range; use 1 to %d seconds, or leave it out", req.LeaseS, int(maxLease.Seconds()))
	}
	if req.Policy != nil {
		if err := checkPolicy(req.Policy); err != nil {
			return err
		}
	}
	return (&CreateRequest{WaitS: req.WaitS}).checkPatience()
}

// toFork gives the snapshot to fork, taken now where none is named, and keeps its image from being collected
// until count is called with -1.
func (r *rollout) toFork(ctx context.Context, name string) (snapshotDoc, error) {
	if name == "" {
		s, err := r.snapshot(ctx, true)
		if err == nil {
			r.m.count(s.Image, 1)
		}
		return s, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.doc.Snapshots, func(s snapshotDoc) bool { return s.ID == name && !s.Passing })
	if i < 0 {
		return snapshotDoc{}, errNoSnapshot(name)
	}
	r.m.count(r.doc.Snapshots[i].Image, 1) // before anyone can drop it
	return r.doc.Snapshots[i], nil
}

// count counts who makes forks of an image.
func (m *Manager) count(ref string, by int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.forking[ref] += by; m.forking[ref] <= 0 {
		delete(m.forking, ref)
	}
}

// forkDocument describes a fork.
func (m *Manager) forkDocument(p plan) *document {
	d := p.fork.doc
	s := p.fork.snapshot
	now := m.opt.Clock().UTC()
	ancestors := []Ancestor{}
	if f := d.View.Fork; f != nil {
		for _, a := range f.Ancestors { // a snapshot may have been taken before the later ones' calls
			if a.Ordinal < s.Ordinal {
				ancestors = append(ancestors, a)
			}
		}
	}
	ancestors = append(ancestors, Ancestor{RolloutID: s.RolloutID, Ordinal: s.Ordinal})
	v := d.View
	d.View = View{
		ID: p.id, TaskID: v.TaskID, GroupID: p.req.GroupID, Policy: p.req.Policy.shown(), Mode: v.Mode, Preset: v.Preset, Answers: v.Answers,
		OnUnsure: v.OnUnsure, OnFailure: v.OnFailure, OnOutage: v.OnOutage, Hardening: v.Hardening, Honeypots: v.Honeypots, Status: StatusRunning,
		FailureClass: classNone, Seed: p.req.Seed, Metadata: maps.Clone(p.req.Metadata), CreatedAt: now, Digests: v.Digests,
		Fork: &ForkOf{RolloutID: s.RolloutID, Ordinal: s.Ordinal, Snapshot: s.ID, Ancestors: ancestors},
	}
	d.PolicyKey, d.Base, d.Snapshots, d.Salt = p.req.Policy.APIKey, s.Image, nil, nil
	m.endsAfter(&d, now, d.Limits.Lifetime)
	if p.req.LeaseS > 0 {
		d.Lease = time.Duration(p.req.LeaseS) * time.Second
	}
	return &d
}
