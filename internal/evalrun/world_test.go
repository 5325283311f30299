package evalrun

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"proctor/internal/api"
	"proctor/internal/client"
	"proctor/internal/evalrun/modeltest"
	"proctor/internal/rollouts"
	"proctor/internal/store"
	"proctor/monitor/normalize"
	"proctor/sandbox"
	"proctor/sandbox/sandboxtest"
	"proctor/tasks"
)

// stubLab grades by a task's name: "good" tasks are resolved.
type stubLab struct{}

func (stubLab) Prepare(_ context.Context, t *tasks.Task, _ bool) (rollouts.Image, error) {
	return rollouts.Image{Ref: t.Image, Digest: "sha256:image"}, nil
}

func (stubLab) Verify(context.Context, *tasks.Task, rollouts.Image, sandbox.Session) error {
	return nil
}

func (stubLab) Facts(*tasks.Task, rollouts.Image, sandbox.Session) normalize.Facts { return nil }

func (stubLab) Patch(context.Context, *tasks.Task, rollouts.Image, sandbox.Session) ([]byte, error) {
	return []byte("--- a\n+++ b\n"), nil
}

func (stubLab) Grade(_ context.Context, job rollouts.GradeJob) (tasks.Grade, error) {
	job.Patched([]byte("--- a\n+++ b\n"))
	reward, outcome, class := 0.0, tasks.Unresolved, "model"
	if strings.HasPrefix(job.Task.ID, "good") {
		reward, outcome, class = 1, tasks.Resolved, "none"
	}
	tests := tasks.Tests{FailToPass: tasks.TestList{Passed: []string{"t1"}}}
	return tasks.Grade{Outcome: outcome, Reward: &reward, FailureClass: class, PatchSHA256: "x", Tests: tests}, nil
}

// newServer serves the real HTTP surface over a fake engine.
func newServer(t *testing.T, ids ...string) *client.Client {
	t.Helper()
	st, err := store.Open(context.Background(), t.TempDir(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var list []*tasks.Task
	for _, id := range ids {
		list = append(list, &tasks.Task{ID: id, Instruction: "Fix " + id + ".", Image: "img", Workdir: "/testbed", Grader: &tasks.Grader{Kind: "patch", Command: "true", Report: "exit"}})
	}
	m, err := rollouts.Open(context.Background(), rollouts.Options{Store: st, Engine: &sandboxtest.Fake{}, Lab: stubLab{}, Tasks: list, SweepEvery: -1})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(api.New(api.Options{Rollouts: m, Keys: []api.Key{{Secret: "key", Role: api.RoleAdmin}}}).Handler())
	t.Cleanup(func() {
		srv.Close()
		if err := m.Close(true); err != nil {
			t.Error(err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return client.New(srv.URL, "key")
}

// model starts a model's server.
func model(t *testing.T, how modeltest.Behaviour) *modeltest.Server {
	t.Helper()
	s := modeltest.New(how)
	t.Cleanup(s.Close)
	return s
}

func planFor(base string, ids ...string) Plan {
	return Plan{Tasks: ids, N: 1, Model: "m", BaseURL: base, Protocol: Auto, Budget: Budget{Turns: 20, Context: 100_000}, Prices: Prices{In: 1, Out: 2}}
}

func newRunner(dir string, c *client.Client, base string) *Runner {
	e := NewEndpoint(base, "k")
	e.Pause, e.Timeout, e.Tries = 5*time.Millisecond, 5*time.Second, 3
	return &Runner{Dir: dir, Client: c, Endpoint: e, Concurrency: 3, Patience: time.Second}
}

func mustRun(t *testing.T, r *Runner, p Plan) *Report {
	t.Helper()
	rep, err := r.Run(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// commands gives what a rollout's agent ran, in order.
func commands(t *testing.T, c *client.Client, id string) string {
	t.Helper()
	rec, err := c.Trajectory(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, call := range rec.Calls {
		var a struct{ Command string }
		if err := json.Unmarshal(call.Arguments, &a); err != nil {
			t.Fatal(err)
		}
		if call.Name != "bash" {
			a.Command = call.Name
		}
		out = append(out, a.Command)
	}
	return strings.Join(out, "|")
}

func allRollouts(t *testing.T, c *client.Client) []rollouts.View {
	t.Helper()
	views, _, err := c.List(t.Context(), url.Values{"limit": {"200"}})
	if err != nil {
		t.Fatal(err)
	}
	return views
}

func readFile(t *testing.T, parts ...string) string {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
