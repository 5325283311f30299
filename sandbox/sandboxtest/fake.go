package sandboxtest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"proctor/sandbox"
)

// Fake is an in-memory engine: sandboxes are maps of files, and calls are answered by the function fields,
// or by a few built-in commands where those are nil (see FakeSession). The zero value is ready. Safe for
// concurrent use once the fields are set.
type Fake struct {
	// OnDo answers calls; nil, or ErrNotAnswered from it, leaves the call to the built-in commands. It runs
	// once for each call ID, whatever is retried.
	OnDo func(ctx context.Context, s *FakeSession, call sandbox.Call) (sandbox.Result, error)
	// OnExec answers one-shot commands, as OnDo does.
	OnExec func(ctx context.Context, s *FakeSession, e sandbox.Exec) (sandbox.ExecResult, error)
	// OnCreate may refuse a spec, or put files into the new session.
	OnCreate func(ctx context.Context, s *FakeSession, spec sandbox.Spec) error
	// Images are those that exist; nil means any, save those whose name holds "no-such".
	Images map[string]sandbox.Image
	// Caps is what Capabilities answers; Down, if set, is what it and Create answer instead.
	Caps sandbox.Capabilities
	Down error

	mu       sync.Mutex
	next     int
	sessions map[string]*FakeSession
	commits  map[string]map[string][]byte // files by image, of Commit
}

var _ sandbox.Engine = (*Fake)(nil)

// Name is "fake".
func (f *Fake) Name() string { return "fake" }

// Capabilities gives Caps or Down.
func (f *Fake) Capabilities(context.Context) (sandbox.Capabilities, error) { return f.Caps, f.Down }

// Image resolves ref among Images.
func (f *Fake) Image(_ context.Context, ref string) (sandbox.Image, error) {
	if f.Images == nil && ref != "" && !strings.Contains(ref, "no-such") {
		return sandbox.Image{Ref: ref, Digest: "sha256:fake-" + ref}, nil
	}
	if image, ok := f.Images[ref]; ok {
		return image, nil
	}
	return sandbox.Image{}, fmt.Errorf("%w: %q", sandbox.ErrNoImage, ref)
}

// Create makes a sandbox without files.
func (f *Fake) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Session, error) {
	if f.Down != nil {
		return nil, f.Down
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if _, err := f.Image(ctx, spec.Image); err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.next++
	id := fmt.Sprintf("fake-%d", f.next)
	f.mu.Unlock()
	s := newFakeSession(f, id, spec)
	f.mu.Lock()
	maps.Copy(s.files, f.commits[spec.Image]) // files' bytes are never changed in place
	f.mu.Unlock()
	if f.OnCreate != nil {
		if err := f.OnCreate(ctx, s, spec); err != nil {
			return nil, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sessions == nil {
		f.sessions = map[string]*FakeSession{}
	}
	f.sessions[id] = s
	return s, nil
}

// Attach gives the one session with this id again.
func (f *Fake) Attach(_ context.Context, id string) (sandbox.Session, error) {
	if s := f.Session(id); s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("%w: %q", sandbox.ErrGone, id)
}

// Session gives the sandbox with this id, or nil.
func (f *Fake) Session(id string) *FakeSession {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sessions[id]
}

// List gives all sandboxes, in the order they were made.
func (f *Fake) List(context.Context) ([]sandbox.Listed, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var listed []sandbox.Listed
	for id, s := range f.sessions {
		listed = append(listed, sandbox.Listed{ID: id, Name: s.Spec.Name, Running: s.deadError() == nil, Created: s.created, Labels: s.Spec.Labels})
	}
	slices.SortFunc(listed, func(a, b sandbox.Listed) int { return a.Created.Compare(b.Created) })
	return listed, nil
}

// Commit makes an image of a sandbox with its files.
func (f *Fake) Commit(_ context.Context, id, ref string) (sandbox.Image, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.sessions[id]
	if s == nil {
		return sandbox.Image{}, fmt.Errorf("%w: %q", sandbox.ErrGone, id)
	}
	if f.commits == nil {
		f.commits = map[string]map[string][]byte{}
	}
	s.mu.Lock()
	f.commits[ref] = maps.Clone(s.files)
	s.mu.Unlock()
	image := sandbox.Image{Ref: ref, Digest: "sha256:fake-" + ref}
	if f.Images != nil {
		f.Images[ref] = image
	}
	return image, nil
}

// RemoveImage forgets an image that Commit made.
func (f *Fake) RemoveImage(_ context.Context, ref string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.commits, ref)
	if f.Images != nil {
		delete(f.Images, ref)
	}
	return nil
}

// Snapshots lists the images that Commit made, sorted.
func (f *Fake) Snapshots(context.Context) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.commits)), nil
}

// Remove forgets a sandbox.
func (f *Fake) Remove(_ context.Context, id string) error {
	f.mu.Lock()
	s := f.sessions[id]
	delete(f.sessions, id)
	f.mu.Unlock()
	if s != nil {
		s.Die(sandbox.FailureInfra, "removed")
	}
	return nil
}

// Close does nothing.
func (f *Fake) Close() error { return nil }
