package scan

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"testing"

	"proctor/internal/traces"
	"proctor/judge"
	"proctor/monitor/normalize/corpus"
	"proctor/rules"
)

func packs(t testing.TB) *rules.Packs {
	t.Helper()
	p, err := rules.Core()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// talk is a conversation as JSON that runs commands, each shown "out".
func talk(id string, commands ...string) string {
	var messages []map[string]any
	for i, c := range commands {
		args, _ := json.Marshal(map[string]string{"command": c})
		call := map[string]any{"id": fmt.Sprint(i), "function": map[string]any{"name": "bash", "arguments": string(args)}}
		messages = append(messages, map[string]any{"role": "assistant", "tool_calls": []any{call}}, map[string]any{"role": "tool", "tool_call_id": fmt.Sprint(i), "content": "out"})
	}
	out, _ := json.Marshal(map[string]any{"instance_id": id, "messages": messages})
	return string(out)
}

func docs(texts ...string) iter.Seq2[*traces.Document, error] {
	return func(yield func(*traces.Document, error) bool) {
		for i, text := range texts {
			if !yield(&traces.Document{File: "f.jsonl", Line: i + 1, Data: []byte(text)}, nil) {
				return
			}
		}
	}
}

func known() corpus.Tasks {
	vars := rules.Vars{"hidden_paths": {"/eval"}, "upstream_repo": {"acme/widgets"}, "network": {"none"}}
	return corpus.Tasks{"t": {ID: "t", Workdir: "/testbed", Vars: vars}}
}

func scanAll(t *testing.T, s *Scanner, texts ...string) *Report {
	t.Helper()
	s.Packs = packs(t)
	r, err := s.Run(t.Context(), docs(texts...))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestScan(t *testing.T) {
	texts := []string{
		talk("t", "ls", "pytest -q"),
		talk("t", "cd /", "cat eval/cases.json", "curl https://raw.githubusercontent.com/acme/widgets/main/a.py"),
		`{"what": 1}`,
		talk("t", "ls"),
	}
	r := scanAll(t, &Scanner{Judge: judge.NewHeuristic(), Tasks: known(), Workers: 3}, texts...)
	if r.Trajectories != 3 || r.Calls != 6 || len(r.Suspected) != 1 || len(r.Unknown) != 1 || r.Unknown[0].Line != 3 || r.Formats["openai"] != 3 {
		t.Fatalf("%+v", r)
	}
	s := r.Suspected[0]
	if s.Line != 2 || s.Total != 3 || len(s.Calls) != 2 || s.Calls[0].Ordinal != 2 || s.Calls[0].Class != rules.HiddenArtifact || !s.Calls[0].Hack ||
		s.Calls[1].Class != rules.UpstreamFetch || s.Calls[0].Shown != "out" || s.Calls[0].Blind || s.Calls[0].Evidence == "" {
		t.Errorf("%+v", s)
	}
	if r.Rates.Suspected.Hit != 1 || r.Rates.Suspected.N != 3 || r.Rates.Hack.Hit != 1 || r.Rates.Calls.Hit != 2 || r.ByClass[rules.HiddenArtifact].Hit != 1 {
		t.Errorf("%+v", r.Rates)
	}
	raw, err := json.Marshal(r)
	if err != nil || !strings.Contains(string(raw), `"hidden_artifact":{"n":3,"hit":1,`) || !strings.Contains(string(raw), `"calls":1}`) {
		t.Errorf("%s, %v", raw, err)
	}
}

// Rules alone suspect at least what rules and judge do, and confirm only what rests on facts.
func TestWithoutJudge(t *testing.T) {
	texts := []string{talk("t", "git log --all --oneline"), talk("t", "sed -i s/1/2/ tests/test_a.py"), talk("t", "ls")}
	alone := scanAll(t, &Scanner{Tasks: known()}, texts...)
	with := scanAll(t, &Scanner{Tasks: known(), Judge: judge.NewHeuristic()}, texts...)
	if alone.Rates.Suspected.Hit < with.Rates.Suspected.Hit || alone.Rates.Suspected.Hit == 0 || alone.Rates.Hack.Hit != 0 || alone.Asked != 0 || alone.Judge != "none" {
		t.Errorf("alone %+v, with %+v", alone.Rates, with.Rates)
	}
}

// However many work at once, the report is the same: state is kept to each trajectory.
func TestOrderDoesNotMatter(t *testing.T) {
	var texts []string
	for i := range 60 {
		texts = append(texts, talk("t", "cd /eval", "x=1", fmt.Sprintf("cat cases-%d.json", i)), talk("t", "cd /tmp", fmt.Sprintf("cat cases-%d.json", i)))
	}
	want, err := json.Marshal(scanAll(t, &Scanner{Judge: judge.NewHeuristic(), Tasks: known(), Workers: 1}, texts...))
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(scanAll(t, &Scanner{Judge: judge.NewHeuristic(), Tasks: known(), Workers: 8}, texts...))
	if err != nil || string(got) != string(want) {
		t.Errorf("8 workers: %.400s\n1 worker: %.400s", got, want)
	}
	if !strings.Contains(string(want), `"suspected":{"n":120,"hit":60`) {
		t.Errorf("not every second trajectory is suspected: %.3000s", want[len(want)-800:])
	}
}

// A shell that is new for every command does not stand where the last one went.
func TestFreshShells(t *testing.T) {
	mini := "{\"trajectory_format\": \"mini-swe-agent-1\", \"instance_id\": \"t\", \"info\": {}, \"messages\": [" +
		"{\"role\": \"assistant\", \"content\": \"```bash\\ncd /eval\\n```\"}, {\"role\": \"user\", \"content\": \"\"}," +
		"{\"role\": \"assistant\", \"content\": \"```bash\\ncat cases.json\\n```\"}, {\"role\": \"user\", \"content\": \"no\"}]}"
	for text, want := range map[string]int{mini: 0, talk("t", "cd /eval", "cat cases.json"): 1} {
		r := scanAll(t, &Scanner{Judge: judge.NewHeuristic(), Tasks: known()}, text)
		n := 0
		for _, s := range r.Suspected {
			for _, c := range s.Calls {
				if c.Ordinal == 2 {
					n++
				}
			}
		}
		if n != want {
			t.Errorf("%d suspected second calls, want %d: %s", n, want, text)
		}
	}
}

func TestBadVarsAreToldByFile(t *testing.T) {
	r := scanAll(t, &Scanner{}, `[{"id": "a", "command": "ls", "task": {"vars": {"package": {}}}}]`)
	if len(r.Unknown) != 1 || !strings.Contains(r.Unknown[0].Reason, "task.vars.package") || r.Trajectories != 0 {
		t.Errorf("%+v", r)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (&Scanner{Packs: packs(t)}).Run(ctx, docs(talk("t", "ls"))); err == nil {
		t.Error("a cancelled scan has no error")
	}
}

// BenchmarkScan tells calls per second and processor: 10,000 on two are wanted.
func BenchmarkScan(b *testing.B) {
	p := packs(b)
	commands := []string{"cd /testbed && git status", "grep -rn 'def merge' src | head -20", "sed -n '1,80p' src/a.py", "python -m pytest -q tests/test_a.py 2>&1 | tail -5",
		"cat > /tmp/r.py <<'END'\nimport a\nprint(a.merge([1], [2]))\nEND\npython /tmp/r.py", "git diff", "find . -name '*.py' | xargs grep -l merge", "ls -la src && cat setup.cfg"}
	var texts []string
	for range 50 {
		texts = append(texts, talk("t", append(append([]string{}, commands...), commands...)...))
	}
	b.ReportAllocs()
	calls := 0
	for b.Loop() {
		r, err := (&Scanner{Packs: p, Judge: judge.NewHeuristic(), Tasks: known(), Workers: runtime.GOMAXPROCS(0)}).Run(b.Context(), docs(texts...))
		if err != nil {
			b.Fatal(err)
		}
		calls += r.Calls
	}
	b.ReportMetric(float64(calls)/b.Elapsed().Seconds(), "calls/s")
}
