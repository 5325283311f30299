package rollouts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"proctor/internal/store"

	"golang.org/x/sync/errgroup"
)

// groupDoc is what the store keeps of a group.
type groupDoc struct {
	N       int           `json:"n"`
	Need    int           `json:"need,omitempty"` // so many rewards end the rest; 0: all are waited for
	Members []string      `json:"members"`        // ids, in order; "" for one that failed
	Failed  []GroupFailed `json:"failed"`
	Done    bool          `json:"done"` // all its creations have ended
	// Snapshot is what the members are forks of; nil: they are none.
	Snapshot *Snapshot `json:"snapshot,omitempty"`
}

// CreateGroup makes n rollouts of one task. Those that could not be made are told in Failed; where
// none could, the first one's error is the answer and the group does not exist.
func (m *Manager) CreateGroup(ctx context.Context, key string, req GroupRequest) (GroupCreated, error) {
	if req.GroupID != nil {
		return GroupCreated{}, refuse(CodeInvalidField, "field group_id: a group gives its own id to its rollouts; leave it out")
	}
	if err := req.check(key); err != nil {
		return GroupCreated{}, err
	}
	task, err := m.check(&req.CreateRequest)
	if err != nil {
		return GroupCreated{}, err
	}
	lasting := req
	lasting.CreateRequest = req.lasting()
	return m.keyedGroup(ctx, key, fingerprint(lasting), func(id string) (GroupCreated, error) {
		return m.makeGroup(ctx, id, req, plan{key: key, req: req.CreateRequest, task: task})
	})
}

// check holds the shape of a group against what it may be.
func (req *GroupRequest) check(key string) error {
	switch {
	case req.N < 1 || req.N > maxGroup:
		return refuse(CodeInvalidField, "field n: %d is out of range; use 1 to %d", req.N, maxGroup)
	case req.Need < 0 || req.Need > req.N:
		return refuse(CodeInvalidField, "field need: %d is out of range; use 1 to n (%d), or leave it out to wait for all", req.Need, req.N)
	case len(req.Seeds) > 0 && len(req.Seeds) != req.N:
		return refuse(CodeInvalidField, "field seeds: there are %d; give one a rollout (%d), or seed alone", len(req.Seeds), req.N)
	case len(key) > maxKey:
		return refuse(CodeBadRequest, "the Idempotency-Key is longer than %d bytes", maxKey)
	}
	return nil
}

// keyedGroup makes a group, or tells what was made under the key. hash pins the request.
func (m *Manager) keyedGroup(ctx context.Context, key, hash string, make func(id string) (GroupCreated, error)) (GroupCreated, error) {
	id := newID("g_")
	mk, err := m.begin(id)
	if err != nil {
		return GroupCreated{}, err
	}
	defer func() { m.abandon(id); close(mk.done) }()
	if key != "" {
		have, claimed, err := m.opt.Store.ClaimKey(ctx, store.Key{Scope: "group", Key: sum(key), Hash: hash, Target: id})
		switch {
		case err != nil:
			return GroupCreated{}, storeError("claim the key", err)
		case !claimed && have.Hash != hash:
			return GroupCreated{}, errConflict()
		case !claimed:
			return m.earlierGroup(ctx, have.Target, key)
		}
	}
	made, err := make(id)
	if err != nil {
		m.forgetGroup(ctx, id)
	}
	return made, err
}

// makeGroup makes the members. The group's row comes first, so that a server that dies in between
// leaves a row that says that its members are to be removed.
func (m *Manager) makeGroup(ctx context.Context, id string, req GroupRequest, p plan) (GroupCreated, error) {
	n := req.N
	doc := groupDoc{N: n, Need: req.Need, Members: make([]string, n), Failed: []GroupFailed{}}
	if p.fork != nil {
		doc.Snapshot = &p.fork.snapshot.Snapshot
	} else if _, err := m.opt.Lab.Prepare(ctx, p.task, p.req.Hardening == nil || *p.req.Hardening); err != nil {
		// The image is made ready once, so that all members start from it together, and an image that
		// cannot be made fails once and not n times.
		return GroupCreated{}, asError(CodePrepareFailed, "the image of task "+p.task.ID+" could not be prepared", err)
	}
	if err := m.putGroup(ctx, id, p.task.ID, doc); err != nil {
		return GroupCreated{}, err
	}
	m.announceGroup(ctx, p, n)
	p.req.GroupID = &id
	results, errs := make([]Created, n), make([]error, n)
	var crew errgroup.Group
	crew.SetLimit(groupParallel)
	for i := range n {
		crew.Go(func() error {
			member := p
			member.id, member.req.Seed = newID("r_"), req.seed(i)
			mk, err := m.begin(member.id)
			if err == nil {
				m.launch(mk, member)
				results[i], err = m.await(ctx, mk)
			}
			errs[i] = err
			return nil
		})
	}
	_ = crew.Wait() // the members' errors are in errs
	made := GroupCreated{ID: id, TaskID: p.task.ID, N: n, Rollouts: []Created{}, Failed: []GroupFailed{}, Snapshot: doc.Snapshot}
	for i, err := range errs {
		if err == nil {
			doc.Members[i] = results[i].ID
			made.Rollouts = append(made.Rollouts, results[i])
			continue
		}
		e := asError(CodeInternal, "the rollout could not be made", err)
		made.Failed = append(made.Failed, GroupFailed{Code: e.Code, Detail: e.Error()})
	}
	if len(made.Rollouts) == 0 {
		return GroupCreated{}, errs[0]
	}
	if err := ctx.Err(); err != nil {
		return GroupCreated{}, asError(CodeInterrupted, "the caller left before the group was made", err)
	}
	doc.Failed, doc.Done = made.Failed, true
	return made, m.putGroup(ctx, id, p.task.ID, doc)
}

func (m *Manager) putGroup(ctx context.Context, id, task string, doc groupDoc) error {
	data, err := json.Marshal(doc)
	if err != nil {
		return asError(CodeInternal, "the group does not encode", err)
	}
	if err := m.opt.Store.PutGroup(ctx, store.Group{ID: id, TaskID: task, CreatedAt: m.opt.Clock(), Doc: data}); err != nil {
		return storeError("write the group", err)
	}
	return nil
}

// forgetGroup removes a group that could not be made, and what was made of it.
func (m *Manager) forgetGroup(ctx context.Context, id string) {
	ctx = context.WithoutCancel(ctx)
	rows, err := m.opt.Store.Rollouts(ctx, store.Filter{GroupID: id})
	for _, row := range rows {
		err = errors.Join(err, m.forget(ctx, row.ID))
	}
	err = errors.Join(err, m.opt.Store.DropGroup(ctx, id), m.opt.Store.DropKey(ctx, id))
	if err != nil {
		m.opt.Log.Error("forget a group; the next start does", "group", id, "err", err)
	}
}

// forget ends a rollout that nobody was told of, and removes its row.
func (m *Manager) forget(ctx context.Context, id string) error {
	if err := m.Delete(ctx, id); err != nil {
		return err
	}
	return m.opt.Store.DropRollout(ctx, id)
}

// earlierGroup answers a retry: it waits for the creation that runs, and tells what was made.
func (m *Manager) earlierGroup(ctx context.Context, id, key string) (GroupCreated, error) {
	m.mu.Lock()
	mk := m.making[id]
	m.mu.Unlock()
	if mk != nil {
		select {
		case <-mk.done:
		case <-ctx.Done():
			return GroupCreated{}, asError(CodeInterrupted, "the caller left before the group was made", ctx.Err())
		}
	}
	row, err := m.opt.Store.GroupByID(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return GroupCreated{}, &Error{Code: CodeInterrupted, Retry: true, Detail: "the group could not be made; repeat the request"}
	}
	if err != nil {
		return GroupCreated{}, storeError("read the group", err)
	}
	var doc groupDoc
	if err := json.Unmarshal(row.Doc, &doc); err != nil {
		return GroupCreated{}, asError(CodeStore, "the group's document is damaged", err)
	}
	return m.tellGroup(ctx, row, doc, key)
}

func (m *Manager) tellGroup(ctx context.Context, row store.Group, doc groupDoc, key string) (GroupCreated, error) {
	made := GroupCreated{ID: row.ID, TaskID: row.TaskID, N: doc.N, Rollouts: []Created{}, Failed: doc.Failed, Snapshot: doc.Snapshot}
	for _, id := range doc.Members {
		if id == "" {
			continue
		}
		r, err := m.opt.Store.RolloutByID(ctx, id)
		if err != nil {
			return GroupCreated{}, storeError("read a member", err)
		}
		d, err := readDocument(r)
		if err != nil {
			return GroupCreated{}, asError(CodeStore, "a member's document is damaged", err)
		}
		made.Rollouts = append(made.Rollouts, created(d, agentToken(d.Salt, key, id)))
	}
	return made, nil
}

// dropHalfGroups removes what a dead server left of groups that it had not finished making.
func (m *Manager) dropHalfGroups(ctx context.Context) error {
	ids, err := m.opt.Store.GroupIDs(ctx)
	if err != nil {
		return fmt.Errorf("rollouts: %w", err)
	}
	for _, id := range ids {
		row, err := m.opt.Store.GroupByID(ctx, id)
		if err != nil {
			return fmt.Errorf("rollouts: %w", err)
		}
		var doc groupDoc
		if err := json.Unmarshal(row.Doc, &doc); err != nil {
			return fmt.Errorf("rollouts: group %s: its document does not decode: %w", id, err)
		}
		if doc.Done {
			continue
		}
		members, err := m.opt.Store.Rollouts(ctx, store.Filter{GroupID: id})
		if err != nil {
			return fmt.Errorf("rollouts: %w", err)
		}
		for _, r := range members { // their sandboxes are orphans now, and are reaped as such
			err = errors.Join(err, m.opt.Store.DropRollout(ctx, r.ID))
		}
		if err := errors.Join(err, m.opt.Store.DropGroup(ctx, id), m.opt.Store.DropKey(ctx, id)); err != nil {
			return fmt.Errorf("rollouts: drop group %s: %w", id, err)
		}
	}
	return nil
}

// Group gives a group's results, waiting at most waitS seconds for all of them to be there.
func (m *Manager) Group(ctx context.Context, id string, waitS int) (GroupView, error) {
	timeout := time.NewTimer(time.Duration(waitS) * time.Second)
	defer timeout.Stop()
	for {
		changed := m.changes()
		view, err := m.groupView(ctx, id)
		if err != nil || view.Status == "done" || waitS <= 0 {
			return view, err
		}
		select {
		case <-changed:
		case <-timeout.C:
			return view, nil
		case <-ctx.Done():
			return view, nil
		}
	}
}

func (m *Manager) groupView(ctx context.Context, id string) (GroupView, error) {
	views, _, err := m.List(ctx, Filter{GroupID: id, Limit: maxGroup})
	if err != nil {
		return GroupView{}, err
	}
	row, err := m.opt.Store.GroupByID(ctx, id)
	if err != nil && (len(views) == 0 || !errors.Is(err, store.ErrNotFound)) {
		return GroupView{}, storeError("read the group", err)
	}
	slices.Reverse(views) // a listing is newest first; a group is in the order in which it was told
	var doc groupDoc
	if err == nil && json.Unmarshal(row.Doc, &doc) == nil {
		slices.SortStableFunc(views, func(a, b View) int {
			return slices.Index(doc.Members, a.ID) - slices.Index(doc.Members, b.ID)
		})
	}
	g := GroupView{ID: id, Status: "done", Rollouts: []GroupRollout{}, TaskID: row.TaskID, N: doc.N, Need: doc.Need, Failed: doc.Failed}
	hacks := 0
	for _, v := range views {
		g.Rollouts = append(g.Rollouts, GroupRollout{
			ID: v.ID, Status: v.Status, Reward: v.Reward, FailureClass: v.FailureClass, Calls: v.Calls, Blocked: v.Blocked, Flagged: v.Flagged,
		})
		if v.Hacks > 0 {
			hacks++
		}
		if v.Reward != nil {
			g.Rewarded++
		}
		if v.Status == StatusRunning || v.Status == StatusSubmitted || v.Status == StatusCreating {
			g.Status = "running"
		}
	}
	if len(views) > 0 {
		g.HackRate = float64(hacks) / float64(len(views))
	}
	return g, nil
}
