package main

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"proctor/internal/client"
	"proctor/internal/rollouts"
	"proctor/judge/judgetest"
	"proctor/monitor"
)

// raw sends a body as it is and gives the status and the problem's code and words.
func (c *child) raw(method, path, key, body string) (int, client.Problem) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.client.URL+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	var p client.Problem
	if res.StatusCode >= 300 {
		if err := json.Unmarshal(answer, &p); err != nil {
			c.t.Errorf("%s %s: %d %s", method, path, res.StatusCode, answer)
		}
	}
	return res.StatusCode, p
}

// Bad input to a running server names what is wrong and what to do, and harms nothing that runs.
func TestBadInputOverHTTP(t *testing.T) {
	t.Parallel()
	s := startServer(t, t.TempDir())
	made := s.create(monitor.Enforce)
	calls := "/v1/rollouts/" + made.ID + "/calls"
	for _, tc := range []struct {
		path, key, body string
		status          int
		code, words     string
	}{
		{calls, made.AgentToken, `{"name": "bash", `, 400, "bad_request", "JSON"},
		{calls, made.AgentToken, `{"name": "bash", "arguments": {"command": "ls"}, "odd": 1}`, 422, "invalid_field", "odd"},
		{calls, made.AgentToken, `{"name": "python", "arguments": {}}`, 422, "invalid_call", "bash"},
		{calls, made.AgentToken, `{"name": "bash", "arguments": {"command": ["ls"]}}`, 422, "invalid_call", "command"},
		{calls, made.AgentToken, `{"name": "bash", "arguments": {"command": "` + strings.Repeat("x", 16<<20) + `"}}`, 413, "body_too_large", "bytes"},
		{"/v1/rollouts", s.client.Key, `{"task_id": "no-such-task"}`, 404, "task_not_found", "no-such-task"},
		{"/v1/rollouts", s.client.Key, `{"task": {"id": "x", "instruction": "x", "image": "proctor/no-such-image:dev", "workdir": "/"}}`, 422, "image_not_found", "proctor/no-such-image:dev"},
		{"/v1/rollouts", s.client.Key, `{"task": {"id": "x", "instruction": "x", "image": "` + baseImage + `", "workdri": "/"}}`, 422, "task_invalid", "workdri"},
		{"/v1/rollouts", s.client.Key, `{"task": {"id": "x", "instruction": "x", "image": "` + baseImage + `", "workdir": "relative"}}`, 422, "task_invalid", "workdir"},
		{"/v1/rollouts", s.client.Key, `{"mode": "odd", "task": {"id": "x", "instruction": "x", "image": "` + baseImage + `", "workdir": "/"}}`, 422, "invalid_field", "mode"},
	} {
		status, p := s.raw("POST", tc.path, tc.key, tc.body)
		if status != tc.status || p.Code != tc.code || !strings.Contains(p.Detail, tc.words) {
			t.Errorf("%.120s: got %d %+v, want %d %s with %q", tc.body, status, p, tc.status, tc.code, tc.words)
		}
	}
	if seen, err := s.bash(made, "echo alive", "k"); err != nil || seen.Output != "alive\n" {
		t.Errorf("after the refusals: %+v, %v", seen, err)
	}
	if record, err := s.client.Trajectory(t.Context(), made.ID); err != nil || len(record.Calls) != 1 {
		t.Errorf("record %+v, %v", record, err)
	}
}

// Two rollouts see nothing of one another: no file, no process, no token, no record; and an agent's
// token opens its own tools' answers and nothing else, always with one and the same refusal.
func TestTwoRolloutsAreApart(t *testing.T) {
	t.Parallel()
	s := startServer(t, t.TempDir())
	one, two := s.create(monitor.Enforce), s.create(monitor.Enforce)
	if _, err := s.bash(one, "echo mine > /tmp/of-one; sleep 271 & sleep 0.1", "a"); err != nil {
		t.Fatal(err)
	}
	seen, err := s.bash(two, `ls /tmp/of-one 2>&1; for p in /proc/[0-9]*; do tr '\0' ' ' < $p/cmdline; echo; done; env; cat /proc/self/mountinfo; hostname`, "b")
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"sleep 271", one.ID, one.AgentToken, two.ID, two.AgentToken, s.client.Key, "proctor"} {
		if strings.Contains(strings.ToLower(seen.Output), strings.ToLower(word)) {
			t.Errorf("the second sandbox shows %q", word)
		}
	}
	if !strings.Contains(seen.Output, "cannot access '/tmp/of-one'") {
		t.Errorf("the first one's file: %s", seen.Output)
	}
	var refusal client.Problem
	for i, path := range []string{
		"GET /v1/rollouts/" + one.ID, "GET /v1/rollouts/" + two.ID, "GET /v1/rollouts/" + two.ID + "/trajectory", "GET /v1/rollouts/" + two.ID + "/verdicts",
		"GET /v1/rollouts/" + two.ID + "/patch", "GET /v1/rollouts/" + two.ID + "/events", "POST /v1/rollouts/" + two.ID + "/grade", "POST /v1/rollouts/" + two.ID + "/exec",
		"POST /v1/rollouts/" + one.ID + "/calls", "POST /v1/rollouts/" + one.ID + "/submit", "DELETE /v1/rollouts/" + two.ID, "GET /v1/rollouts", "POST /v1/rollouts",
		"GET /v1/tasks", "POST /v1/packs/check", "GET /metrics", "GET /no-such-route",
	} {
		method, route, _ := strings.Cut(path, " ")
		status, p := s.raw(method, route, two.AgentToken, `{"name": "bash", "arguments": {"command": "ls"}}`)
		if status != 404 {
			t.Errorf("%s with the second agent's token: %d", path, status)
		}
		if i == 0 {
			refusal = p
		}
		if p != refusal {
			t.Errorf("%s is refused in words of its own: %+v", path, p)
		}
	}
}

// A judge that answers garbage, refuses, stalls or is down leaves the policy to decide: what the
// agent is shown follows from it, the record says which failure it was, and no call is lost.
func TestJudgeThatMisbehaves(t *testing.T) {
	stalling := judgetest.Start(judgetest.Stall)
	garbage := judgetest.Start(judgetest.Say("I would say: benign!"))
	refusing := judgetest.Start(judgetest.Refuse)
	for _, j := range []*judgetest.Server{stalling, garbage, refusing} {
		t.Cleanup(j.Close)
	}
	for name, tc := range map[string]struct {
		url, policy, flag string
		failure           string
		decoyed           bool
	}{
		"garbage is decoyed by default": {garbage.URL, "", "", "garbage", true},
		"garbage, execute":              {garbage.URL, "execute", "--judge-on-failure", "garbage", false},
		"refusal is decoyed by default": {refusing.URL, "", "", "refused", true},
		"stall is decoyed by default":   {stalling.URL, "", "", "timeout", true},
		"stall, execute":                {stalling.URL, "execute", "--judge-on-outage", "timeout", false},
		"outage is decoyed by default":  {"http://127.0.0.1:9/v1", "", "", "outage", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := []string{"--judge-url", tc.url, "--judge-model", "m", "--judge-timeout", "500ms", "--log-level", "error"}
			if tc.flag != "" {
				args = append(args, tc.flag, tc.policy)
			}
			s := startServer(t, t.TempDir(), args...)
			made := s.create(monitor.Enforce)
			seen, err := s.bash(made, "cat /proc/1/cmdline > /dev/null; echo went $?", "k")
			if err != nil {
				t.Fatalf("%v\n%s", err, s.stderr)
			}
			record, err := s.client.Trajectory(t.Context(), made.ID)
			if err != nil || len(record.Calls) != 1 {
				t.Fatalf("record %+v, %v", record, err)
			}
			v := record.Calls[0].Verdict
			if v.Opinion == nil || v.Opinion.Verdict != "unsure" || v.Opinion.Failure != tc.failure {
				t.Errorf("opinion %+v", v.Opinion)
			}
			want := map[bool][3]string{true: {monitor.Block, monitor.Decoyed, "decoy"}, false: {monitor.Flag, monitor.Executed, "execute"}}[tc.decoyed]
			if v.Decision != want[0] || v.Action != want[1] || v.Policy != want[2] {
				t.Errorf("decision %s, action %s, policy %s; want %v", v.Decision, v.Action, v.Policy, want)
			}
			if strings.Contains(seen.Output, "went 0") == tc.decoyed || seen.ExitCode == nil {
				t.Errorf("shown %+v", seen)
			}
		})
	}
}

// A rollout whose call is refused keeps its record over the end of the server.
func TestRefusedCreateLeavesNothing(t *testing.T) {
	t.Parallel()
	s := startServer(t, t.TempDir())
	_, err := s.client.Create(t.Context(), rollouts.CreateRequest{Task: json.RawMessage(`{"id": "x", "instruction": "x", "image": "proctor/no-such-image:dev", "workdir": "/"}`)})
	var p *client.Problem
	if !errors.As(err, &p) || p.Code != "image_not_found" {
		t.Fatalf("got %v", err)
	}
	if list, _, err := s.client.List(t.Context(), nil); err != nil || len(list) != 0 {
		t.Errorf("left %+v, %v", list, err)
	}
}
