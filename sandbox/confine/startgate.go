package confine

import (
	"context"
	"sync"
	"time"
)

// slowStart is the time from create to a running container past which the daemon counts as overloaded.
// One start takes 0.2 to 0.6 s on two processors; a daemon under a storm of 50 needs tens of seconds each.
const slowStart = 5 * time.Second

// StartGate lets a bounded number of starts run at once, in arrival order, and adapts the bound: a slow or
// failed start halves it (never below 1), a quick one raises it by one, up to the ceiling.
type StartGate struct {
	ceiling int

	mu      sync.Mutex
	limit   int
	running int
	waiting []chan struct{}
}

// NewStartGate gives a gate that never lets more than ceiling in.
func NewStartGate(ceiling int) *StartGate {
	return &StartGate{ceiling: ceiling, limit: ceiling}
}

// Enter waits for a place; the caller calls Leave exactly once if it got one.
func (g *StartGate) Enter(ctx context.Context) error {
	g.mu.Lock()
	if g.running < g.limit && len(g.waiting) == 0 {
		g.running++
		g.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	g.waiting = append(g.waiting, turn)
	g.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		g.mu.Lock()
		defer g.mu.Unlock()
		for i, other := range g.waiting {
			if other == turn {
				g.waiting = append(g.waiting[:i], g.waiting[i+1:]...)
				return ctx.Err()
			}
		}
		g.running-- // the turn came at the same moment: pass it on
		g.wakeLocked()
		return ctx.Err()
	}
}

// Leave gives the place back and learns from how the start went.
func (g *StartGate) Leave(took time.Duration, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	if !ok || took > slowStart {
		g.limit = max(1, g.limit/2)
	} else {
		g.limit = min(g.ceiling, g.limit+1)
	}
	g.wakeLocked()
}

// wakeLocked lets the longest-waiting starts in. Preconditions: mu is held.
func (g *StartGate) wakeLocked() {
	for g.running < g.limit && len(g.waiting) > 0 {
		close(g.waiting[0])
		g.waiting = g.waiting[1:]
		g.running++
	}
}
