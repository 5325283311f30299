package pool

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"proctor/sandbox"
	"proctor/sandbox/sandboxtest"
)

// clock is a clock that a test moves.
type clock struct{ ns atomic.Int64 }

func (c *clock) now() time.Time          { return at(time.Duration(c.ns.Load()).Seconds()) }
func (c *clock) move(d time.Duration)    { c.ns.Add(int64(d)) }
func want(image string) sandbox.Spec     { return sandbox.Spec{Name: "r", Image: image} }
func ctxOf(t *testing.T) context.Context { t.Helper(); return t.Context() }

// newPool gives a pool over a fake, and its clock.
func newPool(t *testing.T, fake *sandboxtest.Fake, opt Options) (*Engine, *clock) {
	t.Helper()
	c := &clock{}
	opt.clock = c.now
	e, err := New(fake, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e, c
}

// claim asks for a sandbox, which must come.
func claim(t *testing.T, e *Engine, spec sandbox.Spec) sandbox.Session {
	t.Helper()
	s, err := e.Create(ctxOf(t), spec)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// eventually waits until ok.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("never came true: %s", what)
}

// names gives the names under which the engine made the sandboxes that are there.
func names(t *testing.T, engine sandbox.Engine) []string {
	t.Helper()
	listed, err := engine.List(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, l := range listed {
		all = append(all, l.Name)
	}
	return all
}

func TestSparesFollowDemand(t *testing.T) {
	fake := &sandboxtest.Fake{}
	e, c := newPool(t, fake, Options{Max: 8, Idle: time.Minute})
	for range 3 {
		claim(t, e, want("img"))
	}
	e.Tick()
	if e.Spares() != 0 {
		t.Errorf("%d spares after one group, want none: it may be the only one", e.Spares())
	}
	c.move(10 * time.Second)
	claim(t, e, want("img"))
	eventually(t, "three spares for the next group", func() bool { return e.Spares() == 3 })
	made := len(names(t, fake))
	s := claim(t, e, want("img"))
	if !slices.Contains(names(t, e), "r") || len(names(t, fake)) < made {
		t.Errorf("a claimed spare is listed under its name: %v", names(t, e))
	}
	if got := fake.Session(s.ID()); got.Spec.Name != spareName || got.Spec.Hostname != "" {
		t.Errorf("the claim was no spare: %+v", got.Spec)
	}
	c.move(61 * time.Second)
	eventually(t, "after the idle time all is forgotten", func() bool {
		e.Tick()
		e.mu.Lock()
		defer e.mu.Unlock()
		return len(e.kinds) == 0
	})
	if slices.Contains(names(t, e), spareName) {
		t.Errorf("after the idle time: listed %v", names(t, e))
	}
}

func TestExpectMakesReady(t *testing.T) {
	fake := &sandboxtest.Fake{}
	e, _ := newPool(t, fake, Options{Max: 4})
	if err := e.Expect(ctxOf(t), want("img"), 9); err != nil {
		t.Fatal(err)
	}
	eventually(t, "as many spares as there may be", func() bool { return e.Spares() == 4 })
	if n, err := e.Ready(ctxOf(t), want("img")); n != 4 || err != nil {
		t.Errorf("ready %d %v", n, err)
	}
	if err := e.Expect(ctxOf(t), want("no-such"), 1); !errors.Is(err, sandbox.ErrNoImage) {
		t.Errorf("an image that does not exist: %v", err)
	}
	if err := e.Expect(ctxOf(t), sandbox.Spec{Image: "img", Hostname: "h"}, 1); err != nil || len(names(t, fake)) != 4 {
		t.Errorf("what is never pooled is not made: %v, %v", err, names(t, fake))
	}
}

// Only what is alike in all but the name stands for each other, and what is unique is never pooled.
func TestKinds(t *testing.T) {
	base := sandbox.Spec{Name: "a", Image: "img", Workdir: "/w", User: "u", Env: map[string]string{"A": "1", "B": "2"}, Limits: sandbox.Limits{CPUs: 2}}
	same := base
	same.Name, same.Limits.Lifetime, same.Network.Mode = "b", time.Hour, "none"
	same.Env = map[string]string{"B": "2", "A": "1"}
	if keyOf("d", base) != keyOf("d", same) {
		t.Errorf("%s\n%s", keyOf("d", base), keyOf("d", same))
	}
	for name, change := range map[string]func(*sandbox.Spec){
		"image": func(s *sandbox.Spec) { s.Image = "other" }, "workdir": func(s *sandbox.Spec) { s.Workdir = "/" }, "user": func(s *sandbox.Spec) { s.User = "" },
		"env": func(s *sandbox.Spec) { s.Env = map[string]string{"A": "1"} }, "memory": func(s *sandbox.Spec) { s.Limits.MemoryMB = 1 },
		"network": func(s *sandbox.Spec) { s.Network.Mode = "open" },
	} {
		other := base
		change(&other)
		if keyOf("d", base) == keyOf("d", other) || !poolable(other) {
			t.Errorf("another %s is another kind", name)
		}
	}
	if keyOf("d", base) == keyOf("e", base) {
		t.Error("another digest is another kind")
	}
	for name, spec := range map[string]sandbox.Spec{
		"labels": {Labels: map[string]string{"a": "b"}}, "hostname": {Hostname: "h"}, "hosts": {Network: sandbox.Network{Hosts: map[string]string{"a": "1.2.3.4"}}},
		"own network": {Network: sandbox.Network{Mode: "internal", Name: "n"}}, "a name": {Network: sandbox.Network{Name: "n"}},
	} {
		if poolable(spec) {
			t.Errorf("%s: pooled", name)
		}
	}
}

func TestDeadSparesAreNotHandedOut(t *testing.T) {
	fake := &sandboxtest.Fake{}
	e, _ := newPool(t, fake, Options{Max: 3})
	if err := e.Expect(ctxOf(t), want("img"), 3); err != nil {
		t.Fatal(err)
	}
	eventually(t, "three spares", func() bool { return e.Spares() == 3 })
	listed, _ := fake.List(ctxOf(t))
	for _, l := range listed {
		fake.Session(l.ID).Die(sandbox.FailureInfra, "the daemon was restarted")
	}
	s := claim(t, e, want("img"))
	if err := s.Alive(ctxOf(t)); err != nil {
		t.Errorf("handed out: %v", err)
	}
	eventually(t, "the dead ones are removed", func() bool {
		return !slices.ContainsFunc(listed, func(l sandbox.Listed) bool { return fake.Session(l.ID) != nil })
	})
}

// held is an OnCreate that waits until it is let go, and tells how many wait.
type held struct {
	inside  atomic.Int32
	release chan error
}

func (h *held) create(ctx context.Context, _ *sandboxtest.FakeSession, _ sandbox.Spec) error {
	h.inside.Add(1)
	defer h.inside.Add(-1)
	select {
	case err := <-h.release:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Callers are served in the order in which they came, by whichever make ends first; a failure is told the
// first of them too.
func TestStormIsServedInOrder(t *testing.T) {
	h := &held{release: make(chan error)}
	fake := &sandboxtest.Fake{OnCreate: h.create}
	e, _ := newPool(t, fake, Options{Max: 1})
	const n = 20
	served := make(chan int, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			_, err := e.Create(context.Background(), want("img"))
			if (err != nil) != (i%5 == 4) {
				t.Errorf("caller %d: %v", i, err)
			}
			served <- i
		})
		eventually(t, "the caller waits", func() bool { return int(h.inside.Load()) == i+1 })
	}
	for i := range n {
		var err error
		if i%5 == 4 {
			err = errors.New("no luck")
		}
		h.release <- err
		if got := <-served; got != i {
			t.Fatalf("caller %d was served in place %d", got, i)
		}
	}
	group.Wait()
}

// A caller that leaves stops a make that nobody else needs, before it returns; others keep theirs.
func TestLeavingStopsItsMake(t *testing.T) {
	h := &held{release: make(chan error)}
	fake := &sandboxtest.Fake{OnCreate: h.create}
	e, _ := newPool(t, fake, Options{Max: 1})
	stay := make(chan error, 1)
	go func() { _, err := e.Create(context.Background(), want("img")); stay <- err }()
	eventually(t, "the first waits", func() bool { return h.inside.Load() == 1 })
	ctx, cancel := context.WithCancel(context.Background())
	gone := make(chan error, 1)
	go func() { _, err := e.Create(ctx, want("img")); gone <- err }()
	eventually(t, "the second waits", func() bool { return h.inside.Load() == 2 })
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) || h.inside.Load() != 1 {
		t.Errorf("%v with %d makes left", err, h.inside.Load())
	}
	h.release <- nil
	if err := <-stay; err != nil {
		t.Error(err)
	}
	if left := names(t, fake); len(left) != 1 {
		t.Errorf("sandboxes %v, want that of the one who stayed", left)
	}
}

func TestStockWaitsForCallers(t *testing.T) {
	h := &held{release: make(chan error)}
	fake := &sandboxtest.Fake{OnCreate: h.create}
	e, _ := newPool(t, fake, Options{Max: 8, Parallel: 3})
	done := make(chan error, 1)
	go func() { _, err := e.Create(context.Background(), want("a")); done <- err }()
	eventually(t, "a caller waits", func() bool { return h.inside.Load() == 1 })
	if err := e.Expect(ctxOf(t), want("b"), 8); err != nil {
		t.Fatal(err)
	}
	if n := h.inside.Load(); n != 1 {
		t.Errorf("%d makes while a caller waits", n)
	}
	h.release <- nil
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	eventually(t, "stock is made, three at once", func() bool { return h.inside.Load() == 3 })
	time.Sleep(20 * time.Millisecond)
	if n := h.inside.Load(); n != 3 {
		t.Errorf("%d makes for stock at once", n)
	}
	h.release <- errors.New("overloaded")
	eventually(t, "a failure lowers the bound", func() bool { e.mu.Lock(); defer e.mu.Unlock(); return e.bound == 1 })
}

func TestClose(t *testing.T) {
	h := &held{release: make(chan error)}
	fake := &sandboxtest.Fake{OnCreate: h.create}
	e, _ := newPool(t, fake, Options{Max: 8})
	done := make(chan error, 1)
	go func() { _, err := e.Create(context.Background(), want("a")); done <- err }()
	eventually(t, "a caller waits", func() bool { return h.inside.Load() == 1 })
	if err := errors.Join(e.Close(), e.Close()); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, sandbox.ErrUnavailable) {
		t.Errorf("a caller of a pool that was closed: %v", err)
	}
	if _, err := e.Create(context.Background(), want("a")); !errors.Is(err, sandbox.ErrUnavailable) {
		t.Errorf("after the close: %v", err)
	}
	if left := names(t, fake); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	if _, err := New(fake, Options{}); err == nil || !strings.Contains(err.Error(), "Max") {
		t.Errorf("no room: %v", err)
	}
}

// Under any mix of claims, cancellations, failures, deaths and announcements: no sandbox is handed out twice
// or dead, spares never pass Max, every caller gets an answer, and at the end only what was claimed is left.
func TestPoolUnderAnything(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { anything(t, seed) })
	}
}

func anything(t *testing.T, seed uint64) {
	const room = 5
	random := rand.New(rand.NewPCG(seed, 1))
	var lucky atomic.Uint64
	fake := &sandboxtest.Fake{OnCreate: func(ctx context.Context, _ *sandboxtest.FakeSession, _ sandbox.Spec) error {
		n := lucky.Add(0x9e3779b97f4a7c15)
		time.Sleep(time.Duration(n>>56) * 4 * time.Microsecond)
		if n>>40&15 == 0 {
			return errors.New("no luck")
		}
		return ctx.Err()
	}}
	var most atomic.Int64
	e, c := newPool(t, fake, Options{Max: room, Idle: 20 * time.Second, Observer: Observer{Changed: func(s State) {
		if s.Spares+s.Stocking > room || s.Waiting < 0 || s.Stocking < 0 || s.Bound < 1 {
			most.Store(int64(s.Spares + s.Stocking))
		}
	}}})
	var mu sync.Mutex
	mine := map[string]bool{}
	var group sync.WaitGroup
	for range 200 {
		switch roll := random.IntN(10); {
		case roll == 0:
			c.move(time.Duration(random.IntN(15)) * time.Second)
			e.Tick()
		case roll == 1:
			_ = e.Expect(context.Background(), want(fmt.Sprint("img", random.IntN(3))), random.IntN(6))
		case roll == 2: // a spare dies
			listed, _ := fake.List(context.Background())
			mu.Lock()
			for _, l := range listed {
				if s := fake.Session(l.ID); s != nil && !mine[l.ID] && l.Name == spareName && random.IntN(2) == 0 {
					s.Die(sandbox.FailureInfra, "chance")
				}
			}
			mu.Unlock()
		default:
			ctx, cancel := context.WithCancel(context.Background())
			if roll == 3 {
				ctx, cancel = context.WithTimeout(ctx, time.Duration(random.IntN(1500))*time.Microsecond)
			}
			spec, keep := want(fmt.Sprint("img", random.IntN(3))), random.IntN(3) == 0
			group.Go(func() {
				defer cancel()
				s, err := e.Create(ctx, spec)
				if err != nil {
					return
				}
				mu.Lock()
				if mine[s.ID()] {
					t.Errorf("%s was handed out twice", s.ID())
				}
				mine[s.ID()] = true
				mu.Unlock()
				if !keep {
					_ = s.Close(context.Background())
				}
			})
			time.Sleep(time.Duration(random.IntN(200)) * time.Microsecond)
		}
	}
	group.Wait()
	if n := most.Load(); n != 0 {
		t.Errorf("%d spares and makes for stock, room is %d", n, room)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	listed, _ := fake.List(context.Background())
	for _, l := range listed {
		if !mine[l.ID] {
			t.Errorf("%s (%s) is left and nobody's", l.ID, l.Name)
		}
	}
}
