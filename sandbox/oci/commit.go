package oci

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"proctor/sandbox"
)

// freezeLimit bounds the wait until a sandbox stands still.
const freezeLimit = 10 * time.Second

// Commit keeps a sandbox's files as an image under ref: its own layer, copied, on top of its image's. The sandbox stands
// still meanwhile. What takes time is what it has written, not the image.
func (e *Engine) Commit(ctx context.Context, id, ref string) (sandbox.Image, error) {
	store, _, err := e.open()
	if err != nil {
		return sandbox.Image{}, err
	}
	s, err := e.load(id)
	if err != nil {
		return sandbox.Image{}, err
	}
	release, err := store.Hold(ctx)
	if err != nil {
		return sandbox.Image{}, err
	}
	defer release()
	thaw, err := e.standStill(ctx, id)
	if err != nil {
		return sandbox.Image{}, fmt.Errorf("oci: commit %s: %w", id, err)
	}
	r, err := store.Commit(ctx, s.Image, filepath.Join(e.folder(id), "u"), ref, e.opts.Owner)
	if err := thaw(); err != nil {
		return sandbox.Image{}, fmt.Errorf("oci: commit %s: %w", id, err)
	}
	if err != nil {
		return sandbox.Image{}, fmt.Errorf("oci: commit %s: %w", id, err)
	}
	return r.Image(ref), nil
}

// standStill stops a sandbox until thaw is called; nothing where it is dead. Several at once may.
func (e *Engine) standStill(ctx context.Context, id string) (thaw func() error, err error) {
	cg, name := machineCgroups(), e.cgroupName(id)
	none := func() error { return nil }
	if (machine{e, id}).Fate(ctx) != nil {
		return none, nil
	}
	e.mu.Lock()
	e.still[id]++
	e.mu.Unlock()
	thaw = func() error {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.still[id]--; e.still[id] > 0 {
			return nil
		}
		delete(e.still, id)
		ctx, cancel := detached(ctx, freezeLimit)
		defer cancel()
		return cg.freeze(ctx, name, false)
	}
	limited, cancel := context.WithTimeout(ctx, freezeLimit)
	defer cancel()
	if err := cg.freeze(limited, name, true); err != nil {
		_ = thaw() // the first error tells
		return none, err
	}
	return thaw, nil
}

// freezing reports whether the engine itself has a sandbox stand still.
func (e *Engine) freezing(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.still[id] > 0
}
