package gateway

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"proctor/internal/trajectory"
)

// counted gives what the counters of results stand at.
func counted(t *testing.T, r *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			at[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
		}
	}
	return at
}

// A server that does not tell its weights' version, or in a form that is none, is recorded without one and
// counted; tokens and masks are the same as ever.
func TestUnknownVersions(t *testing.T) {
	for told, want := range map[string]string{``: "", `"weight_version":null,`: "", `"weight_version":{"a":1},`: "", `"weight_version":["3"],`: "", `"weight_version":12,`: "12", `"weight_version":"v3",`: "v3"} {
		t.Run(told, func(t *testing.T) {
			w := newWorld(t)
			registry := prometheus.NewRegistry()
			metrics, err := NewMetrics(registry)
			if err != nil {
				t.Fatal(err)
			}
			w.gateway.opt.Metrics = metrics
			w.does(func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Content-Type", "application/json")
				_, _ = fmt.Fprintf(rw, `{"object":"chat.completion",%s"model":"served","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"logprobs":{"content":[{"token":"Hi","logprob":-0.25}]},"finish_reason":"stop","token_ids":[7]}],"prompt_token_ids":[1,2]}`, told)
			})
			if status, _, got := w.ask(chat, hello); status != 200 {
				t.Fatal(status, got)
			}
			c := w.calls(1)[0]
			if c.VersionStart != want || c.VersionEnd != want || !slices.Equal(c.OutputIDs, []int32{7}) || c.TextOnly != "" {
				t.Errorf("recorded %+v", c)
			}
			s := trajectory.Build([]*trajectory.ModelCall{c})[0]
			if len(s.Versions) > 0 != (want != "") || !slices.Equal(s.LossMask, []int8{0, 0, 1}) {
				t.Errorf("versions %v, loss mask %v", s.Versions, s.LossMask)
			}
			if at := counted(t, registry); at["unknown_version"] > 0 != (want == "") {
				t.Errorf("counted %v", at)
			}
		})
	}
}

// Requests under keys that come again late and in another order get the first answers, change nothing of the
// record, and train nothing twice.
func TestRetriesOutOfOrder(t *testing.T) {
	w := newWorld(t)
	n := 0
	w.does(func(rw http.ResponseWriter, r *http.Request) {
		n++
		rw.Header().Set("Content-Type", "application/json")
		ids := []string{"1,2", "1,2,101,3", "1,2,101,3,102,4"}[min(n, 3)-1]
		_, _ = fmt.Fprintf(rw, `{"object":"chat.completion","model":"served","choices":[{"index":0,"message":{"role":"assistant","content":"answer %d"},"logprobs":{"content":[{"token":"x","logprob":-0.25}]},"finish_reason":"stop","token_ids":[%d]}],"prompt_token_ids":[%s]}`, n, 100+n, ids)
	})
	turn := func(i int) string {
		messages := []string{`{"role":"user","content":"Hello"}`}
		for k := 1; k < i; k++ {
			messages = append(messages, fmt.Sprintf(`{"role":"assistant","content":"answer %d"}`, k), `{"role":"user","content":"go on"}`)
		}
		return `{"model":"m","messages":[` + strings.Join(messages, ",") + `]}`
	}
	for _, i := range []int{1, 2, 1, 3, 2, 1, 3} {
		status, _, got := w.ask(chat, turn(i), "Idempotency-Key", fmt.Sprint("turn-", i))
		if status != 200 || !strings.Contains(got, fmt.Sprintf(`"answer %d"`, i)) {
			t.Fatalf("turn %d: %d %s", i, status, got)
		}
	}
	segments := trajectory.Build(w.calls(3))
	if problems := trajectory.CheckSegments(segments); len(problems) > 0 || len(segments) != 1 {
		t.Fatalf("%d segments: %v", len(segments), problems)
	}
	if s := segments[0]; !slices.Equal(s.Tokens, []int32{1, 2, 101, 3, 102, 4, 103}) || !slices.Equal(s.LossMask, []int8{0, 0, 1, 0, 1, 0, 1}) {
		t.Errorf("tokens %v, loss mask %v", s.Tokens, s.LossMask)
	}
}
