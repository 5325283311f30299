package docker

import (
	"context"
	"fmt"
	"net"
	"path/filepath"

	"proctor/sandbox"
	"proctor/sandbox/box"
	"proctor/sandbox/confine"
)

var _ sandbox.Relayer = (*session)(nil)

// Relay lets the sandbox reach what r allows, over connections of its own to the box agent; with nil, nothing.
func (s *session) Relay(ctx context.Context, r sandbox.Relay) error {
	s.endRelay()
	if r == nil {
		return nil
	}
	state, err := s.engine.inspectOurs(ctx, s.id)
	if err != nil {
		return err
	}
	if !state.State.Running {
		return s.fate(ctx)
	}
	socket, pid := filepath.Join(s.folder, confine.SocketName), state.State.Pid
	dial := func(ctx context.Context) (net.Conn, error) { return box.Connect(ctx, socket, pid) }
	relaying, err := box.Relay(ctx, dial, r)
	if err != nil {
		if dead := s.fate(ctx); dead != nil {
			return dead
		}
		return fmt.Errorf("%w: docker: relay of %s: %v", sandbox.ErrUnavailable, s.id, err)
	}
	s.mu.Lock()
	late := s.closed || s.dead != nil || s.relaying != nil
	if !late {
		s.relaying = relaying
	}
	s.mu.Unlock()
	if late {
		relaying.Close()
		return fmt.Errorf("%w: docker: %s ended, or got another relay, meanwhile", sandbox.ErrUnavailable, s.id)
	}
	return nil
}

// endRelay ends the relay, if there is one.
func (s *session) endRelay() {
	s.mu.Lock()
	relaying := s.relaying
	s.relaying = nil
	s.mu.Unlock()
	if relaying != nil {
		relaying.Close()
	}
}
