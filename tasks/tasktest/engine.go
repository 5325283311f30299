// Package tasktest has an Engine for tests whose sandboxes are folders of the host. Nothing is
// isolated: only what a test itself wrote may run in them.
package tasktest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"

	"proctor/sandbox"
)

// Engine keeps images and sandboxes as folders below Dir. Safe for concurrent use.
type Engine struct {
	Dir string

	// Created, where set, is called with each sandbox that was made.
	Created func(box *Box)

	mu    sync.Mutex
	next  int
	boxes map[string]*Box
}

// AddImage makes an image from the content of a folder.
func (e *Engine) AddImage(ref, from string) error {
	return copyTree(from, e.imageDir(ref))
}

func (e *Engine) imageDir(ref string) string {
	return filepath.Join(e.Dir, "images", fmt.Sprintf("%x", ref))
}

func copyTree(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	out, err := exec.Command("cp", "-a", from, to).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// Name is "fake".
func (e *Engine) Name() string { return "fake" }

// Capabilities are none.
func (e *Engine) Capabilities(context.Context) (sandbox.Capabilities, error) {
	return sandbox.Capabilities{Version: "fake"}, nil
}

// Image finds an image that AddImage or Commit made.
func (e *Engine) Image(_ context.Context, ref string) (sandbox.Image, error) {
	info, err := os.Stat(e.imageDir(ref))
	if err != nil {
		return sandbox.Image{}, fmt.Errorf("%w: %s", sandbox.ErrNoImage, ref)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return sandbox.Image{}, errUnsupported
	}
	return sandbox.Image{Ref: ref, Digest: fmt.Sprintf("sha256:%x-%d-%d", ref, st.Ino, st.Ctim.Nano())}, nil
}

// Create copies the image.
func (e *Engine) Create(_ context.Context, spec sandbox.Spec) (sandbox.Session, error) {
	if _, err := os.Stat(e.imageDir(spec.Image)); err != nil {
		return nil, fmt.Errorf("%w: %s", sandbox.ErrNoImage, spec.Image)
	}
	e.mu.Lock()
	e.next++
	box := &Box{id: fmt.Sprintf("box%d", e.next), Spec: spec, Root: filepath.Join(e.Dir, "boxes", fmt.Sprint(e.next)), engine: e}
	if e.boxes == nil {
		e.boxes = map[string]*Box{}
	}
	e.boxes[box.id] = box
	e.mu.Unlock()
	if err := copyTree(e.imageDir(spec.Image), box.Root); err != nil {
		return nil, err
	}
	if spec.Workdir != "" {
		if err := os.MkdirAll(box.host(spec.Workdir), 0o755); err != nil {
			return nil, err
		}
	}
	if e.Created != nil {
		e.Created(box)
	}
	return box, nil
}

// Attach finds a sandbox that is open.
func (e *Engine) Attach(_ context.Context, id string) (sandbox.Session, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if box := e.boxes[id]; box != nil {
		return box, nil
	}
	return nil, sandbox.ErrGone
}

// List gives the open sandboxes.
func (e *Engine) List(context.Context) ([]sandbox.Listed, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var listed []sandbox.Listed
	for id, box := range e.boxes {
		listed = append(listed, sandbox.Listed{ID: id, Name: box.Spec.Name, Running: true})
	}
	return listed, nil
}

// Commit copies a sandbox's files to an image.
func (e *Engine) Commit(ctx context.Context, id, ref string) (sandbox.Image, error) {
	e.mu.Lock()
	box := e.boxes[id]
	e.mu.Unlock()
	if box == nil {
		return sandbox.Image{}, sandbox.ErrGone
	}
	if err := copyTree(box.Root, e.imageDir(ref)); err != nil {
		return sandbox.Image{}, err
	}
	return e.Image(ctx, ref)
}

// Remove removes a sandbox.
func (e *Engine) Remove(_ context.Context, id string) error {
	e.mu.Lock()
	box := e.boxes[id]
	delete(e.boxes, id)
	e.mu.Unlock()
	if box == nil {
		return nil
	}
	return os.RemoveAll(box.Root)
}

// RemoveImage forgets an image.
func (e *Engine) RemoveImage(ref string) error { return os.RemoveAll(e.imageDir(ref)) }

// Close does nothing.
func (e *Engine) Close() error { return nil }

var errUnsupported = errors.New("not supported by the fake engine")
