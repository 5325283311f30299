package rollouts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"proctor/monitor"
	"proctor/monitor/classifier"
	"proctor/monitor/normalize"
	"proctor/sandbox"
	"proctor/sandbox/sandboxtest"
	"proctor/tasks"

	"github.com/google/go-cmp/cmp"
)

func TestCreateGivesASandboxOfItsTask(t *testing.T) {
	w := newWorld(t)
	soft, group := false, "mine"
	made := w.create(func(r *CreateRequest) {
		r.Hardening, r.GroupID, r.Seed = &soft, &group, 3
		r.Policy = Policy{Name: "p", SizeB: 7}
		r.Limits = &tasks.Limits{Limits: sandbox.Limits{MemoryMB: 64}, LifetimeS: 60}
		r.Metadata = map[string]any{"step": 1.0}
	})
	if made.AgentToken == "" || made.TaskID != "t" || made.Instruction != "Fix it." || made.Workdir != "/testbed" || len(made.Tools) != len(monitor.Tools()) {
		t.Errorf("created %+v", made)
	}
	if made.Links["calls"] != "/v1/rollouts/"+made.ID+"/calls" {
		t.Errorf("links %v", made.Links)
	}
	spec := w.session(made.ID).Spec
	if spec.Image != "img-false" || spec.Workdir != "/testbed" || spec.Network.Mode != "none" || spec.Limits.MemoryMB != 64 ||
		spec.Limits.Lifetime != time.Minute || spec.Limits.Pids != sandbox.DefaultLimits().Pids {
		t.Errorf("spec %+v", spec)
	}
	v := w.view(made.ID)
	want := View{ID: made.ID, TaskID: "t", GroupID: &group, Policy: Policy{Name: "p", SizeB: 7}, Mode: "enforce", Preset: "balanced", Answers: "decoy", Status: StatusRunning,
		FailureClass: "none", Seed: 3, Metadata: map[string]any{"step": 1.0}, CreatedAt: w.clock.Now().UTC(),
		Digests: Digests{Image: "sha256:img", Packs: "sha256:packs", Prompt: "sha256:judge", Judge: "sha256:judge", Classifier: classifier.Core().Digest()}}
	if diff := cmp.Diff(want, v); diff != "" {
		t.Errorf("view (-want +got):\n%s", diff)
	}
}

// A classifier of one's own is pinned, and is the one that normalisers ask.
func TestOwnClassifier(t *testing.T) {
	own := classifier.Train([]classifier.Sample{
		{Document: classifier.Document{Text: "look up the answer"}, Hack: true, Class: "hidden_artifact"},
		{Document: classifier.Document{Text: "run the tests"}},
	}, nil)
	w := newWorld(t, func(w *world) { w.opt.Classifier, w.opt.Normalizer = own, nil })
	if got := w.view(w.create().ID).Digests.Classifier; got != own.Digest() || got == classifier.Core().Digest() {
		t.Errorf("the rollout is pinned to classifier %q, want %q", got, own.Digest())
	}
	call := normalize.Call{Tool: "bash", Command: "look up the answer"}
	ev := w.m.opt.Normalizer(normalize.Task{Workdir: "/"}, nil).Event(t.Context(), call)
	byCore := normalize.New(normalize.Task{Workdir: "/"}, nil).Event(t.Context(), call)
	if ev.Call.Suspicion == byCore.Call.Suspicion {
		t.Errorf("suspicion %g of both classifiers", ev.Call.Suspicion)
	}
}

func TestBadCreates(t *testing.T) {
	w := newWorld(t)
	empty := ""
	inline := json.RawMessage(`{"id": "x", "instruction": "i", "image": "img", "workdir": "/"}`)
	for name, c := range map[string]struct {
		req  CreateRequest
		code string
		says string
	}{
		"no task":             {CreateRequest{}, CodeInvalidField, "task_id"},
		"both tasks":          {CreateRequest{TaskID: "t", Task: inline}, CodeInvalidField, "task_id and task"},
		"unknown task":        {CreateRequest{TaskID: "nope"}, CodeTaskNotFound, "nope"},
		"unknown mode":        {CreateRequest{TaskID: "t", Mode: "on"}, CodeInvalidField, "enforce"},
		"unknown preset":      {CreateRequest{TaskID: "t", Preset: "hard"}, CodeInvalidField, "strict"},
		"empty group":         {CreateRequest{TaskID: "t", GroupID: &empty}, CodeInvalidField, "group_id"},
		"negative lease":      {CreateRequest{TaskID: "t", LeaseS: -1}, CodeInvalidField, "lease_s"},
		"endless lease":       {CreateRequest{TaskID: "t", LeaseS: 1 << 30}, CodeInvalidField, "lease_s"},
		"negative memory":     {CreateRequest{TaskID: "t", Limits: &tasks.Limits{Limits: sandbox.Limits{MemoryMB: -5}}}, CodeInvalidField, "limits.memory_mb"},
		"endless lifetime":    {CreateRequest{TaskID: "t", Limits: &tasks.Limits{LifetimeS: 1 << 30}}, CodeInvalidField, "limits.lifetime_s"},
		"inline task, broken": {CreateRequest{Task: json.RawMessage(`{"id": 5}`)}, CodeTaskInvalid, "field task"},
		"inline task, taken":  {CreateRequest{Task: json.RawMessage(`{"id": "t", "instruction": "i", "image": "img", "workdir": "/"}`)}, CodeTaskInvalid, `"t"`},
		"no such image":       {CreateRequest{Task: json.RawMessage(`{"id": "y", "instruction": "i", "image": "no-such", "workdir": "/"}`)}, CodeImageNotFound, "sandbox"},
	} {
		_, err := w.m.Create(context.Background(), "", c.req)
		if e := wantCode(t, err, c.code); !strings.Contains(e.Error(), c.says) {
			t.Errorf("%s: %q does not name %q", name, e, c.says)
		}
	}
	if _, err := w.m.Create(context.Background(), "", CreateRequest{Task: inline}); err != nil {
		t.Errorf("an inline task of four fields: %v", err)
	}
	if w.boxes() != 1 {
		t.Errorf("%d sandboxes, want the one of the good request", w.boxes())
	}
}

func TestOneKeyCreatesOneRollout(t *testing.T) {
	w := newWorld(t)
	var creates atomic.Int32
	w.engine.OnCreate = func(context.Context, *sandboxtest.FakeSession, sandbox.Spec) error {
		creates.Add(1)
		time.Sleep(20 * time.Millisecond)
		return nil
	}
	made := make([]Created, 8)
	var wg sync.WaitGroup
	for i := range made {
		wg.Go(func() {
			var err error
			if made[i], err = w.m.Create(context.Background(), "k", CreateRequest{TaskID: "t"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	w.crash()
	after, err := w.m.Create(context.Background(), "k", CreateRequest{TaskID: "t"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range append(made, after) {
		if diff := cmp.Diff(made[0], c, cmp.Comparer(bytes.Equal)); diff != "" {
			t.Errorf("answers differ:\n%s", diff)
		}
	}
	if creates.Load() != 1 || w.boxes() != 1 {
		t.Errorf("%d creations and %d sandboxes, want 1", creates.Load(), w.boxes())
	}
	if !w.m.Authenticate(made[0].ID, after.AgentToken) {
		t.Error("the token given again does not open the rollout")
	}
	_, err = w.m.Create(context.Background(), "k", CreateRequest{TaskID: "t", Seed: 1})
	wantCode(t, err, CodeConflict)
}

func TestAFailedCreateLeavesNothing(t *testing.T) {
	w := newWorld(t)
	fail := errors.New("broken")
	stages := map[string]struct {
		set  func(err error)
		code string
	}{
		"prepare": {func(err error) {
			w.lab.prepare = nil
			if err != nil {
				w.lab.prepare = func(context.Context, *tasks.Task) (Image, error) { return Image{}, err }
			}
		}, CodePrepareFailed},
		"engine": {func(err error) {
			w.engine.OnCreate = func(context.Context, *sandboxtest.FakeSession, sandbox.Spec) error { return err }
		}, CodeEngine},
		"verify": {func(err error) { w.lab.verify = func() error { return err } }, CodePrepareFailed},
	}
	for name, stage := range stages {
		stage.set(fail)
		_, err := w.m.Create(context.Background(), "k-"+name, CreateRequest{TaskID: "t"})
		wantCode(t, err, stage.code)
		views, _, err := w.m.List(context.Background(), Filter{})
		if err != nil || len(views) != 0 || w.boxes() != 0 {
			t.Errorf("%s: %d rollouts listed and %d sandboxes, %v; want none", name, len(views), w.boxes(), err)
		}
		stage.set(nil)
		made, err := w.m.Create(context.Background(), "k-"+name, CreateRequest{TaskID: "t"})
		if err != nil {
			t.Fatalf("%s: a retry with the same key: %v", name, err)
		}
		if err := w.m.Delete(context.Background(), made.ID); err != nil {
			t.Fatal(err)
		}
		if err := w.store.DropRollout(context.Background(), made.ID); err != nil {
			t.Fatal(err)
		}
	}
	for cause, code := range map[error]string{sandbox.ErrNoShell: CodeImageNoShell, sandbox.ErrUnavailable: CodeEngine, sandbox.ErrCapacity: CodeAtCapacity} {
		stages["engine"].set(fmt.Errorf("%w: why", cause))
		_, err := w.m.Create(context.Background(), "", CreateRequest{TaskID: "t"})
		wantCode(t, err, code)
	}
}

func TestACancelledCreateLeavesNothing(t *testing.T) {
	for _, key := range []string{"", "k"} {
		w := newWorld(t)
		ctx, cancel := context.WithCancel(context.Background())
		entered := make(chan struct{})
		w.engine.OnCreate = func(ctx context.Context, _ *sandboxtest.FakeSession, _ sandbox.Spec) error {
			close(entered)
			<-ctx.Done()
			return nil // an engine that finishes all the same
		}
		go func() { <-entered; cancel() }()
		_, err := w.m.Create(ctx, key, CreateRequest{TaskID: "t"})
		wantCode(t, err, CodeInterrupted)
		eventually(t, "nothing is left", func() bool {
			views, _, err := w.m.List(context.Background(), Filter{})
			return err == nil && len(views) == 0 && w.boxes() == 0
		})
		w.engine.OnCreate = nil
		eventually(t, "a retry makes it", func() bool {
			_, err := w.m.Create(context.Background(), key, CreateRequest{TaskID: "t"})
			return err == nil
		})
	}
}

func TestCapacity(t *testing.T) {
	w := newWorld(t, func(w *world) { w.opt.MaxRollouts = 2 })
	first := w.create()
	w.create()
	_, err := w.m.Create(context.Background(), "k", CreateRequest{TaskID: "t"})
	if e := wantCode(t, err, CodeAtCapacity); !e.Retry || e.After <= 0 {
		t.Errorf("%+v does not say when to come back", e)
	}
	if err := w.m.Delete(context.Background(), first.ID); err != nil {
		t.Fatal(err)
	}
	if _, err = w.m.Create(context.Background(), "k", CreateRequest{TaskID: "t"}); err != nil {
		t.Errorf("after a delete: %v", err)
	}
}

func TestGroups(t *testing.T) {
	w := newWorld(t)
	req := GroupRequest{CreateRequest: CreateRequest{TaskID: "t"}, N: 4}
	var wg sync.WaitGroup
	made := make([]GroupCreated, 4)
	for i := range made {
		wg.Go(func() {
			var err error
			if made[i], err = w.m.CreateGroup(context.Background(), "k", req); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	w.crash()
	after, err := w.m.CreateGroup(context.Background(), "k", req)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range append(made, after) {
		if diff := cmp.Diff(made[0], g, cmp.Comparer(bytes.Equal)); diff != "" {
			t.Errorf("answers differ:\n%s", diff)
		}
	}
	g := made[0]
	if len(g.Rollouts) != 4 || len(g.Failed) != 0 || w.boxes() != 4 {
		t.Fatalf("%d rollouts, %d failed, %d sandboxes", len(g.Rollouts), len(g.Failed), w.boxes())
	}
	w.do(g.Rollouts[1].ID, bash(t, "", "echo CHEAT"))
	view, err := w.m.Group(context.Background(), g.ID, 0)
	if err != nil || view.Status != "running" || view.HackRate != 0.25 || view.Rollouts[1].Blocked != 1 || view.Rollouts[0].ID != g.Rollouts[0].ID {
		t.Errorf("%+v, %v", view, err)
	}
	done := make(chan GroupView, 1)
	go func() {
		v, err := w.m.Group(context.Background(), g.ID, 30)
		if err != nil {
			t.Error(err)
		}
		done <- v
	}()
	for _, r := range g.Rollouts {
		if _, err := w.m.Grade(context.Background(), r.ID, true); err != nil {
			t.Fatal(err)
		}
	}
	if v := <-done; v.Status != "done" || *v.Rollouts[3].Reward != 1 {
		t.Errorf("%+v", v)
	}
	for name, bad := range map[string]func() error{
		"n 0": func() error {
			_, err := w.m.CreateGroup(context.Background(), "", GroupRequest{CreateRequest: req.CreateRequest})
			return err
		},
		"group_id": func() error {
			r := req
			r.GroupID = &g.ID
			_, err := w.m.CreateGroup(context.Background(), "", r)
			return err
		},
	} {
		if e := wantCode(t, bad(), CodeInvalidField); e == nil {
			t.Error(name)
		}
	}
	req.N = 3
	_, err = w.m.CreateGroup(context.Background(), "k", req)
	wantCode(t, err, CodeConflict)
	_, err = w.m.Group(context.Background(), "g_none", 0)
	wantCode(t, err, CodeNotFound)
}

func TestAGroupThatIsMadeInPart(t *testing.T) {
	w := newWorld(t, func(w *world) { w.opt.MaxRollouts = 3 })
	g, err := w.m.CreateGroup(context.Background(), "", GroupRequest{CreateRequest: CreateRequest{TaskID: "t"}, N: 5})
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Rollouts) != 3 || len(g.Failed) != 2 || g.Failed[0].Code != CodeAtCapacity {
		t.Errorf("%d made, failed %+v", len(g.Rollouts), g.Failed)
	}
	_, err = w.m.CreateGroup(context.Background(), "k", GroupRequest{CreateRequest: CreateRequest{TaskID: "t"}, N: 2})
	wantCode(t, err, CodeAtCapacity)
	if ids, err := w.store.GroupIDs(context.Background()); err != nil || len(ids) != 1 {
		t.Errorf("groups %v, %v; one that was not made at all is left", ids, err)
	}
}
