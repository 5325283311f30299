package api

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"proctor/internal/critic"
	"proctor/internal/rollouts"
	"proctor/internal/trajectory/export"
	"proctor/monitor"
	"proctor/sandbox"
	"proctor/tasks"
)

// fake is a Rollouts with one rollout, r_one, whose token is "agent-one".
type fake struct {
	calls   []monitor.Call
	created []rollouts.CreateRequest
	call    func(monitor.Call) (monitor.Observation, error)
	create  func(rollouts.CreateRequest) (rollouts.Created, error)
	grade   func(wait bool) (*tasks.Grade, error)
	feed    chan rollouts.Event
}

func (f *fake) known(id string) error {
	if id != "r_one" {
		return &rollouts.Error{Code: "not_found", Detail: "no rollout " + id}
	}
	return nil
}

func (f *fake) Create(_ context.Context, _ string, req rollouts.CreateRequest) (rollouts.Created, error) {
	f.created = append(f.created, req)
	if f.create != nil {
		return f.create(req)
	}
	return rollouts.Created{ID: "r_one", AgentToken: "agent-one", Tools: rollouts.ToolList()}, nil
}
func (f *fake) Capacity() rollouts.Capacity { return rollouts.Capacity{Live: 1, Max: 2, Queued: 3} }
func (f *fake) Warm(_ context.Context, id string, req rollouts.WarmRequest) (rollouts.Warmed, error) {
	return rollouts.Warmed{TaskID: id, Expected: req.N}, nil
}
func (f *fake) Snapshot(_ context.Context, id string) (rollouts.Snapshot, error) {
	return rollouts.Snapshot{ID: "s_1", RolloutID: id}, f.known(id)
}
func (f *fake) Snapshots(_ context.Context, id string) ([]rollouts.Snapshot, error) {
	return []rollouts.Snapshot{{ID: "s_1"}}, f.known(id)
}
func (f *fake) DropSnapshot(_ context.Context, id, _ string) error { return f.known(id) }
func (f *fake) Fork(_ context.Context, id, _ string, req rollouts.ForkRequest) (rollouts.GroupCreated, error) {
	return rollouts.GroupCreated{ID: "g_1", N: req.N, Snapshot: &rollouts.Snapshot{ID: "s_1"}}, f.known(id)
}
func (f *fake) Get(_ context.Context, id string) (rollouts.View, error) {
	return rollouts.View{ID: id}, f.known(id)
}
func (f *fake) List(context.Context, rollouts.Filter) ([]rollouts.View, string, error) {
	return []rollouts.View{{ID: "r_one"}}, "more", nil
}
func (f *fake) Delete(_ context.Context, id string) error    { return f.known(id) }
func (f *fake) Heartbeat(_ context.Context, id string) error { return f.known(id) }
func (f *fake) Authenticate(id, token string) bool           { return id == "r_one" && token == "agent-one" }
func (f *fake) Call(_ context.Context, id string, call monitor.Call) (monitor.Observation, error) {
	f.calls = append(f.calls, call)
	if f.call != nil {
		return f.call(call)
	}
	zero := 0
	return monitor.Observation{CallID: call.ID, Output: "hi\n", ExitCode: &zero}, f.known(id)
}
func (f *fake) Exec(_ context.Context, id string, e sandbox.Exec) (sandbox.ExecResult, error) {
	zero := 0
	return sandbox.ExecResult{Stdout: []byte(strings.Join(append(e.Argv, e.ID), " ")), Exit: &zero}, f.known(id)
}
func (f *fake) Submit(_ context.Context, id string) error { return f.known(id) }
func (f *fake) Grade(_ context.Context, id string, wait bool) (*tasks.Grade, error) {
	if f.grade != nil {
		return f.grade(wait)
	}
	return nil, f.known(id)
}
func (f *fake) Patch(_ context.Context, id string) ([]byte, error) {
	return []byte("diff --git a/x b/x\n"), f.known(id)
}
func (f *fake) Trajectory(_ context.Context, id string) (*rollouts.Trajectory, error) {
	return &rollouts.Trajectory{Schema: "proctor.trajectory/1"}, f.known(id)
}
func (f *fake) Verdicts(_ context.Context, id string) ([]rollouts.VerdictView, error) {
	return []rollouts.VerdictView{}, f.known(id)
}
func (f *fake) AddReview(_ context.Context, id string, _ int, _ rollouts.Review) error {
	return f.known(id)
}
func (f *fake) Events(_ context.Context, id string, _ int64) (<-chan rollouts.Event, error) {
	return f.feed, f.known(id)
}
func (f *fake) CreateGroup(_ context.Context, _ string, req rollouts.GroupRequest) (rollouts.GroupCreated, error) {
	return rollouts.GroupCreated{ID: "g_one", N: req.N}, nil
}
func (f *fake) Group(_ context.Context, id string, _ int) (rollouts.GroupView, error) {
	return rollouts.GroupView{ID: id}, nil
}
func (f *fake) ExportRollout(_ context.Context, id, _ string) (*export.Rollout, error) {
	return &export.Rollout{ID: id, TaskID: "t", Instruction: "Fix it."}, f.known(id)
}
func (f *fake) AbortGroup(_ context.Context, id string) (rollouts.GroupView, error) {
	return rollouts.GroupView{ID: id, Status: "done"}, nil
}
func (f *fake) WatchGroup(_ context.Context, id string) (<-chan rollouts.GroupView, error) {
	feed := make(chan rollouts.GroupView, 2)
	feed <- rollouts.GroupView{ID: id, Status: "running"}
	feed <- rollouts.GroupView{ID: id, Status: "done"}
	close(feed)
	return feed, nil
}
func (f *fake) Tasks(context.Context) []*tasks.Task { return []*tasks.Task{{ID: "t"}} }
func (f *fake) Task(_ context.Context, id string) (*tasks.Task, error) {
	return &tasks.Task{ID: id}, nil
}
func (f *fake) Check(context.Context, string, monitor.Call) (rollouts.Explanation, error) {
	return rollouts.Explanation{Decision: "allow"}, nil
}
func (f *fake) Ready(context.Context) error { return nil }

// lab is a server over a fake.
type lab struct {
	t    *testing.T
	fake *fake
	api  *Server
	srv  *httptest.Server
}

func newLab(t *testing.T) *lab {
	t.Helper()
	f := &fake{}
	s := New(Options{Rollouts: f, Keys: []Key{{"trainer-key", RoleTrainer}, {"reviewer-key", RoleReviewer}}, Version: "test",
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "metric 1\n") })})
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(srv.Close)
	return &lab{t, f, s, srv}
}

// reply is an answer, read whole.
type reply struct {
	status int
	header http.Header
	body   string
}

func (l *lab) send(method, path, key, body string, headers ...string) reply {
	l.t.Helper()
	req, err := http.NewRequestWithContext(l.t.Context(), method, l.srv.URL+path, strings.NewReader(body))
	if err != nil {
		l.t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		l.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		l.t.Fatal(err)
	}
	return reply{res.StatusCode, res.Header, string(text)}
}

func (f *fake) PolicyStats(_ context.Context, name string) (rollouts.PolicyStats, error) {
	return rollouts.PolicyStats{Policy: name, Momentum: critic.Momentum, Families: []critic.Family{{Family: "f", Success: 0.29, Rollouts: 3, Batches: 2}}}, nil
}
func (f *fake) Values(_ context.Context, id string, req rollouts.ValuesRequest) (rollouts.RolloutValues, error) {
	half := 0.5
	return rollouts.RolloutValues{RolloutID: id, States: 1, Parsed: 1, Values: []critic.Value{{Kind: critic.KindTurn, Ordinal: 1, Value: &half, Text: req.Model}}}, f.known(id)
}
func (f *fake) CriticPairs(_ context.Context, id string, kinds []string) ([]critic.Pair, error) {
	return []critic.Pair{{Schema: critic.PairSchema, Prefix: "<p>", State: strings.Join(kinds, "+"), Return: 1, N: 1}}, f.known(id)
}
