package oci

import (
	"context"
	"path/filepath"

	"proctor/sandbox/confine"
	"proctor/sandbox/diskwatch"
)

// watchDisk has what a sandbox writes measured: the store has no quota.
func (e *Engine) watchDisk(s state) {
	e.disks.Watch(diskwatch.Target{ID: s.ID, Dirs: []string{filepath.Join(e.folder(s.ID), "u")}, Limit: s.Disk,
		Init: func() int { return s.PID }, Over: func(used int64) { e.overfull(s, used) }})
}

// overfull ends a sandbox that wrote more than it may.
func (e *Engine) overfull(s state, used int64) {
	ctx, cancel := detached(context.Background(), cleanupLimit)
	defer cancel()
	if err := (machine{e, s.ID}).Kill(ctx, confine.OutOfDisk(used, s.Disk)); err != nil {
		e.log.Error("kill a sandbox", "sandbox", s.ID, "err", err)
	}
}

// Detach lets go; the sandbox lives on, unmeasured until it is attached again.
func (s *session) Detach() error {
	s.engine.disks.Forget(s.id)
	return s.Link.Detach()
}
