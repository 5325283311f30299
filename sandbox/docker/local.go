package docker

import (
	"context"

	"proctor/sandbox"
)

var _ sandbox.Local = (*session)(nil)

// InitPID gives the box agent's pid on this host. With a runtime of its own kernel (runsc) there is
// no process to look at: ErrUnavailable.
func (s *session) InitPID(ctx context.Context) (int, error) {
	if s.engine.opts.Runtime == "runsc" {
		return 0, sandbox.ErrUnavailable
	}
	found, err := s.engine.inspectOurs(ctx, s.id)
	if err != nil {
		return 0, err
	}
	if !found.State.Running {
		return 0, s.Fate(ctx)
	}
	return found.State.Pid, nil
}
