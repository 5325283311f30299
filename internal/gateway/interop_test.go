//go:build interop

package gateway

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"proctor/internal/trajectory"
	"proctor/judge/judgetest"
)

// python runs a script of testdata with the interpreter of the venv that .ci/interop.sh made.
func python(t *testing.T, script string, args ...string) map[string]any {
	t.Helper()
	interpreter := os.Getenv("PROCTOR_INTEROP_PYTHON")
	if interpreter == "" {
		t.Fatal("PROCTOR_INTEROP_PYTHON names no interpreter; run make interop")
	}
	cmd := exec.CommandContext(t.Context(), interpreter, append([]string{filepath.Join("testdata", script)}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	var got map[string]any
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%s printed %s", script, out)
	}
	return got
}

// The official clients of OpenAI and Anthropic, whole and streamed, with tools, before recorded shapes.
func TestOfficialClientsOnRecordedShapes(t *testing.T) {
	w := newWorld(t)
	whole, err := os.ReadFile("testdata/vllm.json")
	if err != nil {
		t.Fatal(err)
	}
	events, err := os.ReadFile("testdata/vllm.sse")
	if err != nil {
		t.Fatal(err)
	}
	w.does(func(rw http.ResponseWriter, r *http.Request) {
		var ask struct{ Stream bool }
		_ = json.NewDecoder(r.Body).Decode(&ask)
		if ask.Stream {
			rw.Header().Set("Content-Type", "text/event-stream")
			_, _ = rw.Write(events)
			return
		}
		rw.Header().Set("Content-Type", "application/json")
		_, _ = rw.Write(whole)
	})
	got := python(t, "clients.py", w.front.URL)
	for key, want := range map[string]string{
		"openai": "Hi|bash|{\"command\": \"ls\"}|tool_calls|-0.25", "openai_stream": "Hello|bash|{\"command\": \"ls\"}|tool_calls",
		"anthropic": "Hi|bash|{\"command\": \"ls\"}|tool_use", "anthropic_stream": "Hello|bash|{\"command\": \"ls\"}|tool_use",
	} {
		if got[key] != want {
			t.Errorf("%s gives %v, want %s", key, got[key], want)
		}
	}
	for _, c := range w.calls(4) {
		if c.TextOnly != "" || len(c.OutputIDs) == 0 {
			t.Errorf("recorded %+v", c)
		}
	}
}

// The same against a real server that samples: llama.cpp with a tiny model of random weights.
func TestOfficialClientsOnLlama(t *testing.T) {
	w := newWorld(t)
	w.target = Target{BaseURL: judgetest.Llama(t, "--ctx-size", "4096", "--jinja") + "/v1", Model: "tiny"}
	got := python(t, "clients.py", w.front.URL, "short")
	t.Logf("the clients got %v", got)
	calls := w.calls(4)
	for _, c := range calls {
		if c.TextOnly != "" || len(c.PromptIDs) == 0 || len(c.OutputIDs) == 0 || len(c.Logprobs) != len(c.OutputIDs) {
			t.Errorf("recorded %+v", c)
		}
	}
	if problems := trajectory.CheckSegments(trajectory.Build(calls)); len(problems) > 0 {
		t.Error(problems)
	}
}
