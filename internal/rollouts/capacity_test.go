package rollouts

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"proctor/sandbox"
	"proctor/sandbox/sandboxtest"
)

// crowded is a world with room for n rollouts.
func crowded(t *testing.T, n int) *world {
	return newWorld(t, func(w *world) { w.opt.MaxRollouts = n })
}

// queued waits until n creations wait for a place.
func (w *world) queued(n int) {
	w.t.Helper()
	eventually(w.t, fmt.Sprint(n, " wait"), func() bool { return w.m.Capacity().Queued == n })
}

// asked is the answer to a creation in the background.
type asked struct {
	made Created
	err  error
}

// ask asks for a rollout that waits for a place.
func (w *world) ask(ctx context.Context) <-chan asked {
	got := make(chan asked, 1)
	go func() {
		made, err := w.m.Create(ctx, "", CreateRequest{TaskID: "t", Queue: true})
		got <- asked{made, err}
	}()
	return got
}

func TestPlacesAreGivenInOrder(t *testing.T) {
	w := crowded(t, 2)
	ctx := context.Background()
	last := []Created{w.create(), w.create()}
	_, err := w.m.Create(ctx, "", CreateRequest{TaskID: "t"})
	full := wantCode(t, err, CodeAtCapacity)
	var waiting []<-chan asked
	for i := range 6 {
		waiting = append(waiting, w.ask(ctx))
		w.queued(i + 1)
	}
	_, err = w.m.Create(ctx, "", CreateRequest{TaskID: "t"})
	if e := wantCode(t, err, CodeAtCapacity); e.After <= full.After {
		t.Errorf("with six before it the caller is told to come after %v, with none %v", e.After, full.After)
	}
	for i, next := range waiting {
		if err := w.m.Delete(ctx, last[i].ID); err != nil {
			t.Fatal(err)
		}
		got := <-next
		if got.err != nil {
			t.Fatalf("in place %d: %v", i, got.err)
		}
		last = append(last, got.made)
		if c := w.m.Capacity(); c.Live != 2 || c.Queued != 5-i || c.Max != 2 {
			t.Errorf("after %d: %+v", i+1, c)
		}
	}
}

func TestWaitingForAPlaceEnds(t *testing.T) {
	w := crowded(t, 1)
	held := w.create()
	_, err := w.m.Create(context.Background(), "", CreateRequest{TaskID: "t", WaitS: 1})
	wantCode(t, err, CodeAtCapacity)
	ctx, cancel := context.WithCancel(context.Background())
	left := w.ask(ctx)
	w.queued(1)
	cancel()
	wantCode(t, (<-left).err, CodeInterrupted)
	w.queued(0)
	stopped := w.ask(context.Background())
	w.queued(1)
	if err := w.m.Drain(context.Background()); err != nil {
		t.Error(err)
	}
	wantCode(t, (<-stopped).err, CodeDraining)
	if c := w.m.Capacity(); c.Live != 1 || c.Queued != 0 || w.boxes() != 1 {
		t.Errorf("%+v with %d sandboxes beside %s", c, w.boxes(), held.ID)
	}
	_, err = w.m.Create(context.Background(), "", CreateRequest{TaskID: "t", WaitS: -1})
	wantCode(t, err, CodeInvalidField)
}

// A creation that fails gives its place to the next.
func TestAFailureGivesItsPlaceOn(t *testing.T) {
	var mu sync.Mutex
	fail, hold := false, make(chan struct{})
	w := newWorld(t, func(w *world) {
		w.opt.MaxRollouts = 1
		w.engine.OnCreate = func(context.Context, *sandboxtest.FakeSession, sandbox.Spec) error {
			mu.Lock()
			defer mu.Unlock()
			if fail {
				fail = false
				<-hold
				return errors.New("no luck")
			}
			return nil
		}
	})
	fail = true
	first := w.ask(context.Background())
	eventually(t, "it has the place", func() bool { return w.m.Capacity().Live == 1 })
	second := w.ask(context.Background())
	w.queued(1)
	close(hold)
	if got := <-first; got.err == nil {
		t.Error("the first came to be")
	}
	if got := <-second; got.err != nil {
		t.Error(got.err)
	}
}

// A retry under a key is the same request, however long it waits.
func TestPatienceIsNoPartOfAKeysRequest(t *testing.T) {
	w := crowded(t, 3)
	one, err := w.m.Create(context.Background(), "k", CreateRequest{TaskID: "t", Queue: true})
	two, again := w.m.Create(context.Background(), "k", CreateRequest{TaskID: "t", WaitS: 5})
	if err != nil || again != nil || one.ID != two.ID {
		t.Errorf("%v %v %s %s", err, again, one.ID, two.ID)
	}
}

// A large group and single creations share what becomes free: nobody is overtaken by more than the group
// has waiting before it.
func TestGroupsDoNotStarveOthers(t *testing.T) {
	w := crowded(t, 2)
	ctx := context.Background()
	group := make(chan error, 1)
	go func() {
		made, err := w.m.CreateGroup(ctx, "", GroupRequest{N: 40, CreateRequest: CreateRequest{TaskID: "t", Queue: true}})
		if err == nil && len(made.Failed) > 0 {
			err = errors.New(made.Failed[0].Detail)
		}
		group <- err
	}()
	w.queued(groupParallel) // two of ten have a place, and two more came for them
	single := w.ask(ctx)
	w.queued(groupParallel + 1)
	ended := 0
	for served := false; !served; {
		select {
		case got := <-single:
			if got.err != nil {
				t.Fatal(got.err)
			}
			served = true
		default:
			ended += w.endOne()
		}
	}
	if ended > 2*groupParallel {
		t.Errorf("served after %d ended, with %d before it", ended, groupParallel)
	}
	for done := false; !done; {
		select {
		case err := <-group:
			if err != nil {
				t.Error(err)
			}
			done = true
		default:
			w.endOne()
		}
	}
}

// endOne ends some rollout that runs, and gives how many it ended.
func (w *world) endOne() int {
	views, _, err := w.m.List(context.Background(), Filter{Status: StatusRunning, Limit: 1})
	if err != nil || len(views) == 0 || w.m.Delete(context.Background(), views[0].ID) != nil {
		time.Sleep(time.Millisecond)
		return 0
	}
	return 1
}

// Who deletes a rollout at the moment at which a listing first shows it frees its place.
func TestDeletedAsSoonAsItIsListed(t *testing.T) {
	w := crowded(t, 1)
	ctx := context.Background()
	for i := range 300 {
		got := w.ask(ctx)
		gone := false
		for made := false; !made || !gone; {
			views, _, err := w.m.List(ctx, Filter{Status: StatusRunning, Limit: 1})
			if err != nil {
				t.Fatal(err)
			}
			if len(views) == 1 {
				gone = w.m.Delete(ctx, views[0].ID) == nil
			}
			select {
			case a := <-got:
				if made = true; a.err != nil {
					t.Fatal(a.err)
				}
			default:
			}
		}
		if c := w.m.Capacity(); c.Live != 0 {
			t.Fatalf("after %d: %+v", i+1, c)
		}
	}
}

// Whatever comes and goes, there are never more rollouts than there may be, and all places are free again at
// the end.
func TestCapacityUnderAnything(t *testing.T) {
	const room = 4
	w := crowded(t, room)
	random := rand.New(rand.NewPCG(7, 7))
	var group sync.WaitGroup
	for range 120 {
		patience, leave, stay := random.IntN(2), random.IntN(4) == 0, time.Duration(random.IntN(3))*time.Millisecond
		group.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			if leave {
				ctx, cancel = context.WithTimeout(context.Background(), stay)
			}
			defer cancel()
			made, err := w.m.Create(ctx, "", CreateRequest{TaskID: "t", WaitS: 10 * patience})
			if c := w.m.Capacity(); c.Live > room || c.Live < 0 {
				t.Errorf("%+v", c)
			}
			if err != nil {
				var e *Error
				if !errors.As(err, &e) || e.Code != CodeAtCapacity && e.Code != CodeInterrupted {
					t.Error(err)
				}
				return
			}
			time.Sleep(stay)
			if err := w.m.Delete(context.Background(), made.ID); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	eventually(t, "all places are free", func() bool { return w.m.Capacity() == Capacity{Max: room} && w.boxes() == 0 })
}
