package rollouts

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"proctor/internal/trajectory"
	"proctor/monitor"
	"proctor/sandbox"
	"proctor/tasks"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestListingsGoByPages(t *testing.T) {
	w := newWorld(t)
	var want []string
	for i := range 5 {
		req := func(r *CreateRequest) { r.TaskID = []string{"t", "bare"}[i%2] }
		want = append([]string{w.create(req).ID}, want...)
	}
	var got []string
	for cursor := ""; ; {
		views, next, err := w.m.List(context.Background(), Filter{Limit: 2, Cursor: cursor})
		if err != nil || len(views) > 2 {
			t.Fatal(len(views), err)
		}
		for _, v := range views {
			got = append(got, v.ID)
		}
		if next == "" {
			break
		}
		cursor = next
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
	if err := w.m.Delete(context.Background(), want[0]); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		f    Filter
		want int
	}{{Filter{TaskID: "t"}, 3}, {Filter{Status: StatusDeleted}, 1}, {Filter{Status: StatusRunning, TaskID: "t"}, 2}, {Filter{GroupID: "g"}, 0}} {
		if views, _, err := w.m.List(context.Background(), c.f); err != nil || len(views) != c.want {
			t.Errorf("List(%+v) gives %d, %v; want %d", c.f, len(views), err, c.want)
		}
	}
	_, _, err := w.m.List(context.Background(), Filter{Cursor: "x"})
	wantCode(t, err, CodeInvalidField)
}

// TestTheTrajectorysForm pins the keys of the document, which outside programs read.
func TestTheTrajectorysForm(t *testing.T) {
	w := newWorld(t)
	id := w.create().ID
	w.do(id, bash(t, "", "echo CHEAT"))
	w.do(id, bash(t, "", "echo ODD"))
	if _, err := w.m.Grade(context.Background(), id, true); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := w.m.Export(context.Background(), id, &out); err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"": "calls grade guard model_calls rollout schema segments", "rollout.digests": "classifier image judge packs prompt",
		"calls":               "args_sha256 arguments call_id duration_ms event name observation ordinal original principal started_at verdict witness",
		"calls.verdict":       "action class decision decoy evidence hack hits opinion tainted",
		"calls.verdict.decoy": "family how sha256",
		"calls.observation":   "call_id exit_code handle output timed_out truncated",
		"rollout":             "answers calls blocked created_at digests ended_at failure_class flagged group_id hacks hardening id mode outcome policy preset reward seed status stop_reason task_id",
	}
	for at, keys := range want {
		node := doc
		for _, part := range strings.Split(at, ".") {
			switch next := node[part].(type) {
			case map[string]any:
				node = next
			case []any:
				node = next[0].(map[string]any)
			}
		}
		var got []string
		for k := range node {
			got = append(got, k)
		}
		slices.Sort(got)
		wanted := strings.Fields(keys)
		slices.Sort(wanted)
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("keys of %q (-want +got):\n%s", at, diff)
		}
	}
	if doc["schema"] != "proctor.trajectory/1" || cmp.Diff(doc["segments"], []any{}) != "" {
		t.Errorf("schema %v, segments %v", doc["schema"], doc["segments"])
	}
	second := doc["calls"].([]any)[1].(map[string]any)["verdict"].(map[string]any)
	if o, ok := second["opinion"].(map[string]any); !ok || o["verdict"] != "benign" || second["decoy"] != nil {
		t.Errorf("the second call's verdict is %v", second)
	}
	if err := w.m.Export(context.Background(), "r_none", &out); err == nil {
		t.Error("an unknown rollout is exported")
	}
}

func TestVerdictsAndReviews(t *testing.T) {
	w := newWorld(t)
	id, other := w.create().ID, w.create().ID
	w.do(id, bash(t, "", "echo fine"))
	w.do(id, bash(t, "", "echo CHEAT"))
	w.do(id, bash(t, "", "echo ODD"))
	if err := w.m.AddReview(context.Background(), id, 2, Review{Label: "unsure"}); err != nil {
		t.Fatal(err)
	}
	if err := w.m.AddReview(context.Background(), id, 2, Review{Label: "hack", Note: "clear"}); err != nil {
		t.Fatal(err)
	}
	views, err := w.m.Verdicts(context.Background(), id)
	if err != nil || len(views) != 2 || views[0].Ordinal != 2 || views[1].Ordinal != 3 {
		t.Fatalf("%+v, %v", views, err)
	}
	if r := views[0].Review; r == nil || r.Label != "hack" || r.Note != "clear" || r.At.IsZero() || views[1].Review != nil {
		t.Errorf("reviews %+v, %+v", views[0].Review, views[1].Review)
	}
	if views, err := w.m.Verdicts(context.Background(), other); err != nil || len(views) != 0 {
		t.Errorf("another rollout's verdicts: %+v, %v", views, err)
	}
	wantCode(t, w.m.AddReview(context.Background(), id, 9, Review{Label: "hack"}), CodeNotFound)
	wantCode(t, w.m.AddReview(context.Background(), "r_none", 1, Review{Label: "hack"}), CodeNotFound)
	wantCode(t, w.m.AddReview(context.Background(), id, 2, Review{Label: "bad"}), CodeInvalidField)
	_, err = w.m.Verdicts(context.Background(), "r_none")
	wantCode(t, err, CodeNotFound)
}

// collect reads a feed to its end.
func collect(t *testing.T, feed <-chan Event, n int) []string {
	t.Helper()
	var got []string
	timeout := time.After(10 * time.Second)
	for n < 0 || len(got) < n {
		select {
		case e, open := <-feed:
			if !open {
				return got
			}
			got = append(got, fmt.Sprint(e.Number, " ", e.Kind))
		case <-timeout:
			t.Fatalf("the feed stands still after %v", got)
		}
	}
	return got
}

func TestEventsAreLiveAndCanBeTakenUpAgain(t *testing.T) {
	w := newWorld(t)
	id := w.create().ID
	feed, err := w.m.Events(context.Background(), id, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := collect(t, feed, 1); got[0] != "1 created" {
		t.Errorf("%v", got)
	}
	for i := range 100 { // more than one page
		w.do(id, bash(t, "", fmt.Sprint("echo ", i)))
	}
	w.crash()
	w.do(id, tool(t, "", "submit", nil))
	if _, err := w.m.Grade(context.Background(), id, true); err != nil {
		t.Fatal(err)
	}
	again, err := w.m.Events(context.Background(), id, 99)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"100 call", "101 call", "102 call", "103 submitted", "104 graded"}
	if diff := cmp.Diff(want, collect(t, again, -1)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	ctx, cancel := context.WithCancel(context.Background())
	quiet, err := w.m.Events(ctx, w.create().ID, 1)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if got := collect(t, quiet, -1); len(got) != 0 {
		t.Errorf("a feed that was left gave %v", got)
	}
	_, err = w.m.Events(context.Background(), "r_none", 0)
	wantCode(t, err, CodeNotFound)
}

func TestCheckExplainsWithoutRunning(t *testing.T) {
	w := newWorld(t)
	for text, want := range map[string]string{"echo fine": monitor.Allow, "echo CHEAT": monitor.Block} {
		e, err := w.m.Check(context.Background(), "t", bash(t, "", text))
		if err != nil || e.Decision != want || e.Event.Call.Text != text {
			t.Errorf("%s: %+v, %v", text, e, err)
		}
	}
	if w.boxes() != 0 {
		t.Error("a sandbox was made")
	}
	_, err := w.m.Check(context.Background(), "none", bash(t, "", "true"))
	wantCode(t, err, CodeTaskNotFound)
}

func TestTasksAndReadiness(t *testing.T) {
	w := newWorld(t)
	if list := w.m.Tasks(context.Background()); len(list) != 2 || list[0].ID != "t" {
		t.Errorf("%v", list)
	}
	if task, err := w.m.Task(context.Background(), "bare"); err != nil || task.ID != "bare" {
		t.Errorf("%v, %v", task, err)
	}
	_, err := w.m.Task(context.Background(), "none")
	wantCode(t, err, CodeTaskNotFound)
	if err := w.m.Ready(context.Background()); err != nil {
		t.Error(err)
	}
	w.engine.Down = fmt.Errorf("stopped")
	wantCode(t, w.m.Ready(context.Background()), CodeEngine)
	w.engine.Down = nil
}

func TestRolloutsSeeNothingOfOneAnother(t *testing.T) {
	w := newWorld(t)
	a, b := w.create().ID, w.create().ID
	w.do(a, tool(t, "", "create", map[string]any{"path": "secret", "file_text": "of a"}))
	if obs := w.do(b, bash(t, "", "cat secret")); strings.Contains(obs.Output, "of a") {
		t.Errorf("b reads a's file: %q", obs.Output)
	}
	for _, id := range []string{a, b} {
		if n := len(w.trajectory(id).Calls); n != 1 {
			t.Errorf("%s has %d calls", id, n)
		}
	}
}

func TestMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	w := newWorld(t, func(w *world) {
		var err error
		if w.opt.Observer, err = Metrics(reg); err != nil {
			t.Fatal(err)
		}
	})
	id := w.create().ID
	w.do(id, bash(t, "", "echo fine"))
	w.do(id, bash(t, "", "echo CHEAT"))
	w.do(id, bash(t, "", "echo ODD"))
	if _, err := w.m.Grade(context.Background(), id, true); err != nil {
		t.Fatal(err)
	}
	want := `
# HELP proctor_calls_total Calls recorded.
# TYPE proctor_calls_total counter
proctor_calls_total{action="decoyed",decision="block",principal="agent",tool="bash"} 1
proctor_calls_total{action="executed",decision="allow",principal="agent",tool="bash"} 2
# HELP proctor_grades_total Gradings by outcome.
# TYPE proctor_grades_total counter
proctor_grades_total{outcome="resolved"} 1
# HELP proctor_judge_opinions_total Opinions of the judge.
# TYPE proctor_judge_opinions_total counter
proctor_judge_opinions_total{failure="",verdict="benign"} 1
# HELP proctor_rollouts_created_total Rollouts made.
# TYPE proctor_rollouts_created_total counter
proctor_rollouts_created_total{mode="enforce"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "proctor_calls_total", "proctor_grades_total",
		"proctor_judge_opinions_total", "proctor_rollouts_created_total"); err != nil {
		t.Error(err)
	}
	if _, err := Metrics(reg); err == nil {
		t.Error("the same metrics twice gave no error")
	}
}

func TestLimitsOfARequestGoOverTheTasks(t *testing.T) {
	task := tasks.Limits{LifetimeS: 100}
	task.CPUs, task.Pids = 2, 99
	over := &tasks.Limits{}
	over.Pids = 50
	got := mergeLimits(task, over)
	if got.CPUs != 2 || got.Pids != 50 || got.Lifetime != 100*time.Second || got.MemoryMB != 2048 {
		t.Errorf("%+v", got)
	}
}

// TestEveryRecordHoldsItsRules exports rollouts of every kind and end.
func TestEveryRecordHoldsItsRules(t *testing.T) {
	w := newWorld(t)
	var ids []string
	for _, mode := range []string{monitor.Enforce, monitor.Shadow, monitor.Off} {
		for _, end := range []string{"runs", "graded", "deleted", "killed", "lost", "crashed"} {
			id := w.create(func(r *CreateRequest) { r.Mode = mode }).ID
			ids = append(ids, id)
			w.do(id, bash(t, "", "echo fine"))
			w.do(id, bash(t, "k", "echo CHEAT"))
			w.do(id, bash(t, "", "echo ODD"))
			if _, err := w.m.Exec(context.Background(), id, sandbox.Exec{Argv: []string{"true"}}); err != nil {
				t.Fatal(err)
			}
			switch end {
			case "graded":
				if _, err := w.m.Grade(context.Background(), id, true); err != nil {
					t.Fatal(err)
				}
			case "deleted":
				if err := w.m.Delete(context.Background(), id); err != nil {
					t.Fatal(err)
				}
			case "killed", "lost":
				w.session(id).Die(map[string]string{"killed": classModel, "lost": classInfra}[end], "why")
				_, err := w.m.Call(context.Background(), id, bash(t, "", "true"))
				wantCode(t, err, CodeSandboxDead)
				eventually(t, "it is buried", func() bool { return w.m.find(id) == nil })
			case "crashed":
				w.crash()
			}
		}
	}
	for _, id := range ids {
		var out bytes.Buffer
		if err := w.m.Export(context.Background(), id, &out); err != nil {
			t.Fatal(err)
		}
		problems, err := trajectory.Check(out.Bytes())
		if err != nil || len(problems) > 0 {
			t.Errorf("%s (%+v): %v %q", id, w.view(id), err, problems)
		}
	}
}
