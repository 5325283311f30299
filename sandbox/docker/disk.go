package docker

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"golang.org/x/sys/unix"

	"proctor/sandbox"
	"proctor/sandbox/diskwatch"
)

// watchDisk has the disk of a running container measured, where its storage has no quota, and its volumes
// in any case: those of an image are not under one. The limit is the one that single files have, so that an
// attached sandbox has the one that it was made with.
func (e *Engine) watchDisk(s *session, found container.InspectResponse) {
	limit := fileLimit(found)
	dirs := writable(found)
	if limit == 0 || len(dirs) == 0 {
		return
	}
	pid := found.State.Pid
	e.disks.Watch(diskwatch.Target{ID: s.id, Dirs: dirs, Limit: limit, Init: func() int { return pid },
		Over: func(used int64) { s.overfull(pid, used, limit) }})
}

// fileLimit gives the bytes that a container's files may have, 0 where it has no such limit.
func fileLimit(c container.InspectResponse) int64 {
	if c.HostConfig == nil {
		return 0
	}
	for _, u := range c.HostConfig.Ulimits {
		if u.Name == "fsize" {
			return u.Hard
		}
	}
	return 0
}

// writable gives the folders of the host that hold what a container writes.
func writable(c container.InspectResponse) []string {
	var dirs []string
	if upper := c.GraphDriver.Data["UpperDir"]; upper != "" && c.HostConfig.StorageOpt["size"] == "" {
		dirs = append(dirs, upper)
	}
	for _, m := range c.Mounts {
		if m.Type == mount.TypeVolume && m.Source != "" {
			dirs = append(dirs, m.Source)
		}
	}
	return dirs
}

// overfull ends a sandbox that wrote more than it may. It is killed by the host's hand and not by the daemon's,
// which would write that into its log as a deed of the host's: a server that dies now must still find that the
// agent did it.
func (s *session) overfull(pid int, used, limit int64) {
	what := fmt.Sprintf("it wrote %d MiB", used>>20)
	if used == math.MaxInt64 {
		what = "it made a tree of files that cannot be measured"
	}
	dead := s.died(sandbox.FailureModel, fmt.Sprintf("out of disk: %s, and its limit is %d MiB", what, limit>>20))
	ctx, cancel := detached(context.Background(), cleanupLimit)
	defer cancel()
	found, err := s.engine.inspectOurs(ctx, s.id)
	if err != nil || !found.State.Running {
		return
	}
	if found.State.Pid == pid && unix.Kill(pid, unix.SIGKILL) == nil {
		return
	}
	if err := s.engine.cli.ContainerKill(ctx, s.id, "KILL"); err != nil && !errdefs.IsNotFound(err) && !errdefs.IsConflict(err) {
		s.engine.log.Error("kill a sandbox", "sandbox", s.id, "err", errors.Join(dead, err))
	}
}
