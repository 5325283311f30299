package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"proctor/internal/rollouts"
	"proctor/monitor"
	"proctor/sandbox"
	"proctor/tasks"
)

const goodCall = `{"call_id": "c1", "name": "bash", "arguments": {"command": "ls"}}`

// Every refusal that an agent token meets has one and the same status, body and headers.
func TestRefusalsAreAlike(t *testing.T) {
	l := newLab(t)
	var first *reply
	for _, tc := range []struct{ method, path, key string }{
		{"POST", "/v1/rollouts/r_one/calls", ""},
		{"POST", "/v1/rollouts/r_one/calls", "wrong"},
		{"POST", "/v1/rollouts/r_one/calls", "agent-on"},
		{"POST", "/v1/rollouts/r_two/calls", "agent-one"},
		{"POST", "/v1/rollouts/r_none/calls", "agent-one"},
		{"GET", "/v1/rollouts/r_one", "agent-one"},
		{"GET", "/v1/rollouts/r_one/trajectory", "agent-one"},
		{"GET", "/v1/rollouts/r_one/verdicts", "agent-one"},
		{"GET", "/v1/rollouts/r_one/events", "agent-one"},
		{"POST", "/v1/rollouts/r_one/grade", "agent-one"},
		{"POST", "/v1/rollouts/r_one/exec", "agent-one"},
		{"DELETE", "/v1/rollouts/r_one", "agent-one"},
		{"POST", "/v1/rollouts", "agent-one"},
		{"GET", "/v1/rollouts", "agent-one"},
		{"GET", "/v1/tasks", "agent-one"},
		{"GET", "/metrics", "agent-one"},
		{"GET", "/openapi.json", "agent-one"},
		{"GET", "/v1/nowhere", "agent-one"},
		{"PATCH", "/v1/rollouts/r_one/calls", "agent-one"},
		{"POST", "/v1/rollouts", "reviewer-key"}, // a reviewer runs nothing
	} {
		got := l.send(tc.method, tc.path, tc.key, goodCall)
		got.header.Del("Date")
		if first == nil {
			first = &got
			if got.status != 404 || got.header.Get("Content-Type") != "application/problem+json" || !strings.Contains(got.body, `"code":"not_found"`) {
				t.Fatalf("refusal is %+v", got)
			}
			continue
		}
		if got.status != first.status || got.body != first.body || !maps.EqualFunc(got.header, first.header, slices.Equal) {
			t.Errorf("%s %s with %q: %+v\nunlike the first: %+v", tc.method, tc.path, tc.key, got, *first)
		}
	}
	if len(l.fake.calls) != 0 {
		t.Errorf("%d refused calls reached the manager", len(l.fake.calls))
	}
}

func TestBadBodies(t *testing.T) {
	l := newLab(t)
	for name, tc := range map[string]struct {
		body   string
		status int
		code   string
		words  string
	}{
		"broken":           {`{"call_id": "x", `, 400, "bad_request", "JSON"},
		"empty":            {``, 400, "bad_request", "empty"},
		"list":             {`[]`, 400, "bad_request", "object"},
		"null":             {`null`, 400, "bad_request", "object"},
		"two documents":    {goodCall + ` {}`, 400, "bad_request", "more than one"},
		"deep":             {strings.Repeat(`{"arguments":`, 20000), 400, "bad_request", "JSON"},
		"unknown field":    {`{"name": "bash", "arguments": {"command": "ls"}, "no_such": 1}`, 422, "invalid_field", "no_such"},
		"call_id a number": {`{"call_id": 7, "name": "bash", "arguments": {"command": "ls"}}`, 422, "invalid_field", "call_id"},
		"unknown tool":     {`{"name": "rm", "arguments": {}}`, 422, "invalid_call", "bash_output"},
		"missing argument": {`{"name": "bash", "arguments": {}}`, 422, "invalid_call", "command"},
		"unknown argument": {`{"name": "bash", "arguments": {"command": "ls", "x": 1}}`, 422, "invalid_call", "arguments.x"},
		"wrong type":       {`{"name": "bash", "arguments": {"command": 1}}`, 422, "invalid_call", "command"},
		"too large":        {`{"name": "bash", "arguments": {"command": "` + strings.Repeat("x", 17<<20) + `"}}`, 413, "body_too_large", "bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			got := l.send("POST", "/v1/rollouts/r_one/calls", "agent-one", tc.body)
			var p Problem
			if err := json.Unmarshal([]byte(got.body), &p); err != nil {
				t.Fatalf("not a problem: %s", got.body)
			}
			if got.status != tc.status || p.Status != tc.status || p.Code != tc.code || !strings.Contains(p.Detail, tc.words) || p.Type == "" || p.Title == "" {
				t.Errorf("got %d %+v", got.status, p)
			}
		})
	}
	if len(l.fake.calls) != 0 {
		t.Errorf("%d bad calls reached the manager", len(l.fake.calls))
	}
}

// A decoyed answer and any other have the same fields and headers.
func TestAnswersHaveOneShape(t *testing.T) {
	l := newLab(t)
	handle := "h1"
	one := 1
	var headers, fields []string
	for i, seen := range []monitor.Observation{
		{Output: "x", ExitCode: &one}, {TimedOut: true}, {Truncated: true, Output: "y"}, {Handle: &handle},
	} {
		l.fake.call = func(monitor.Call) (monitor.Observation, error) { return seen, nil }
		got := l.send("POST", "/v1/rollouts/r_one/calls", "agent-one", goodCall)
		var body map[string]any
		if err := json.Unmarshal([]byte(got.body), &body); err != nil || got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
		h, f := slices.Sorted(maps.Keys(got.header)), slices.Sorted(maps.Keys(body))
		if i == 0 {
			headers, fields = h, f
			if want := []string{"call_id", "exit_code", "handle", "output", "timed_out", "truncated"}; !slices.Equal(f, want) {
				t.Errorf("fields %v", f)
			}
		}
		if !slices.Equal(h, headers) || !slices.Equal(f, fields) {
			t.Errorf("answer %d: headers %v, fields %v", i, h, f)
		}
	}
}

func TestPrincipals(t *testing.T) {
	l := newLab(t)
	for key, want := range map[string]string{"agent-one": monitor.Agent, "trainer-key": monitor.Harness} {
		l.fake.calls = nil
		if got := l.send("POST", "/v1/rollouts/r_one/calls", key, goodCall, "Idempotency-Key", "k"); got.status != 200 {
			t.Fatalf("%s: %+v", key, got)
		}
		if c := l.fake.calls[0]; c.Principal != want || c.Key != "k" || c.ID != "c1" {
			t.Errorf("%s: call %+v", key, c)
		}
	}
}

// Each error of the manager becomes the problem that its code names; ours are not told apart.
func TestErrorsBecomeProblems(t *testing.T) {
	l := newLab(t)
	for _, tc := range []struct {
		err    error
		status int
		code   string
		retry  bool
	}{
		{&rollouts.Error{Code: "rollout_ended", Detail: "over"}, 410, "rollout_ended", false},
		{&rollouts.Error{Code: "idempotency_conflict", Detail: "other"}, 409, "idempotency_conflict", false},
		{&rollouts.Error{Code: "at_capacity", Detail: "full", After: 1500 * time.Millisecond}, 429, "at_capacity", true},
		{&rollouts.Error{Code: "store_full", Detail: "disk"}, 507, "store_full", true},
		{fmt.Errorf("box: %w", &sandbox.DeadError{Class: "model", Reason: "killed"}), 410, "sandbox_dead", false},
		{fmt.Errorf("docker: %w", sandbox.ErrUnavailable), 503, "engine_unavailable", true},
		{errors.New("secret path /var/x"), 500, "internal", true},
	} {
		l.fake.call = func(monitor.Call) (monitor.Observation, error) { return monitor.Observation{}, tc.err }
		got := l.send("POST", "/v1/rollouts/r_one/calls", "agent-one", goodCall)
		var p Problem
		if err := json.Unmarshal([]byte(got.body), &p); err != nil {
			t.Fatal(err)
		}
		if got.status != tc.status || p.Code != tc.code || p.Retry != tc.retry {
			t.Errorf("%v: got %d %+v", tc.err, got.status, p)
		}
		if tc.code == "at_capacity" && got.header.Get("Retry-After") != "2" {
			t.Errorf("Retry-After is %q", got.header.Get("Retry-After"))
		}
		if strings.Contains(got.body, "secret path") {
			t.Error("an internal error's text was shown")
		}
	}
}

func TestTrainerPlane(t *testing.T) {
	l := newLab(t)
	reward := 1.0
	l.fake.grade = func(wait bool) (*tasks.Grade, error) {
		if !wait {
			return nil, nil
		}
		return &tasks.Grade{Outcome: tasks.Resolved, Reward: &reward}, nil
	}
	for _, tc := range []struct {
		method, path, body string
		status             int
		holds              string
	}{
		{"POST", "/v1/rollouts", `{"task_id": "t"}`, 201, `"agent_token":"agent-one"`},
		{"POST", "/v1/rollouts", `{"task_id": "t", "no_such": 1}`, 422, "no_such"},
		{"POST", "/v1/rollouts", `{"task_id": 1}`, 422, "task_id"},
		{"GET", "/v1/rollouts?limit=5", "", 200, `"next":"more"`},
		{"GET", "/v1/rollouts?limit=many", "", 422, "limit"},
		{"GET", "/v1/rollouts/r_one", "", 200, `"id":"r_one"`},
		{"GET", "/v1/rollouts/r_none", "", 404, "not_found"},
		{"POST", "/v1/rollouts/r_one/grade?wait=true", "", 200, `"outcome":"resolved"`},
		{"POST", "/v1/rollouts/r_one/grade", "", 202, "grading"},
		{"POST", "/v1/rollouts/r_one/exec", `{"argv": ["echo", "a"]}`, 200, `"stdout":"echo a `},
		{"POST", "/v1/rollouts/r_one/exec", `{"argv": []}`, 422, "argv"},
		{"POST", "/v1/rollouts/r_one/exec", `{"argv": ["a"], "timeout_s": -1}`, 422, "timeout_s"},
		{"POST", "/v1/rollouts/r_one/heartbeat", "", 200, "ok"},
		{"GET", "/v1/rollouts/r_one/patch", "", 200, "diff --git"},
		{"GET", "/v1/rollouts/r_one/trajectory", "", 200, "proctor.trajectory/1"},
		{"GET", "/v1/rollouts/r_one/trajectory?format=odd", "", 422, "format"},
		{"GET", "/v1/rollouts/r_one/verdicts", "", 200, `"verdicts":[]`},
		{"POST", "/v1/rollouts/r_one/verdicts/1/review", `{"label": "hack"}`, 200, `"label":"hack"`},
		{"POST", "/v1/rollouts/r_one/verdicts/1/review", `{"label": "maybe"}`, 422, "label"},
		{"POST", "/v1/rollouts/r_one/verdicts/x/review", `{"label": "hack"}`, 404, "not_found"},
		{"POST", "/v1/groups", `{"task_id": "t", "n": 3}`, 201, `"n":3`},
		{"GET", "/v1/groups/g_one?wait_s=1", "", 200, "g_one"},
		{"GET", "/v1/tasks", "", 200, `"tasks":[`},
		{"GET", "/v1/tasks/t", "", 200, `"id":"t"`},
		{"POST", "/v1/packs/check", `{"task_id": "t", "name": "bash", "arguments": {"command": "ls"}}`, 200, "allow"},
		{"GET", "/v1/rollouts/r_one/tools?format=openai", "", 200, `"type":"function"`},
		{"GET", "/v1/rollouts/r_one/tools?format=odd", "", 422, "format"},
		{"DELETE", "/v1/rollouts/r_one", "", 204, ""},
		{"GET", "/healthz", "", 200, "ok"},
		{"GET", "/readyz", "", 200, "ready"},
		{"GET", "/metrics", "", 200, "metric 1"},
	} {
		got := l.send(tc.method, tc.path, "trainer-key", tc.body)
		if got.status != tc.status || !strings.Contains(got.body, tc.holds) {
			t.Errorf("%s %s %s: got %d %.300s, want %d with %q", tc.method, tc.path, tc.body, got.status, got.body, tc.status, tc.holds)
		}
	}
}

// An exec is idempotent by its header, as a call is.
func TestExecTakesTheKey(t *testing.T) {
	l := newLab(t)
	got := l.send("POST", "/v1/rollouts/r_one/exec", "trainer-key", `{"argv": ["a"]}`, "Idempotency-Key", "k7")
	if !strings.Contains(got.body, `"stdout":"a k7"`) {
		t.Errorf("the key did not reach the manager: %+v", got)
	}
}

func TestEventsStream(t *testing.T) {
	l := newLab(t)
	l.fake.feed = make(chan rollouts.Event, 2)
	l.fake.feed <- rollouts.Event{Number: 4, Kind: "call"}
	l.fake.feed <- rollouts.Event{Number: 5, Kind: "graded"}
	close(l.fake.feed)
	got := l.send("GET", "/v1/rollouts/r_one/events", "trainer-key", "", "Last-Event-ID", "3")
	if got.header.Get("Content-Type") != "text/event-stream" || !strings.Contains(got.body, "id: 4\nevent: call\n") || !strings.Contains(got.body, "id: 5\nevent: graded\n") {
		t.Errorf("stream %q", got.body)
	}
}
