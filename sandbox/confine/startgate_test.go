package confine

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestStartGateAdapts(t *testing.T) {
	g := NewStartGate(4)
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
		if err := g.Enter(context.Background()); err != nil {
			t.Fatal(err)
		}
		if g.Leave(step.took, step.ok); g.limit != step.limit {
			t.Errorf("after %v, ok %v: limit %d, want %d", step.took, step.ok, g.limit, step.limit)
		}
	}
}

func TestStartGateQueuesInOrder(t *testing.T) {
	g := NewStartGate(1)
	_ = g.Enter(context.Background())
	order := make(chan int, 3)
	for i := range 3 {
		go func() {
			if g.Enter(context.Background()) == nil {
				order <- i
				g.Leave(0, true)
			}
		}()
		for g.queued() <= i {
			time.Sleep(time.Millisecond)
		}
	}
	g.Leave(0, true)
	for i := range 3 {
		if got := <-order; got != i {
			t.Errorf("turn %d went to %d", i, got)
		}
	}
}

func TestStartGateLeavingTheQueueFreesThePlace(t *testing.T) {
	g := NewStartGate(1)
	_ = g.Enter(context.Background())
	ctx, cancel := context.WithCancel(context.Background())
	gave := make(chan error)
	go func() { gave <- g.Enter(ctx) }()
	for g.queued() == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-gave; !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled wait: %v", err)
	}
	g.Leave(0, true)
	if err := g.Enter(context.Background()); err != nil || g.running != 1 {
		t.Errorf("%v, %d running", err, g.running)
	}
}

// queued tells how many wait.
func (g *StartGate) queued() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting)
}
