package rollouts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"proctor/internal/critic"
	"proctor/internal/records"
	"proctor/internal/trajectory"
	"proctor/tasks"
)

// criticServer is a small OpenAI-compatible critic; it keeps what it was asked.
type criticServer struct {
	mu    sync.Mutex
	asked []string
	url   string
}

func newCriticServer(t *testing.T, answer string) *criticServer {
	c := &criticServer{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		c.mu.Lock()
		c.asked = append(c.asked, string(body))
		c.mu.Unlock()
		_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"message": map[string]any{"role": "assistant", "content": answer}}}})
	}))
	t.Cleanup(s.Close)
	c.url = s.URL + "/v1"
	return c
}

// graded plays and grades one rollout of policy p with the given reward.
func (w *world) graded(reward float64) string {
	w.t.Helper()
	w.lab.grade = func(context.Context, GradeJob) (tasks.Grade, error) {
		return tasks.Grade{Outcome: tasks.Resolved, Reward: &reward, FailureClass: "none"}, nil
	}
	id := w.create(func(r *CreateRequest) { r.Policy = Policy{Name: "p", SizeB: 7} }).ID
	w.do(id, bash(w.t, "", "echo one"))
	w.do(id, bash(w.t, "", "CHEAT now"))
	w.clock.Add(time.Second)
	if _, err := w.m.Grade(context.Background(), id, true); err != nil {
		w.t.Fatal(err)
	}
	w.clock.Add(time.Second)
	return id
}

func TestPolicyStats(t *testing.T) {
	w := newWorld(t)
	for _, reward := range []float64{1, 0, 1} {
		w.graded(reward)
	}
	w.create(func(r *CreateRequest) { r.Policy.Name = "p" }) // not graded: no outcome
	s, err := w.m.PolicyStats(context.Background(), "p")
	if err != nil {
		t.Fatal(err)
	}
	want := critic.Average(critic.Average(1, 0, 0.9), 1, 0.9)
	if len(s.Families) != 1 || s.Families[0].Family != "t" || s.Families[0].Rollouts != 3 || s.Families[0].Success != want || s.SizeB != 7 {
		t.Errorf("got %+v, want success %v", s, want)
	}
	if s, err := w.m.PolicyStats(context.Background(), "nobody"); err != nil || s.Families == nil || len(s.Families) != 0 {
		t.Errorf("nobody: %+v, %v", s, err)
	}
}

// A critic is asked from what the agent saw, never what it was kept from, and is told only of success
// before the rollout.
func TestValues(t *testing.T) {
	w := newWorld(t)
	w.graded(1)
	id := w.graded(0)
	w.graded(0)
	c := newCriticServer(t, "so so <answer>4</answer>")
	got, err := w.m.Values(context.Background(), id, ValuesRequest{BaseURL: c.url, Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	if got.Parsed != 3 || got.Unparsed != 0 || got.Failed != 0 || got.Conditioning.Success == nil || *got.Conditioning.Success != 1 {
		t.Fatalf("got %+v", got)
	}
	var kinds []string
	for _, v := range got.Values {
		kinds = append(kinds, v.Kind)
		if *v.Value != 0.4 {
			t.Errorf("value %v", *v.Value)
		}
	}
	if strings.Join(kinds, " ") != "segment turn verdict" {
		t.Errorf("asked at %v", kinds)
	}
	all := strings.Join(c.asked, "\n")
	shown := w.trajectory(id).Calls[1].Observation.Output
	if !strings.Contains(all, "7 billion") || !strings.Contains(all, strings.TrimSpace(shown)) || strings.Contains(all, "core/cheat") {
		t.Errorf("asked %s", all)
	}

	got, err = w.m.Values(context.Background(), id, ValuesRequest{BaseURL: newCriticServer(t, "who knows").url, Model: "m", MaxStates: 1})
	if err != nil || got.Unparsed != 1 || got.States != 3 || len(got.Values) != 1 || got.Values[0].Value != nil {
		t.Errorf("prose: %+v, %v", got, err)
	}
}

func TestCriticPairs(t *testing.T) {
	w := newWorld(t)
	id := w.graded(0.5)
	pairs, err := w.m.CriticPairs(context.Background(), id, []string{"turn"})
	if err != nil || len(pairs) != 2 || pairs[0].Return != 0.5 || pairs[0].Conditioning.Success != nil {
		t.Errorf("%+v, %v", pairs, err)
	}
	open := w.create().ID
	for what, err := range map[string]error{
		"no reward":  second(w.m.CriticPairs(context.Background(), open, nil)),
		"kinds":      second(w.m.CriticPairs(context.Background(), id, []string{"call"})),
		"base_url":   second(w.m.Values(context.Background(), id, ValuesRequest{Model: "m"})),
		"model":      second(w.m.Values(context.Background(), id, ValuesRequest{BaseURL: "http://127.0.0.1:1"})),
		"max_states": second(w.m.Values(context.Background(), id, ValuesRequest{BaseURL: "http://127.0.0.1:1", Model: "m", MaxStates: -1})),
	} {
		var e *Error
		if !errors.As(err, &e) || e.Code != CodeInvalidField || !strings.Contains(e.Detail, what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	var e *Error
	if err := second(w.m.Values(context.Background(), "r_none", ValuesRequest{BaseURL: "x", Model: "m"})); !errors.As(err, &e) || e.Code != CodeNotFound {
		t.Errorf("no such rollout: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

// A row that was read before a rollout ended is not what is told of it after.
func TestRowReadBeforeTheEnd(t *testing.T) {
	w := newWorld(t)
	id := w.create().ID
	row, err := w.m.opt.Store.RolloutByID(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.m.Grade(context.Background(), id, true); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the rollout is gone", func() bool { return w.m.find(id) == nil })
	if v, err := w.m.viewOf(context.Background(), row); err != nil || v.Status != StatusGraded || v.Reward == nil {
		t.Errorf("%+v, %v", v, err)
	}
}

// Calls are put into the segments that made them, by the gateway's record or an upload: a critic is asked where a
// segment begins, once, and not where the agent comes back to one.
func TestStatesBeginWithSegments(t *testing.T) {
	w := newWorld(t)
	kept, err := records.New(w.store)
	if err != nil {
		t.Fatal(err)
	}
	w.opt.Records = kept
	w.crash()
	id := w.create().ID
	for i := range 4 {
		call := bash(t, "", fmt.Sprint("echo ", i))
		call.ID = fmt.Sprint("c", i)
		w.do(id, call)
	}
	segment := func(order int, kind string, calls ...string) *trajectory.Segment {
		s := &trajectory.Segment{ID: fmt.Sprint("s", order), Order: order, Kind: kind, Cause: trajectory.CauseRoot}
		if order > 0 {
			root := "s0"
			s.Cause, s.Parent = trajectory.CauseSubagent, &root
		}
		for i, c := range calls {
			s.Tokens, s.Logprobs, s.ActionMask, s.LossMask = append(s.Tokens, int32(10*order), int32(10*order+1)), append(s.Logprobs, 0, -1), append(s.ActionMask, 0, 1), append(s.LossMask, 0, 1)
			s.Turns = append(s.Turns, trajectory.Turn{Index: i, Start: 2*i + 1, End: 2*i + 2, ToolCalls: []string{c}})
		}
		return s
	}
	upload := []*trajectory.Segment{segment(0, trajectory.KindAction, "c0", "c3"), segment(1, trajectory.KindSubagent, "c1", "c2")}
	if _, err := kept.Upload(context.Background(), id, upload); err != nil {
		t.Fatal(err)
	}
	read, err := w.m.states(context.Background(), id, []string{critic.KindSegment, critic.KindTurn})
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for i, s := range read.states {
		got += fmt.Sprintf("%s:%d ", s.Kind, read.steps[i].Segment)
	}
	if want := "segment:0 segment:1 turn:1 turn:0 "; got != want {
		t.Errorf("states %s, want %s", got, want)
	}
}

// Forks of one rollout share the states before the fork, whose return is then their mean, and each is ranked by
// the state behind its first own call.
func TestPairsOfForks(t *testing.T) {
	w := newWorld(t)
	parent := w.create(func(r *CreateRequest) { r.Policy = Policy{Name: "p", SizeB: 7} }).ID
	w.do(parent, bash(t, "", "echo shared"))
	var all []critic.Pair
	for i, f := range w.fork(parent, ForkRequest{N: 2}).Rollouts {
		w.do(f.ID, bash(t, "", fmt.Sprint("echo way ", i)))
		w.do(f.ID, bash(t, "", "echo more"))
		reward := float64(i)
		w.lab.grade = func(context.Context, GradeJob) (tasks.Grade, error) {
			return tasks.Grade{Outcome: tasks.Resolved, Reward: &reward, FailureClass: "none"}, nil
		}
		if _, err := w.m.Grade(context.Background(), f.ID, true); err != nil {
			t.Fatal(err)
		}
		pairs, err := w.m.CriticPairs(context.Background(), f.ID, []string{critic.KindTurn})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, pairs...)
	}
	pooled := critic.Pool(all)
	shared, ranked := 0, 0
	for i := range pooled {
		p := &pooled[i]
		if p.Fork != "" {
			if ranked++; p.Fork != parent+"@1" || !strings.Contains(p.Prefix, fmt.Sprintf("echo way %.0f", p.Return)) || strings.Contains(p.Prefix, "more") {
				t.Errorf("ranked by %q of fork %s with return %g", p.Prefix, p.Fork, p.Return)
			}
			p.Value = &p.Return
		} else if p.N == 2 {
			if shared++; p.Return != 0.5 {
				t.Errorf("a shared state returns %g", p.Return)
			}
		}
	}
	if shared != 2 || ranked != 2 {
		t.Errorf("%d shared states and %d ranked ones, want 2 and 2", shared, ranked)
	}
	if s := critic.Measure(pooled); s.Forks != 1 || s.Top1 == nil || *s.Top1 != 1 {
		t.Errorf("a critic that knows is measured as %+v", s)
	}
}
