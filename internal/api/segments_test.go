package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"proctor/internal/records"
	"proctor/internal/trajectory"
)

// keeper is a Segments that checks and keeps nothing.
type keeper struct{ err error }

func (k keeper) Upload(_ context.Context, _ string, list []*trajectory.Segment) (int, error) {
	if k.err != nil {
		return 0, k.err
	}
	for _, s := range list {
		trajectory.Complete(s)
	}
	if problems := trajectory.CheckUpload(list); len(problems) > 0 {
		return 0, problems[0]
	}
	return len(list), nil
}

// models is a Models that tells who was asked for.
type models struct{}

func (models) Chat(w http.ResponseWriter, _ *http.Request, id string) {
	_, _ = w.Write([]byte("chat " + id))
}
func (models) Messages(w http.ResponseWriter, _ *http.Request, id string) {
	_, _ = w.Write([]byte("messages " + id))
}
func (models) Models(w http.ResponseWriter, _ *http.Request, id string) {
	_, _ = w.Write([]byte("models " + id))
}

func withRecords(t *testing.T, k keeper) *lab {
	l := newLab(t)
	l.srv.Close()
	s := New(Options{Rollouts: l.fake, Keys: []Key{{"trainer-key", RoleTrainer}}, Models: models{}, Segments: k})
	l.srv = httptest.NewServer(s.Handler())
	t.Cleanup(l.srv.Close)
	return l
}

const upload = `{"segments": [{"id": "a", "tokens": [1,2], "logprobs": [0,-1], "action_mask": [0,1], "loss_mask": [0,1]}]}`

func TestUploadSegments(t *testing.T) {
	const path = "/v1/rollouts/r_one/segments"
	for name, tc := range map[string]struct {
		key, path, body string
		err             error
		status          int
		words           string
	}{
		"good":            {"trainer-key", path, upload, nil, 200, `{"segments":1}`},
		"an agent":        {"agent-one", path, upload, nil, 404, "not_found"},
		"no rollout":      {"trainer-key", "/v1/rollouts/r_two/segments", upload, nil, 404, "not_found"},
		"unequal":         {"trainer-key", path, strings.Replace(upload, "[0,-1]", "[0]", 1), nil, 422, `"field":"segments[0].logprobs"`},
		"NaN":             {"trainer-key", path, strings.Replace(upload, "-1", "NaN", 1), nil, 422, "NaN or Infinity"},
		"an unknown word": {"trainer-key", path, strings.Replace(upload, `"id"`, `"name"`, 1), nil, 422, "name"},
		"nothing":         {"trainer-key", path, `{"segments": []}`, nil, 422, "at least one"},
		"a wrong type":    {"trainer-key", path, strings.Replace(upload, "[1,2]", `"ab"`, 1), nil, 422, "segments.tokens"},
		"beside gateway":  {"trainer-key", path, upload, records.ErrGateway, 409, "records_conflict"},
		"another one":     {"trainer-key", path, upload, records.ErrUploaded, 409, "records_conflict"},
	} {
		t.Run(name, func(t *testing.T) {
			got := withRecords(t, keeper{tc.err}).send("POST", tc.path, tc.key, tc.body)
			if got.status != tc.status || !strings.Contains(got.body, tc.words) {
				t.Errorf("%d %s, want %d with %q", got.status, got.body, tc.status, tc.words)
			}
		})
	}
}

// The gateway is opened by the rollout's token, as Bearer or as Anthropic's clients send it.
func TestGatewayRoutes(t *testing.T) {
	l := withRecords(t, keeper{})
	const ro = "/v1/rollouts/r_one"
	if got := l.send("POST", ro+"/openai/v1/chat/completions", "agent-one", "{}"); got.body != "chat r_one" {
		t.Errorf("%+v", got)
	}
	if got := l.send("POST", ro+"/anthropic/v1/messages", "", "{}", "X-Api-Key", "agent-one"); got.body != "messages r_one" {
		t.Errorf("%+v", got)
	}
	if got := l.send("GET", ro+"/openai/v1/models", "agent-one", ""); got.body != "models r_one" {
		t.Errorf("%+v", got)
	}
	refused := l.send("POST", ro+"/calls", "wrong", "{}")
	for _, path := range []string{"/openai/v1/chat/completions", "/anthropic/v1/messages"} {
		if got := l.send("POST", ro+path, "wrong", "{}"); got.status != 404 || got.body != refused.body {
			t.Errorf("%s: %+v", path, got)
		}
	}
}

func TestExportOverHTTP(t *testing.T) {
	l := newLab(t)
	const path = "/v1/rollouts/r_one/trajectory?format="
	for query, want := range map[string]struct {
		status int
		words  string
	}{
		"openai": {200, `"proctor.export.openai/1"`}, "atif&blocked=mask": {200, `"blocked":"mask"`}, "slime": {422, "no_tokens"}, "swe-bench": {422, "no_patch"},
		"odd": {422, "invalid_field"}, "openai&blocked=odd": {422, "invalid_field"}, "proctor": {200, "proctor.trajectory/1"},
	} {
		got := l.send("GET", path+query, "trainer-key", "")
		if got.status != want.status || !strings.Contains(got.body, want.words) {
			t.Errorf("%s: %d %s", query, got.status, got.body)
		}
	}
	if got := l.send("GET", path+"openai", "trainer-key", "", "Accept-Encoding", "zstd"); got.header.Get("Content-Encoding") != "zstd" || !strings.HasPrefix(got.body, "\x28\xb5\x2f\xfd") {
		t.Errorf("compressed: %v %q", got.header, got.body)
	}
}

func TestGroupRoutes(t *testing.T) {
	l := newLab(t)
	if got := l.send("POST", "/v1/groups/g_one/abort", "trainer-key", "{}"); got.status != 200 || !strings.Contains(got.body, `"status":"done"`) {
		t.Errorf("abort: %+v", got)
	}
	if got := l.send("DELETE", "/v1/groups/g_one", "trainer-key", ""); got.status != 204 || got.body != "" {
		t.Errorf("delete: %+v", got)
	}
	got := l.send("GET", "/v1/groups/g_one/events", "trainer-key", "")
	if strings.Count(got.body, "event: group\n") != 1 || strings.Count(got.body, "event: done\n") != 1 {
		t.Errorf("events: %s", got.body)
	}
	if got := l.send("DELETE", "/v1/groups/g_one", "reviewer-key", ""); got.status != 404 {
		t.Errorf("a reviewer ends a group: %+v", got)
	}
}
