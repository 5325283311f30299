package rollouts

import (
	"context"
	"fmt"
	"testing"
	"time"

	"proctor/sandbox"
	"proctor/sandbox/sandboxtest"
	"proctor/tasks"
)

// slowEngine takes a while to remove a sandbox, as daemons do.
type slowEngine struct {
	sandbox.Engine
	take time.Duration
}

type slowSession struct {
	sandbox.Session
	take time.Duration
}

func (e slowEngine) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Session, error) {
	s, err := e.Engine.Create(ctx, spec)
	if err != nil {
		return nil, err
	}
	return slowSession{s, e.take}, nil
}

func (s slowSession) Close(ctx context.Context) error {
	time.Sleep(s.take)
	return s.Session.Close(ctx)
}

// An abort frees all sandboxes of a group within a second, running calls or not.
func TestAbortFreesAtOnce(t *testing.T) {
	w := newWorld(t)
	if err := w.m.Close(false); err != nil {
		t.Fatal(err)
	}
	w.opt.Engine = slowEngine{&sandboxtest.Fake{}, 250 * time.Millisecond}
	m, err := Open(context.Background(), w.opt)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Close(true); err != nil {
			t.Error(err)
		}
	}()
	made, err := m.CreateGroup(context.Background(), "", GroupRequest{CreateRequest: CreateRequest{TaskID: "t", Seed: 10}, N: 32})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	view, err := m.AbortGroup(context.Background(), made.ID)
	took := time.Since(began)
	if err != nil || view.Status != "done" || len(view.Rollouts) != 32 {
		t.Fatalf("%+v %v", view, err)
	}
	left, err := w.opt.Engine.List(context.Background())
	if err != nil || len(left) > 0 {
		t.Errorf("%d sandboxes are left: %v", len(left), err)
	}
	// One after another they would take 8 s; a busy machine is given more than the second it needs.
	if took > 4*time.Second {
		t.Errorf("the abort took %v", took)
	}
	for i, r := range view.Rollouts {
		v, err := m.Get(context.Background(), r.ID)
		if err != nil || v.StopReason != reasonAborted || v.Seed != int64(10+i) {
			t.Errorf("member %d: %+v %v", i, v, err)
		}
	}
	if _, err := m.AbortGroup(context.Background(), made.ID); err != nil {
		t.Errorf("a second abort: %v", err)
	}
	if _, err := m.AbortGroup(context.Background(), "g_none"); err == nil {
		t.Error("a group that is not there is aborted")
	}
}

// A group that needs fewer rewards than it has members ends the others once it has them.
func TestStragglersEnd(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	made, err := w.m.CreateGroup(ctx, "", GroupRequest{CreateRequest: CreateRequest{TaskID: "t"}, N: 4, Need: 2, Seeds: []int64{5, 6, 7, 8}})
	if err != nil {
		t.Fatal(err)
	}
	feed, err := w.m.WatchGroup(ctx, made.ID)
	if err != nil {
		t.Fatal(err)
	}
	if v := <-feed; v.Status != "running" || v.N != 4 || v.Need != 2 || v.TaskID != "t" {
		t.Errorf("at first %+v", v)
	}
	for i := range 2 {
		go func() {
			if _, err := w.m.Grade(ctx, made.Rollouts[i].ID, true); err != nil {
				t.Error(err)
			}
		}()
	}
	var last GroupView
	for v := range feed {
		last = v
	}
	if last.Status != "done" || last.Rewarded < 2 {
		t.Fatalf("at last %+v", last)
	}
	stragglers := 0
	for i, r := range last.Rollouts {
		v, err := w.m.Get(ctx, r.ID)
		if err != nil || v.Seed != int64(5+i) {
			t.Errorf("%+v %v", v, err)
		}
		if v.StopReason == reasonStraggler {
			stragglers++
		}
	}
	if stragglers != 2 {
		t.Errorf("%d stragglers were ended, want 2: %+v", stragglers, last)
	}
}

func TestGroupRefusals(t *testing.T) {
	w := newWorld(t)
	for _, req := range []GroupRequest{{N: 2, Need: 3}, {N: 2, Need: -1}, {N: 2, Seeds: []int64{1}}} {
		req.TaskID = "t"
		if _, err := w.m.CreateGroup(context.Background(), "", req); err == nil {
			t.Errorf("%+v is made", req)
		}
	}
	w.lab.prepare = func(context.Context, *tasks.Task) (Image, error) { return Image{}, fmt.Errorf("no such image") }
	if _, err := w.m.CreateGroup(context.Background(), "", GroupRequest{CreateRequest: CreateRequest{TaskID: "t"}, N: 2}); err == nil {
		t.Error("a group is made of an image that cannot be")
	}
}
