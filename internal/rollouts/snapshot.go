package rollouts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"proctor/internal/store"
	"proctor/monitor"
	"proctor/sandbox"
)

// SnapshotRepository is where images of snapshots are named: "<it>:<id of the snapshot>".
const SnapshotRepository = "proctor/snapshot"

// maxSnapshots bounds the snapshots of one rollout: the storage driver stacks at most some 125 layers, and
// each keeps disk.
const maxSnapshots = 256

// Snapshot is a rollout's files at a moment between two calls, kept as an image until the rollout ends or
// the snapshot is removed, and as long as forks of it live.
type Snapshot struct {
	ID        string    `json:"id"`
	RolloutID string    `json:"rollout_id"`
	Ordinal   int       `json:"ordinal"` // of the last call before it; 0: none
	Image     string    `json:"image"`
	Digest    string    `json:"digest"`
	Bytes     int64     `json:"bytes"` // of the image, with what it shares with others
	CreatedAt time.Time `json:"created_at"`
	TookMS    int64     `json:"took_ms"`
}

// snapshotDoc is what a rollout's document keeps of a snapshot.
type snapshotDoc struct {
	Snapshot
	Event int64  `json:"event"` // the last one before it
	Cwd   string `json:"cwd,omitempty"`
	// Env is what the shell exported, NAME=value. It is the agent's: it goes into the fork's shell and
	// nowhere else.
	Env []string `json:"env,omitempty"`
	// Passing is set while it is only kept for forks that are being made of it.
	Passing bool `json:"passing,omitempty"`
}

// Snapshot keeps a running rollout's files, after the call that runs, if one does.
func (m *Manager) Snapshot(ctx context.Context, id string) (Snapshot, error) {
	r, err := m.forkable(ctx, id)
	if err != nil {
		return Snapshot{}, err
	}
	s, err := r.snapshot(ctx, false)
	return s.Snapshot, err
}

// Snapshots lists what is kept of a rollout; of one that has ended that is nothing.
func (m *Manager) Snapshots(ctx context.Context, id string) ([]Snapshot, error) {
	all := []Snapshot{}
	r := m.find(id)
	if r == nil {
		_, err := m.Get(ctx, id)
		return all, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.doc.Snapshots {
		if !s.Passing {
			all = append(all, s.Snapshot)
		}
	}
	return all, nil
}

// DropSnapshot removes a snapshot; its image goes with the last fork of it. Dropping twice is an error: there
// is none.
func (m *Manager) DropSnapshot(ctx context.Context, id, snapshot string) error {
	r := m.find(id)
	if r == nil {
		if _, err := m.Get(ctx, id); err != nil {
			return err
		}
		return errNoSnapshot(snapshot)
	}
	ref, ok := r.release(snapshot)
	if !ok {
		return errNoSnapshot(snapshot)
	}
	if err := r.save(); err != nil {
		return storeError("write the rollout", err)
	}
	m.collect(ref)
	return nil
}

func errNoSnapshot(id string) *Error {
	return refuse(CodeInvalidField, "snapshot: the rollout has none %.60q; GET .../snapshots lists those it has, until it ends", id)
}

// forkable gives a live rollout of an engine that can keep files.
func (m *Manager) forkable(ctx context.Context, id string) (*rollout, error) {
	r := m.find(id)
	if r == nil {
		_, _, err := m.recorded(ctx, id, callKey{}, "")
		return nil, err
	}
	if can, err := m.opt.Engine.Capabilities(ctx); err == nil && !can.Fork {
		return nil, refuse(CodeUnsupported, "the engine %s cannot keep a sandbox's files; run the server on one that can (proctor doctor)", m.opt.Engine.Name())
	}
	return r, nil
}

// snapshot takes its turn among the calls, so that none is half done, and commits the sandbox.
func (r *rollout) snapshot(ctx context.Context, passing bool) (snapshotDoc, error) {
	made := make(chan snapshotDoc, 1)
	f, err := r.fly(wanted{key: callKey{principal: monitor.Harness}, serial: true}, func(ctx context.Context, _ *flight) error {
		s, err := r.commit(ctx, passing)
		made <- s
		return err
	})
	if err != nil {
		return snapshotDoc{}, err
	}
	if err := r.await(ctx, f); err != nil {
		return snapshotDoc{}, err // should it still be made, it is the rollout's and goes with it
	}
	return <-made, nil
}

// commit keeps the sandbox's files and notes them in the document. The caller has the turn.
func (r *rollout) commit(ctx context.Context, passing bool) (snapshotDoc, error) {
	if v := r.view(); v.Status != StatusRunning {
		return snapshotDoc{}, errEnded(&v)
	}
	s := snapshotDoc{Snapshot: Snapshot{ID: newID("s_"), RolloutID: r.id, CreatedAt: r.m.opt.Clock().UTC()}, Passing: passing}
	s.Image = SnapshotRepository + ":" + s.ID
	s.Ordinal, s.Event = r.rec.place()
	var err error
	if s.Cwd, err = r.lastCwd(ctx); err != nil {
		return s, err
	}
	s.Env = r.exported(ctx, s.ID)
	began := time.Now()
	image, err := r.m.opt.Engine.Commit(ctx, r.box.sess.ID(), s.Image)
	if err != nil {
		return s, err
	}
	s.Digest, s.Bytes, s.TookMS = image.Digest, image.Size, time.Since(began).Milliseconds()
	r.mu.Lock()
	full := len(r.doc.Snapshots) >= maxSnapshots
	if !full {
		r.doc.Snapshots = append(slices.Clone(r.doc.Snapshots), s)
	}
	r.mu.Unlock()
	if full {
		r.m.collect(s.Image)
		return s, refuse(CodeInvalidField, "the rollout has %d snapshots, as many as may be; remove some", maxSnapshots)
	}
	if err := r.save(); err != nil {
		r.release(s.ID)
		r.m.collect(s.Image)
		return s, storeError("write the snapshot", err)
	}
	return s, nil
}

// place gives the numbers of the last call and of the last event.
func (r *recorder) place() (ordinal int, event int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ordinal, r.event
}

// lastCwd gives the folder in which the shell stands, as the record has it; "" where no call told.
func (r *rollout) lastCwd(ctx context.Context) (string, error) {
	calls, err := r.m.opt.Store.Calls(ctx, r.id)
	if err != nil {
		return "", err
	}
	for _, c := range slices.Backward(calls) {
		if c.Done && c.Cwd != "" {
			return c.Cwd, nil
		}
	}
	return "", nil
}

// release takes a snapshot out of the rollout's document and gives its image; false where there is none.
func (r *rollout) release(snapshot string) (ref string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.doc.Snapshots = slices.DeleteFunc(slices.Clone(r.doc.Snapshots), func(s snapshotDoc) bool {
		if s.ID != snapshot {
			return false
		}
		ref, ok = s.Image, true
		return true
	})
	return ref, ok
}

// SnapshotKeeper is what an engine may also be that keeps snapshots as images.
type SnapshotKeeper interface {
	// RemoveImage removes an image that Commit made; nil where there is none.
	RemoveImage(ctx context.Context, ref string) error
	// Snapshots lists the references of its owner's images in SnapshotRepository.
	Snapshots(ctx context.Context) ([]string, error)
}

// keeper finds the SnapshotKeeper in an engine, or in what it wraps.
func keeper(engine sandbox.Engine) SnapshotKeeper {
	for {
		if k, ok := engine.(SnapshotKeeper); ok {
			return k
		}
		wrapper, ok := engine.(interface{ Unwrap() sandbox.Engine })
		if !ok {
			return nil
		}
		engine = wrapper.Unwrap()
	}
}

// collect removes the image of a snapshot that nothing needs any more: no live rollout keeps it or began with
// it, and none is being made of it.
func (m *Manager) collect(refs ...string) {
	k := keeper(m.opt.Engine)
	for _, ref := range refs {
		if ref == "" || k == nil || m.needed(ref) {
			continue
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(m.ctx), closeTimeout)
		if err := k.RemoveImage(ctx, ref); err != nil {
			m.opt.Log.Warn("remove a snapshot's image; the next start does", "image", ref, "err", err)
		}
		cancel()
	}
}

// needed reports whether something live needs the image of a snapshot.
func (m *Manager) needed(ref string) bool {
	m.mu.Lock()
	forking, live := m.forking[ref] > 0, m.liveLocked()
	m.mu.Unlock() // a rollout's lock is never taken under the Manager's
	if forking {
		return true
	}
	for _, r := range live {
		r.mu.Lock()
		needs := slices.Contains(r.doc.images(), ref)
		r.mu.Unlock()
		if needs {
			return true
		}
	}
	return false
}

// images gives the images of snapshots that a rollout keeps alive.
func (d *document) images() []string {
	var refs []string
	if d.Base != "" {
		refs = append(refs, d.Base)
	}
	for _, s := range d.Snapshots {
		refs = append(refs, s.Image)
	}
	return refs
}

// HeldImages gives the images of snapshots that rollouts keep, by their rows.
func HeldImages(rows []*store.Rollout) ([]string, error) {
	var refs []string
	for _, row := range rows {
		d, err := readDocument(row)
		if err != nil {
			return nil, err
		}
		refs = append(refs, d.images()...)
	}
	return refs, nil
}

// reapImages removes the images of snapshots that a dead server left and no rollout needs.
func (m *Manager) reapImages(ctx context.Context) error {
	k := keeper(m.opt.Engine)
	if k == nil {
		return nil
	}
	refs, err := k.Snapshots(ctx)
	if err != nil {
		if errors.Is(err, errors.ErrUnsupported) {
			return nil
		}
		return fmt.Errorf("rollouts: list snapshots: %w", err)
	}
	m.collect(refs...)
	return nil
}
