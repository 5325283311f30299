package oci

import (
	"context"
	"fmt"
	"math"
	"path/filepath"

	"proctor/sandbox"
	"proctor/sandbox/diskwatch"
)

// watchDisk has what a sandbox writes measured: the store has no quota.
func (e *Engine) watchDisk(s state) {
	e.disks.Watch(diskwatch.Target{ID: s.ID, Dirs: []string{filepath.Join(e.folder(s.ID), "u")}, Limit: s.Disk,
		Init: func() int { return s.PID }, Over: func(used int64) { e.overfull(s, used) }})
}

// overfull ends a sandbox that wrote more than it may.
func (e *Engine) overfull(s state, used int64) {
	what := fmt.Sprintf("it wrote %d MiB", used>>20)
	if used == math.MaxInt64 {
		what = "it made a tree of files that cannot be measured"
	}
	dead := &sandbox.DeadError{Class: sandbox.FailureModel, Reason: fmt.Sprintf("out of disk: %s, and its limit is %d MiB", what, s.Disk>>20)}
	ctx, cancel := detached(context.Background(), cleanupLimit)
	defer cancel()
	if err := (machine{e, s.ID}).Kill(ctx, dead); err != nil {
		e.log.Error("kill a sandbox", "sandbox", s.ID, "err", err)
	}
}

// Detach lets go; the sandbox lives on, unmeasured until it is attached again.
func (s *session) Detach() error {
	s.engine.disks.Forget(s.id)
	return s.Link.Detach()
}
