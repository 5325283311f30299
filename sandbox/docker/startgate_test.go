package docker

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestStartGateAdapts(t *testing.T) {
	g := newStartGate(4)
	for _, step := range []struct {
		took  time.Duration
		ok    bool
		limit int
	}{
		{time.Second, true, 4}, // at the ceiling
		{slowStart + 1, true, 2},
		{time.Second, false, 1},
		{time.Second, false, 1}, // never below one
		{time.Second, true, 2},
		{time.Second, true, 3},
	} {
		if err := g.enter(context.Background()); err != nil {
			t.Fatal(err)
		}
		if g.leave(step.took, step.ok); g.limit != step.limit {
			t.Errorf("after %v, ok %v: limit %d, want %d", step.took, step.ok, g.limit, step.limit)
		}
	}
}

func TestStartGateQueuesInOrder(t *testing.T) {
	g := newStartGate(1)
	_ = g.enter(context.Background())
	order := make(chan int, 3)
	for i := range 3 {
		go func() {
			if g.enter(context.Background()) == nil {
				order <- i
				g.leave(0, true)
			}
		}()
		for g.queued() <= i {
			time.Sleep(time.Millisecond)
		}
	}
	g.leave(0, true)
	for i := range 3 {
		if got := <-order; got != i {
			t.Errorf("turn %d went to %d", i, got)
		}
	}
}

func TestStartGateLeavingTheQueueFreesThePlace(t *testing.T) {
	g := newStartGate(1)
	_ = g.enter(context.Background())
	ctx, cancel := context.WithCancel(context.Background())
	gave := make(chan error)
	go func() { gave <- g.enter(ctx) }()
	for g.queued() == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-gave; !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled wait: %v", err)
	}
	g.leave(0, true)
	if err := g.enter(context.Background()); err != nil || g.running != 1 {
		t.Errorf("%v, %d running", err, g.running)
	}
}

// queued tells how many wait.
func (g *startGate) queued() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting)
}
