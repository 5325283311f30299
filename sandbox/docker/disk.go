package docker

import (
	"context"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"proctor/sandbox/confine"
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
		Over: func(used int64) { s.overfull(used, limit) }})
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

// overfull ends a sandbox that wrote more than it may.
func (s *session) overfull(used, limit int64) {
	err := s.Condemn(context.Background(), confine.OutOfDisk(used, limit))
	s.engine.log.Info("a sandbox over its disk is ended", "sandbox", s.id, "error", err)
}
