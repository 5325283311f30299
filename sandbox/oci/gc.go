package oci

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"proctor/sandbox/confine"
	"proctor/sandbox/oci/images"
)

// snapshots are the references of images that keep a rollout's files.
const snapshots = "proctor/snapshot:"

// Leftovers gives the owner's sandboxes, those half made as well, and run folders that no sandbox has. Those in held, by
// id, are in use and left out.
func (e *Engine) Leftovers(_ context.Context, held []string) ([]confine.Leftover, error) {
	if _, _, err := e.open(); err != nil {
		return nil, err
	}
	ids, err := e.ids()
	if err != nil {
		return nil, fmt.Errorf("oci: list sandboxes: %w", err)
	}
	var out []confine.Leftover
	var folders []string
	for _, id := range ids {
		s, err := e.load(id)
		if err == nil {
			folders = append(folders, s.Folder)
		}
		if !slices.Contains(held, id) {
			out = append(out, confine.Leftover{Kind: confine.LeftSandbox, ID: id, Name: s.Name, Created: s.Created})
		}
	}
	made, err := e.root.Folders()
	for _, folder := range made {
		if !slices.Contains(folders, folder) {
			out = append(out, confine.Leftover{Kind: confine.LeftFolder, ID: folder, Name: folder})
		}
	}
	return out, err
}

// MadeImages gives the unpacked images of the store that no sandbox uses, of any owner: all can be had again from where
// they came, or are made again.
func (e *Engine) MadeImages(context.Context) ([]confine.Leftover, error) {
	store, _, err := e.open()
	if err != nil {
		return nil, err
	}
	all, err := store.All()
	if err != nil {
		return nil, fmt.Errorf("oci: list images: %w", err)
	}
	used, err := e.layersInUse()
	if err != nil {
		return nil, err
	}
	var out []confine.Leftover
	for _, r := range all {
		if len(r.Layers) == 0 || !used[r.Layers[len(r.Layers)-1]] {
			id := r.Digest
			if strings.HasPrefix(r.Ref, snapshots) {
				id = r.Ref // as Snapshots gives it
			}
			out = append(out, confine.Leftover{Kind: confine.LeftImage, ID: id, Name: r.Ref, Created: r.Created, Bytes: r.Size})
		}
	}
	slices.SortFunc(out, func(a, b confine.Leftover) int { return strings.Compare(a.Name+a.ID, b.Name+b.ID) })
	return out, nil
}

// Snapshots lists the references of this owner's images that keep rollouts' files.
func (e *Engine) Snapshots(context.Context) ([]string, error) {
	store, _, err := e.open()
	if err != nil {
		return nil, err
	}
	refs := store.Refs(e.opts.Owner)
	return slices.DeleteFunc(refs, func(ref string) bool { return !strings.HasPrefix(ref, snapshots) }), nil
}

// RemoveImage removes an image that Commit made, by its reference; nil where there is none. Files that a sandbox has
// mounted stay until it is gone and the garbage is collected.
func (e *Engine) RemoveImage(ctx context.Context, ref string) error {
	store, _, err := e.open()
	if err != nil {
		return err
	}
	if err := store.Drop(ctx, ref, e.layersInUse); err != nil {
		return fmt.Errorf("oci: remove image %s: %w", ref, err)
	}
	return nil
}

// RemoveLeftover removes one; nil where it is gone already. An image that a sandbox has come to use meanwhile stays.
func (e *Engine) RemoveLeftover(ctx context.Context, l confine.Leftover) error {
	store, _, err := e.open()
	if err != nil {
		return err
	}
	switch l.Kind {
	case confine.LeftSandbox:
		return e.destroy(ctx, l.ID)
	case confine.LeftFolder:
		return e.root.Drop(l.ID)
	case confine.LeftImage:
		if !strings.HasPrefix(l.ID, "sha256:") {
			return e.RemoveImage(ctx, l.ID)
		}
		_, err := store.GC(ctx, func(r images.Record) bool { return r.Digest == l.ID }, e.layersInUse, false)
		return err
	}
	return errors.New("oci: leftovers of kind " + l.Kind + " are not known")
}
