package api

import (
	"strings"
	"testing"

	"proctor/internal/critic"
)

func TestCriticRoutes(t *testing.T) {
	l := newLab(t)
	for _, tc := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/v1/policies/p/stats", "", 200, `"success":0.29`},
		{"POST", "/v1/rollouts/r_one/values", `{"base_url": "http://127.0.0.1:1/v1", "model": "m"}`, 200, `"value":0.5`},
		{"POST", "/v1/rollouts/r_two/values", `{"base_url": "http://127.0.0.1:1/v1", "model": "m"}`, 404, "not_found"},
		{"POST", "/v1/rollouts/r_one/values", `{"modell": "m"}`, 422, "modell"},
		{"GET", "/v1/rollouts/r_one/critic-pairs?kinds=turn,verdict", "", 200, `"state":"turn+verdict"`},
	} {
		got := l.send(tc.method, tc.path, "trainer-key", tc.body)
		if got.status != tc.status || !strings.Contains(got.body, tc.want) {
			t.Errorf("%s %s: %d %s", tc.method, tc.path, got.status, got.body)
		}
		if refused := l.send(tc.method, tc.path, "agent-one", tc.body); refused.status != 404 {
			t.Errorf("%s %s with an agent token: %d", tc.method, tc.path, refused.status)
		}
	}
	got := l.send("GET", "/v1/rollouts/r_one/critic-pairs", "trainer-key", "")
	pairs, bad := critic.ReadPairs(strings.NewReader(got.body))
	if len(pairs) != 1 || len(bad) != 0 || pairs[0].Prefix != "<p>" {
		t.Errorf("read back %+v, %v", pairs, bad)
	}
}
