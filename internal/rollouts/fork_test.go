package rollouts

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"proctor/internal/store"
	"proctor/monitor"
	"proctor/sandbox"
	"proctor/sandbox/sandboxtest"

	"github.com/google/go-cmp/cmp"
)

// fork makes n forks of a rollout, which must come to be.
func (w *world) fork(id string, req ForkRequest) GroupCreated {
	w.t.Helper()
	made, err := w.m.Fork(context.Background(), id, "", req)
	if err != nil {
		w.t.Fatal(err)
	}
	if len(made.Rollouts) != req.N || len(made.Failed) != 0 {
		w.t.Fatalf("made %+v", made)
	}
	return made
}

// images lists the snapshots' images that the engine has.
func (w *world) images() []string {
	refs, _ := w.engine.Snapshots(context.Background())
	return refs
}

// outline gives ordinals, origins, arguments and answers of a trajectory.
func outline(tr *Trajectory) []string {
	var lines []string
	for _, c := range tr.Calls {
		shown := "none"
		if c.Observation != nil {
			shown = strings.TrimSpace(c.Observation.Output)
		}
		lines = append(lines, fmt.Sprintf("%d %s %s %s", c.Ordinal, c.Origin, c.Arguments, shown))
	}
	return lines
}

func TestForksShareFilesAndRecord(t *testing.T) {
	w := newWorld(t)
	made := w.create(func(r *CreateRequest) {
		r.Policy, r.Metadata, r.Seed = Policy{Name: "p", BaseURL: "http://x/v1", APIKey: "secret"}, map[string]any{"a": 1.0}, 4
	})
	w.session(made.ID).SetFile("/proc/self/environ", []byte("A=it's\x00B=2\x00_=x\x00SHLVL=1\x00no name=1\x00BASH_ENV=x\x00BASH_FUNC_f%%=() { :; }\x00"))
	w.do(made.ID, tool(t, "k1", "create", map[string]any{"path": "/f", "file_text": "shared\n"}))
	w.do(made.ID, bash(t, "k2", "cd /else"))
	w.do(made.ID, bash(t, "k3", "echo CHEAT"))
	forks := w.fork(made.ID, ForkRequest{N: 2})
	w.do(made.ID, bash(t, "k4", "echo parent"))
	w.do(made.ID, tool(t, "k5", "create", map[string]any{"path": "/f", "file_text": "parent's\n"}))

	for i, f := range forks.Rollouts {
		s := w.session(f.ID)
		if s.Spec.Image != forks.Snapshot.Image || s.Spec.Env["A"] != "" || string(s.File("/f")) != "shared\n" {
			t.Errorf("the fork's sandbox: %+v holds %q", s.Spec, s.File("/f"))
		}
		if first := s.Calls()[0].Command; first != "export A='it'\\''s'\nexport B='2'\ncd -- '/else'\n" {
			t.Errorf("typed into the shell: %q", first)
		}
		w.do(f.ID, bash(t, "k1", fmt.Sprint("echo own ", i))) // a key of the parent's is free here
		want := []string{`1 ` + made.ID + ` {"file_text":"shared\n","path":"/f"} created /f`, `2 ` + made.ID + ` {"command":"cd /else"} `,
			`3 ` + made.ID + ` {"command":"echo CHEAT"} No such file or directory`, fmt.Sprintf(`4  {"command":"echo own %d"} own %d`, i, i)}
		if diff := cmp.Diff(want, outline(w.trajectory(f.ID))); diff != "" {
			t.Errorf("fork %d (-want +got):\n%s", i, diff)
		}
		v := w.view(f.ID)
		if v.Seed != 4+int64(i) || v.Policy.Name != "p" || v.Metadata["a"] != 1.0 || *v.GroupID != forks.ID || v.Calls != 4 || v.Blocked != 1 ||
			v.Fork.RolloutID != made.ID || v.Fork.Ordinal != 3 || v.Fork.Snapshot != forks.Snapshot.ID {
			t.Errorf("view %+v", v)
		}
		if !w.m.Authenticate(f.ID, f.AgentToken) || w.m.Authenticate(f.ID, made.AgentToken) {
			t.Error("a fork has a token of its own")
		}
		if target, err := w.m.Model(context.Background(), f.ID); err != nil || target.APIKey != "secret" {
			t.Errorf("where its model calls go: %+v %v", target, err)
		}
	}
	if got := w.norm.Load().seen(); !strings.Contains(got, "cd /else true") {
		t.Errorf("the fork's normaliser followed %q", got)
	}
	if got := w.trajectory(made.ID); len(got.Calls) != 5 || got.Calls[0].Origin != "" {
		t.Errorf("the parent's record: %v", outline(got))
	}
	events := w.events(forks.Rollouts[0].ID)
	if want := []string{"created", "call", "call", "call", "forked", "call"}; !slices.Equal(events, want) {
		t.Errorf("events %v, want %v", events, want)
	}
}

// events gives the kinds of a rollout's events so far, which have no gaps.
func (w *world) events(id string) []string {
	w.t.Helper()
	all, err := w.m.eventsAfter(context.Background(), id, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	var kinds []string
	for i, e := range all {
		if e.Number != int64(i+1) {
			w.t.Errorf("event %d has number %d", i+1, e.Number)
		}
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

func TestForksOutliveACrashAndTheirParent(t *testing.T) {
	w := newWorld(t)
	made := w.create()
	w.do(made.ID, bash(t, "", "echo one"))
	fork := w.fork(made.ID, ForkRequest{N: 1}).Rollouts[0]
	w.do(fork.ID, bash(t, "", "echo two"))
	grand := w.fork(fork.ID, ForkRequest{N: 1}).Rollouts[0]
	if err := w.m.Delete(context.Background(), made.ID); err != nil {
		t.Fatal(err)
	}
	before := outline(w.trajectory(grand.ID))
	w.crash()
	w.do(grand.ID, bash(t, "", "echo three"))
	got := outline(w.trajectory(grand.ID))
	want := []string{`1 ` + made.ID + ` {"command":"echo one"} one`, `2 ` + fork.ID + ` {"command":"echo two"} two`, `3  {"command":"echo three"} three`}
	if diff := cmp.Diff(want, got); diff != "" || !slices.Equal(before, want[:2]) {
		t.Errorf("after the crash (-want +got):\n%s", diff)
	}
	if n := len(w.images()); n != 2 {
		t.Errorf("%d images with two forks alive", n)
	}
	for i, id := range []string{fork.ID, grand.ID} {
		if err := w.m.Delete(context.Background(), id); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the snapshot goes with its fork", func() bool { return len(w.images()) == 1-i })
	}
	if w.boxes() != 0 {
		t.Errorf("%d sandboxes left", w.boxes())
	}
}

func TestSnapshotsAreKeptUntilDroppedOrTheEnd(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	made := w.create()
	var taken []Snapshot
	for range 3 {
		w.do(made.ID, bash(t, "", "echo x"))
		s, err := w.m.Snapshot(ctx, made.ID)
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, s)
	}
	if all, err := w.m.Snapshots(ctx, made.ID); err != nil || len(all) != 3 || all[1].Ordinal != 2 {
		t.Errorf("listed %+v %v", all, err)
	}
	fork := w.fork(made.ID, ForkRequest{N: 1, Snapshot: taken[0].ID}).Rollouts[0]
	if tr := w.trajectory(fork.ID); len(tr.Calls) != 1 {
		t.Errorf("a fork of the first snapshot begins with %v", outline(tr))
	}
	if err := w.m.DropSnapshot(ctx, made.ID, taken[0].ID); err != nil {
		t.Fatal(err)
	}
	if len(w.images()) != 3 {
		t.Errorf("images %v: the fork still needs the one that was dropped", w.images())
	}
	wantCode(t, w.m.DropSnapshot(ctx, made.ID, taken[0].ID), CodeInvalidField)
	if err := w.m.DropSnapshot(ctx, made.ID, taken[1].ID); err != nil || len(w.images()) != 2 {
		t.Errorf("%v, images %v", err, w.images())
	}
	w.crash()
	if all, err := w.m.Snapshots(ctx, made.ID); err != nil || len(all) != 1 || all[0].ID != taken[2].ID || len(w.images()) != 2 {
		t.Errorf("after a crash: %+v %v, images %v", all, err, w.images())
	}
	late := w.fork(made.ID, ForkRequest{N: 1, Snapshot: taken[2].ID}).Rollouts[0]
	for _, id := range []string{made.ID, fork.ID, late.ID} {
		if err := w.m.Delete(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	if len(w.images()) != 0 {
		t.Errorf("images left: %v", w.images())
	}
}

// A snapshot waits for the call that runs; what runs beside is interrupted in the fork and goes on in its
// parent.
func TestForkWithCallsUnderWay(t *testing.T) {
	g := hold()
	w := newWorld(t, func(w *world) {
		w.engine.OnDo = func(ctx context.Context, s *sandboxtest.FakeSession, call sandbox.Call) (sandbox.Result, error) {
			if call.Op == sandbox.OpOutput && call.Handle == "shell" {
				call.Command = "wait"
			}
			return g.answer(ctx, s, call)
		}
	})
	made := w.create()
	poll := w.later(made.ID, tool(t, "p", monitor.ToolBashOutput, map[string]any{"handle": "shell", "wait_s": 60}))
	<-g.started
	made2 := w.fork(made.ID, ForkRequest{N: 1})
	tr := w.trajectory(made2.Rollouts[0].ID)
	if len(tr.Calls) != 1 || tr.Calls[0].Observation != nil || !strings.Contains(tr.Calls[0].Error, "forked") {
		t.Errorf("in the fork: %+v", tr.Calls[0])
	}
	running := w.later(made.ID, bash(t, "", "wait"))
	<-g.started
	done := make(chan error, 1)
	go func() { _, err := w.m.Snapshot(context.Background(), made.ID); done <- err }()
	select {
	case <-done:
		t.Error("a snapshot did not wait for the call that ran")
	case <-time.After(30 * time.Millisecond):
	}
	close(g.release)
	for _, c := range []<-chan error{poll, running, done} {
		if err := <-c; err != nil {
			t.Error(err)
		}
	}
	if got := w.trajectory(made.ID).Calls[0]; got.Observation == nil {
		t.Errorf("in the parent: %+v", got)
	}
}

func TestForkIsIdempotent(t *testing.T) {
	w := newWorld(t)
	made := w.create()
	first, err := w.m.Fork(context.Background(), made.ID, "key", ForkRequest{N: 2})
	if err != nil {
		t.Fatal(err)
	}
	w.crash()
	again, err := w.m.Fork(context.Background(), made.ID, "key", ForkRequest{N: 2})
	if diff := cmp.Diff(first, again); diff != "" || err != nil || w.boxes() != 3 {
		t.Errorf("%v, %d sandboxes (-first +again):\n%s", err, w.boxes(), diff)
	}
	_, err = w.m.Fork(context.Background(), made.ID, "key", ForkRequest{N: 1})
	wantCode(t, err, CodeConflict)
}

func TestForksThatCannotBe(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	made, ended := w.create(), w.create()
	if err := w.m.Submit(ctx, ended.ID); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		id, code string
		req      ForkRequest
	}{
		"none":         {made.ID, CodeInvalidField, ForkRequest{}},
		"too many":     {made.ID, CodeInvalidField, ForkRequest{N: 513}},
		"seeds":        {made.ID, CodeInvalidField, ForkRequest{N: 2, Seeds: []int64{1}}},
		"lease":        {made.ID, CodeInvalidField, ForkRequest{N: 1, LeaseS: -1}},
		"policy":       {made.ID, CodeInvalidField, ForkRequest{N: 1, Policy: &Policy{BaseURL: "no url"}}},
		"no snapshot":  {made.ID, CodeInvalidField, ForkRequest{N: 1, Snapshot: "s_none"}},
		"no rollout":   {"r_none", CodeNotFound, ForkRequest{N: 1}},
		"it has ended": {ended.ID, CodeEnded, ForkRequest{N: 1}},
	} {
		_, err := w.m.Fork(ctx, row.id, "", row.req)
		t.Run(name, func(t *testing.T) { wantCode(t, err, row.code) })
	}
	if w.boxes() != 2 || len(w.images()) != 0 {
		t.Errorf("%d sandboxes, images %v", w.boxes(), w.images())
	}
	w.engine.OnCreate = func(context.Context, *sandboxtest.FakeSession, sandbox.Spec) error { return sandbox.ErrCapacity }
	_, err := w.m.Fork(ctx, made.ID, "", ForkRequest{N: 3})
	wantCode(t, err, CodeAtCapacity)
	if len(w.images()) != 0 {
		t.Errorf("images of forks that did not come to be: %v", w.images())
	}
	rows, err := w.store.Rollouts(ctx, store.Filter{})
	if err != nil || len(rows) != 2 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

// Forks, snapshots and ends at once: no deadlock, nothing left.
func TestForksAtOnce(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	made := w.create()
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			f, err := w.m.Fork(ctx, made.ID, "", ForkRequest{N: 2})
			if err != nil {
				t.Error(err)
				return
			}
			for _, r := range f.Rollouts {
				if _, err := w.m.Call(ctx, r.ID, bash(t, "", "echo x")); err != nil {
					t.Error(err)
				}
			}
			if i%2 == 0 {
				if _, err := w.m.AbortGroup(ctx, f.ID); err != nil {
					t.Error(err)
				}
			}
		})
		group.Go(func() { _, _ = w.m.Call(ctx, made.ID, bash(t, "", "echo y")) })
	}
	group.Wait()
	views, _, err := w.m.List(ctx, Filter{Status: StatusRunning, Limit: 100})
	if err != nil || len(views) != 9 {
		t.Errorf("%d run, %v", len(views), err)
	}
	for _, v := range views {
		if err := w.m.Delete(ctx, v.ID); err != nil {
			t.Error(err)
		}
	}
	if w.boxes() != 0 || len(w.images()) != 0 {
		t.Errorf("%d sandboxes, images %v", w.boxes(), w.images())
	}
}

func TestForkDocumentsHoldNoSecretOfTheParent(t *testing.T) {
	w := newWorld(t)
	made := w.create()
	s, err := w.m.Snapshot(context.Background(), made.ID)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(s)
	if strings.Contains(string(text), "env") || strings.Contains(string(text), "event") {
		t.Errorf("a snapshot as told: %s", text)
	}
}
