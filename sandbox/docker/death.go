package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
	"golang.org/x/sys/unix"

	"proctor/sandbox"
	"proctor/sandbox/box/link"
)

// By whose doing a sandbox died decides whether its rollout counts: an agent that could kill its own box
// and have that called our failure would escape a bad reward. So a death is the agent's (class model)
// unless the host has evidence of its own that it was not: the daemon logged that somebody stopped, killed
// or removed the container, or the daemon or the machine was restarted meanwhile. Nothing that a process
// inside can do makes such evidence.

// settleLimit is how long the daemon may take to learn of a death that we see first.
const settleLimit = 1600 * time.Millisecond

// machine is a container as the daemon sees it.
type machine struct {
	engine *Engine
	id     string
}

var _ link.Machine = machine{}

// Fate is nil while the container runs, else the *sandbox.DeadError that says why it does not.
func (m machine) Fate(ctx context.Context) error {
	found, err := m.engine.cli.ContainerInspect(ctx, m.id)
	switch {
	case errdefs.IsNotFound(err):
		return m.died(sandbox.FailureInfra, "its container was removed from outside")
	case err != nil:
		return m.engine.wrap("look at container "+m.id, err)
	case found.State.Running && !found.State.Paused:
		return nil
	case found.State.Paused:
		return fmt.Errorf("%w: docker: container %s is paused; unpause it", sandbox.ErrUnavailable, m.id)
	}
	class, reason := m.engine.blame(ctx, found)
	return m.died(class, reason)
}

// died ends what is kept for a container that runs.
func (m machine) died(class, reason string) error {
	m.engine.disks.Forget(m.id)
	return &sandbox.DeadError{Class: class, Reason: reason}
}

// PID gives the container's first process by its pid on this host.
func (m machine) PID(ctx context.Context) (int, error) {
	found, err := m.engine.inspectOurs(ctx, m.id)
	if err != nil {
		return 0, err
	}
	return found.State.Pid, nil
}

// Kill ends the container by the host's hand and not by the daemon's, which would write that into its log as a deed
// of the host's: a server that dies now must still find that the agent did it. The daemon's is for a first process
// that is not one of this kernel's.
func (m machine) Kill(ctx context.Context, _ *sandbox.DeadError) error {
	m.engine.disks.Forget(m.id)
	found, err := m.engine.inspectOurs(ctx, m.id)
	if errors.Is(err, sandbox.ErrGone) || err == nil && !found.State.Running {
		return nil
	}
	if err == nil && inContainer(found.State.Pid, m.id) && unix.Kill(found.State.Pid, unix.SIGKILL) == nil {
		return m.stopped(ctx)
	}
	err = m.engine.cli.ContainerKill(ctx, m.id, "KILL")
	if err == nil || errdefs.IsNotFound(err) || errdefs.IsConflict(err) {
		return nil
	}
	return m.engine.wrap("kill container "+m.id, err)
}

// stopped waits until the daemon knows of a container's end.
func (m machine) stopped(ctx context.Context) error {
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 200*time.Millisecond) {
		found, err := m.engine.inspectOurs(ctx, m.id)
		if errors.Is(err, sandbox.ErrGone) || err == nil && !found.State.Running {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return m.engine.wrap("wait for the end of container "+m.id, ctx.Err())
		case <-time.After(wait):
		}
	}
}

// inContainer reports whether a process of this host is in a container's control groups.
func inContainer(pid int, id string) bool {
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	return err == nil && strings.Contains(string(groups), id)
}

// blame says by whose doing a container stopped.
func (e *Engine) blame(ctx context.Context, c container.InspectResponse) (class, reason string) {
	how := fmt.Sprintf("its first process ended with status %d", c.State.ExitCode)
	if c.State.Error != "" {
		how += " (" + c.State.Error + ")"
	}
	if deed := e.hostDeed(ctx, c); deed != "" {
		return sandbox.FailureInfra, deed + "; " + how
	}
	if c.State.OOMKilled {
		return sandbox.FailureModel, "it ran out of its own memory; " + how
	}
	return sandbox.FailureModel, how + ", and the host had no part in it"
}

// hostDeed gives the host's evidence that it was the host that ended c, or "".
func (e *Engine) hostDeed(ctx context.Context, c container.InspectResponse) string {
	if deed := e.loggedDeed(ctx, c); deed != "" {
		return deed
	}
	started, err1 := time.Parse(time.RFC3339Nano, c.State.StartedAt)
	if err1 != nil {
		return ""
	}
	// The daemon forgets its log when it restarts. What cannot be read counts as long ago: no evidence.
	boot, _ := bootTime()
	return restarted(started, daemonStart(e.cli.DaemonHost()), boot)
}

// restarted says what was restarted since a container was started, or "".
func restarted(container, daemon, boot time.Time) string {
	switch {
	case boot.After(container):
		return "the machine was restarted"
	case daemon.After(container):
		return "the daemon was restarted"
	}
	return ""
}

// loggedDeed looks through the daemon's log of the container for what only its API's callers can do.
func (e *Engine) loggedDeed(ctx context.Context, c container.InspectResponse) string {
	args := filters.NewArgs(filters.Arg("container", c.ID), filters.Arg("type", "container"))
	for _, deed := range []events.Action{events.ActionKill, events.ActionStop, events.ActionRestart, events.ActionDestroy} {
		args.Add("event", string(deed))
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	log, ended := e.cli.Events(ctx, events.ListOptions{Since: c.Created, Until: eventTime(time.Now()), Filters: args})
	for {
		select {
		case message := <-log:
			if message.Actor.ID == c.ID {
				return fmt.Sprintf("the daemon was told to %s it", message.Action)
			}
		case <-ended:
			return ""
		}
	}
}

// eventTime writes a time as the events endpoint reads it: seconds, with a fraction.
func eventTime(t time.Time) string { return fmt.Sprintf("%d.%09d", t.Unix(), t.Nanosecond()) }
