package oci

import (
	"context"
	"errors"
	"fmt"

	"proctor/sandbox"
	"proctor/sandbox/box/link"
)

// By whose doing a sandbox died decides whether its rollout counts: an agent that could kill its own box and have that
// called our failure would escape a bad reward. So a death is the agent's (class model) unless the host has evidence of
// its own that it was not. There is no daemon whose log could be asked, and how the first process ended is no
// evidence: root inside can have the kernel kill it (prlimit --cpu). What is: our own note from before we killed it,
// the sandbox's folder gone, the machine started anew, and the kernel out of memory while the sandbox was below its
// limit. Whoever kills a sandbox behind the engine's back leaves no evidence.

// machine is one sandbox as the host sees it.
type machine struct {
	engine *Engine
	id     string
}

var _ link.Machine = machine{}

// infra is a death by the host's doing.
func infra(reason string) *sandbox.DeadError {
	return &sandbox.DeadError{Class: sandbox.FailureInfra, Reason: reason}
}

// Fate is nil while the sandbox runs.
func (m machine) Fate(context.Context) error {
	s, err := m.engine.load(m.id)
	switch {
	case errors.Is(err, sandbox.ErrGone):
		return infra("it was removed from outside")
	case err != nil:
		return fmt.Errorf("%w: %w", sandbox.ErrUnavailable, err)
	case s.Dead != nil:
		return s.Dead
	case s.Boot != bootID():
		return infra("the machine was restarted")
	}
	cg := machineCgroups()
	if start, alive := startOf(s.PID); alive && start == s.Start {
		if cg.frozen(m.engine.cgroupName(m.id)) && !m.engine.freezing(m.id) {
			return fmt.Errorf("%w: oci: %s is paused; let it go on", sandbox.ErrUnavailable, m.id)
		}
		return nil
	}
	// It may have been removed between the first look and this one.
	if again, err := m.engine.load(m.id); errors.Is(err, sandbox.ErrGone) {
		return infra("it was removed from outside")
	} else if err == nil && again.Dead != nil {
		return again.Dead
	}
	return blame(cg.memoryDeaths(m.engine.cgroupName(m.id), s.Memory))
}

// blame says by whose doing a sandbox died, by what its cgroup says of memory.
func blame(killed, ownLimit bool) *sandbox.DeadError {
	switch {
	case killed && !ownLimit:
		return infra("the host ran out of memory, while it was below its own limit; its first process ended")
	case killed:
		return &sandbox.DeadError{Class: sandbox.FailureModel, Reason: "it ran out of its own memory; its first process ended"}
	}
	return &sandbox.DeadError{Class: sandbox.FailureModel, Reason: "its first process ended, and the host had no part in it"}
}

// PID gives the process behind the agent's socket.
func (m machine) PID(context.Context) (int, error) {
	s, err := m.engine.load(m.id)
	if err != nil {
		return 0, err
	}
	return s.Listener, nil
}

// Kill ends the sandbox and notes why.
func (m machine) Kill(ctx context.Context, dead *sandbox.DeadError) error {
	if err := m.engine.condemn(m.id, dead); err != nil {
		return err
	}
	s, err := m.engine.load(m.id)
	if err != nil {
		return err
	}
	return m.engine.stop(ctx, s)
}

// stop ends whatever of a sandbox runs.
func (e *Engine) stop(ctx context.Context, s state) error {
	cg, name := machineCgroups(), e.cgroupName(s.ID)
	if cg.frozen(name) { // what stands still does not die
		if err := cg.freeze(ctx, name, false); err != nil {
			return err
		}
	}
	if s.PID == 0 || s.Boot != bootID() {
		return nil
	}
	return kill(ctx, s.PID, s.Start)
}
