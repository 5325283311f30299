package docker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"

	"proctor/sandbox"
)

// By whose doing a sandbox died decides whether its rollout counts: an agent that could kill its own box
// and have that called our failure would escape a bad reward. So a death is the agent's (class model)
// unless the host has evidence of its own that it was not: the daemon logged that somebody stopped, killed
// or removed the container, or the daemon or the machine was restarted meanwhile. Nothing that a process
// inside can do makes such evidence.

// settleLimit is the longest single wait for the daemon to say what became of a container; twice that in all.
const settleLimit = 800 * time.Millisecond

// fate is nil while the container runs, else the *sandbox.DeadError that says why it does not.
func (s *session) fate(ctx context.Context) error {
	s.mu.Lock()
	dead := s.dead
	s.mu.Unlock()
	if dead != nil {
		return dead
	}
	found, err := s.engine.cli.ContainerInspect(ctx, s.id)
	switch {
	case errdefs.IsNotFound(err):
		return s.died(sandbox.FailureInfra, "its container was removed from outside")
	case err != nil:
		return s.engine.wrap("look at container "+s.id, err)
	case found.State.Running && !found.State.Paused:
		return nil
	case found.State.Paused:
		return fmt.Errorf("%w: docker: container %s is paused; unpause it", sandbox.ErrUnavailable, s.id)
	}
	class, reason := s.engine.blame(ctx, found)
	return s.died(class, reason)
}

// died settles the sandbox's fate. The first word stands.
func (s *session) died(class, reason string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead == nil {
		s.dead = &sandbox.DeadError{Class: class, Reason: reason}
		_ = s.hangUpLocked() // nobody is at the other end
		go s.endRelay()
		s.engine.disks.Forget(s.id)
	}
	return s.dead
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
	daemon, _ := daemonStart()
	boot, _ := bootTime()
	return restarted(started, daemon, boot)
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

// severed ends a sandbox whose container runs but whose agent cannot be reached: only root inside can have
// done that (it unlinked the socket, or starved the agent). What cannot be watched must not go on.
//
// The daemon learns of a death a moment later than we do: whose container is being killed or removed from outside
// is not blamed for it.
func (s *session) severed(ctx context.Context, cause error) error {
	for wait := 50 * time.Millisecond; ; wait *= 2 {
		if err := s.fate(ctx); err != nil {
			return err
		}
		if wait > settleLimit || ctx.Err() != nil {
			break
		}
		time.Sleep(wait)
	}
	dead := s.died(sandbox.FailureModel, "its agent was cut off from inside: "+cause.Error())
	ctx, cancel := detached(ctx, cleanupLimit)
	defer cancel()
	if err := s.engine.cli.ContainerKill(ctx, s.id, "KILL"); err != nil && !errdefs.IsNotFound(err) && !errdefs.IsConflict(err) {
		return errors.Join(dead, s.engine.wrap("kill container "+s.id, err))
	}
	return dead
}

// notReady says why a new or attached sandbox's agent did not answer.
func (s *session) notReady(ctx context.Context, cause error) error {
	for _, known := range []error{sandbox.ErrNoShell, sandbox.ErrStart} {
		if errors.Is(cause, known) {
			return cause
		}
	}
	look, cancel := detached(ctx, 10*time.Second)
	defer cancel()
	for wait := 50 * time.Millisecond; wait < 2*time.Second; wait *= 2 { // the daemon learns of a death a moment later than we do
		if err := s.fate(look); err != nil {
			return fmt.Errorf("docker: the box agent of %s did not come up: %w (%v)", s.id, err, cause)
		}
		time.Sleep(wait)
	}
	return fmt.Errorf("%w: docker: the box agent of %s does not answer: %v", sandbox.ErrUnavailable, s.id, cause)
}
