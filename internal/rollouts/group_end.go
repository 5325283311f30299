package rollouts

import (
	"context"
	"encoding/json"
	"sync"

	"proctor/internal/store"
)

// Reasons why members of a group are ended by it.
const (
	reasonAborted   = "group_aborted"
	reasonStraggler = "straggler" // as many as the group needs had their reward
)

// AbortGroup ends the members of a group that still run, all at once, and returns when their sandboxes
// are gone. Rewards that are there stay. Aborting twice is harmless.
func (m *Manager) AbortGroup(ctx context.Context, id string) (GroupView, error) {
	if _, err := m.groupView(ctx, id); err != nil {
		return GroupView{}, err
	}
	if err := m.endMembers(ctx, id, reasonAborted); err != nil {
		return GroupView{}, err
	}
	return m.groupView(ctx, id)
}

// endMembers ends the live members of a group and waits for their sandboxes to go.
func (m *Manager) endMembers(ctx context.Context, group, reason string) error {
	rows, err := m.opt.Store.Rollouts(ctx, store.Filter{GroupID: group})
	if err != nil {
		return storeError("list the group's rollouts", err)
	}
	var gone sync.WaitGroup
	for _, row := range rows {
		r := m.find(row.ID)
		if r == nil {
			continue
		}
		r.end(ending{status: StatusDeleted, reason: reason})
		gone.Add(1)
		go func() {
			defer gone.Done()
			select {
			case <-r.gone:
			case <-ctx.Done():
			}
		}()
	}
	gone.Wait()
	if err := ctx.Err(); err != nil {
		return asError(CodeInterrupted, "the caller left; the group is being removed", err)
	}
	return nil
}

// memberEnded ends the stragglers of a group that has what it needs.
func (m *Manager) memberEnded(v View) {
	if v.GroupID == nil || v.Reward == nil || v.Status == StatusDeleted {
		return
	}
	row, err := m.opt.Store.GroupByID(m.ctx, *v.GroupID)
	if err != nil {
		return // a group id of the trainer's own has no row, and nothing that it needs
	}
	var doc groupDoc
	if json.Unmarshal(row.Doc, &doc) != nil || doc.Need == 0 {
		return
	}
	view, err := m.groupView(m.ctx, *v.GroupID)
	if err != nil || view.Rewarded < doc.Need || view.Status == "done" {
		return
	}
	if err := m.endMembers(m.ctx, *v.GroupID, reasonStraggler); err != nil {
		m.opt.Log.Error("end the stragglers of a group", "group", *v.GroupID, "err", err)
	}
}

// WatchGroup gives a group's view now and at each change of it, until it is done or ctx ends; then
// the channel is closed. A slow reader is given the newest view.
func (m *Manager) WatchGroup(ctx context.Context, id string) (<-chan GroupView, error) {
	changed := m.changes()
	view, err := m.groupView(ctx, id)
	if err != nil {
		return nil, err
	}
	out := make(chan GroupView)
	go func() {
		defer close(out)
		for last := ""; ; {
			if now := fingerprint(view); now != last {
				last = now
				select {
				case out <- view:
				case <-ctx.Done():
					return
				case <-m.ctx.Done():
					return
				}
			}
			if view.Status == "done" {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			case <-m.ctx.Done():
				return
			}
			changed = m.changes()
			if view, err = m.groupView(ctx, id); err != nil {
				return
			}
		}
	}()
	return out, nil
}
