package link

import (
	"context"
	"fmt"
	"net"

	"proctor/sandbox"
	"proctor/sandbox/box"
)

var _ sandbox.Relayer = (*Link)(nil)

// Relay lets the sandbox reach what r allows, over connections of its own to the agent; with nil, nothing.
func (l *Link) Relay(ctx context.Context, r sandbox.Relay) error {
	l.endRelay()
	if r == nil {
		return nil
	}
	if err := l.Fate(ctx); err != nil {
		return err
	}
	pid, err := l.machine.PID(ctx)
	if err != nil {
		return err
	}
	dial := func(ctx context.Context) (net.Conn, error) { return box.Connect(ctx, l.socket, pid) }
	relaying, err := box.Relay(ctx, dial, r)
	if err != nil {
		if dead := l.Fate(ctx); dead != nil {
			return dead
		}
		return fmt.Errorf("%w: %s: relay of %s: %v", sandbox.ErrUnavailable, l.engine, l.id, err)
	}
	l.mu.Lock()
	late := l.closed || l.dead != nil || l.relaying != nil
	if !late {
		l.relaying = relaying
	}
	l.mu.Unlock()
	if late {
		relaying.Close()
		return fmt.Errorf("%w: %s: %s ended, or got another relay, meanwhile", sandbox.ErrUnavailable, l.engine, l.id)
	}
	return nil
}

// endRelay ends the relay, if there is one.
func (l *Link) endRelay() {
	l.mu.Lock()
	relaying := l.relaying
	l.relaying = nil
	l.mu.Unlock()
	if relaying != nil {
		relaying.Close()
	}
}
