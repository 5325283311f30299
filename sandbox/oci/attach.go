package oci

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"proctor/sandbox"
	"proctor/sandbox/confine"
	"proctor/sandbox/oci/tree"
)

// Attach takes up a sandbox by id. One that is dead is attached too: its session says so.
func (e *Engine) Attach(ctx context.Context, id string) (sandbox.Session, error) {
	if _, _, err := e.open(); err != nil {
		return nil, err
	}
	s, err := e.load(id)
	if err != nil {
		return nil, err
	}
	if !s.Ready {
		return nil, fmt.Errorf("%w: %s was never ready", sandbox.ErrGone, id)
	}
	session := e.newSession(s)
	var dead *sandbox.DeadError
	if err := session.Fate(ctx); errors.As(err, &dead) {
		return session, nil
	} else if err != nil {
		return nil, err
	}
	if err := session.Resume(ctx, readyLimit); err != nil {
		return nil, err
	}
	e.watchDisk(s)
	return session, nil
}

// List gives the sandboxes of this owner, running or dead, those half made as well.
func (e *Engine) List(ctx context.Context) ([]sandbox.Listed, error) {
	if _, _, err := e.open(); err != nil {
		return nil, err
	}
	ids, err := e.ids()
	if err != nil {
		return nil, fmt.Errorf("oci: list sandboxes: %w", err)
	}
	var listed []sandbox.Listed
	for _, id := range ids {
		s, err := e.load(id)
		if err != nil {
			continue // gone meanwhile, or not begun: Sweep's
		}
		listed = append(listed, sandbox.Listed{ID: id, Name: s.Name, Running: s.Ready && machine{e, id}.Fate(ctx) == nil, Created: s.Created, Labels: s.Labels})
	}
	return listed, nil
}

// Remove removes a sandbox of this owner, dead or alive; nil where there is none.
func (e *Engine) Remove(ctx context.Context, id string) error {
	if _, _, err := e.open(); err != nil {
		return err
	}
	_, err := e.load(id)
	if errors.Is(err, sandbox.ErrGone) {
		return nil
	}
	return e.destroy(ctx, id)
}

// destroy takes away all that there may be of a sandbox, however far its making or its removal came. It is done in an
// order that leaves its folder, by which it is found again, for last.
func (e *Engine) destroy(ctx context.Context, id string) error {
	s, err := e.load(id)
	if err != nil && !errors.Is(err, sandbox.ErrGone) {
		e.log.Warn("the state of a sandbox cannot be read; it is removed without", "sandbox", id, "error", err)
	}
	if err == nil {
		if err := e.condemn(id, infra("it was removed from outside")); err != nil && !errors.Is(err, sandbox.ErrGone) {
			return err
		}
	}
	s.ID = id
	if s.PID == 0 { // a crash may have come before it was noted
		s.PID, _ = readPID(filepath.Join(e.folder(id), "pid"))
		s.Start, _ = startOf(s.PID)
		if s.PID != 0 && !inCgroup(s.PID, e.cgroupName(id)) {
			s.PID = 0
		}
	}
	if err := e.stop(ctx, s); err != nil {
		return err
	}
	rt := e.runtime
	if s.Program != "" {
		rt = &ociRuntime{path: s.Program, name: s.Runtime}
	}
	if err := rt.remove(ctx, e.runtimeRoot(), id); err != nil {
		e.log.Debug("the runtime does not remove a sandbox; it is removed without", "sandbox", id, "error", err)
		if err := tree.Remove(filepath.Join(e.runtimeRoot(), id)); err != nil {
			return fmt.Errorf("oci: %w", err)
		}
	}
	if err := machineCgroups().remove(ctx, e.cgroupName(id)); err != nil {
		return fmt.Errorf("oci: %w", err)
	}
	if s.Folder != "" {
		if err := e.root.Drop(s.Folder); err != nil {
			return fmt.Errorf("oci: %w", err)
		}
	}
	return e.discard(id)
}

// discard removes a sandbox's folder. It is moved away first: large ones take a while, and half of one is no sandbox.
func (e *Engine) discard(id string) error {
	if err := unmount(filepath.Join(e.folder(id), "m")); err != nil {
		return fmt.Errorf("oci: %w", err)
	}
	away := filepath.Join(e.path, "t", confine.RandomHex(8))
	if err := os.Rename(e.folder(id), away); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil // another caller's
		}
		return fmt.Errorf("oci: %w", err)
	}
	if err := tree.Remove(away); err != nil {
		return fmt.Errorf("oci: %w", err)
	}
	return nil
}

// inCgroup reports whether a process is in a cgroup of that name, in any hierarchy.
func inCgroup(pid int, name string) bool {
	for _, folder := range machineCgroups().folders(name) {
		text, err := os.ReadFile(filepath.Join(folder, "cgroup.procs"))
		if err == nil && slices.Contains(splitLines(text), fmt.Sprint(pid)) {
			return true
		}
	}
	return false
}

// Sweep removes what a create that a crash cut short left behind: sandboxes that were never ready, run folders and
// cgroups that no sandbox has. Call it before the first Create, as a server does at start.
func (e *Engine) Sweep(ctx context.Context) error {
	store, _, err := e.open()
	if err != nil {
		return err
	}
	ids, err := e.ids()
	if err != nil {
		return fmt.Errorf("oci: sweep: %w", err)
	}
	var errs []error
	var folders []string
	known := map[string]bool{}
	for _, id := range ids {
		s, err := e.load(id)
		if err == nil && s.Ready {
			known[id] = true
			folders = append(folders, s.Folder)
			continue
		}
		errs = append(errs, e.destroy(ctx, id))
	}
	made, err := e.root.Folders()
	errs = append(errs, err)
	for _, folder := range made {
		if !slices.Contains(folders, folder) {
			errs = append(errs, e.root.Drop(folder))
		}
	}
	for _, id := range machineCgroups().ofOwner(e.mark) {
		if !known[id] {
			errs = append(errs, machineCgroups().remove(ctx, e.cgroupName(id)))
		}
	}
	errs = append(errs, store.Tidy())
	return errors.Join(errs...)
}

// isMounted reports whether a sandbox's root is mounted: not after the machine was started anew.
func isMounted(path string) bool {
	var own, parent unix.Stat_t
	return unix.Stat(path, &own) == nil && unix.Stat(filepath.Dir(path), &parent) == nil && own.Dev != parent.Dev
}
