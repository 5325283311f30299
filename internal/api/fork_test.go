package api

import (
	"strings"
	"testing"
)

func TestForkRoutes(t *testing.T) {
	l := newLab(t)
	const ro = "/v1/rollouts/r_one"
	for _, row := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"POST", ro + "/snapshot", "", 201, `"id":"s_1","rollout_id":"r_one","ordinal":0`},
		{"GET", ro + "/snapshots", "", 200, `{"next":null,"snapshots":[{"id":"s_1"`},
		{"DELETE", ro + "/snapshots/s_1", "", 204, ""},
		{"POST", ro + "/fork", `{"n": 3, "snapshot": "s_1", "seed": 7, "wait_s": 4}`, 201, `"n":3`},
		{"POST", ro + "/fork", `{"n": 3, "snapshot": 1}`, 422, "snapshot"},
		{"POST", ro + "/fork", `{"n": 3, "of": "x"}`, 422, "of"},
		{"POST", ro + "/fork", `[`, 400, "bad_request"},
		{"POST", "/v1/rollouts/r_two/fork", `{"n": 1}`, 404, "not_found"},
		{"POST", "/v1/rollouts/r_two/snapshot", "", 404, "not_found"},
		{"GET", "/v1/capacity", "", 200, `{"live":1,"max":2,"queued":3}`},
		{"POST", "/v1/tasks/t/warm", `{"n": 4}`, 202, `"task_id":"t","digest":"","expected":4`},
		{"POST", "/v1/tasks/t/warm", `{"n": "4"}`, 422, "n"},
		{"POST", "/v1/rollouts?wait_s=-1", `{"task_id": "t"}`, 422, "wait_s"},
		{"POST", "/v1/rollouts?wait_s=9", `{"task_id": "t"}`, 201, "r_one"},
		{"POST", "/v1/groups?wait_s=x", `{"task_id": "t", "n": 1}`, 422, "wait_s"},
	} {
		got := l.send(row.method, row.path, "trainer-key", row.body)
		if got.status != row.status || !strings.Contains(got.body, row.says) {
			t.Errorf("%s %s %s: %d %s, want %d with %s", row.method, row.path, row.body, got.status, got.body, row.status, row.says)
		}
		if refused := l.send(row.method, row.path, "agent-one", row.body); refused.status != 404 {
			t.Errorf("%s %s with an agent's token: %d", row.method, row.path, refused.status)
		}
	}
	if n := len(l.fake.created); n != 1 || l.fake.created[0].WaitS != 9 {
		t.Errorf("created %+v", l.fake.created)
	}
}
