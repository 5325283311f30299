package export_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"proctor/internal/trajectory"
	"proctor/internal/trajectory/export"
	"proctor/internal/trajectory/trajtest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const shown = "cat: .eval/cases.json: No such file or directory\n"

// rollout gives a graded rollout of a play: every third turn's call was blocked.
func rollout(id string, p *trajtest.Play) *export.Rollout {
	one := 1.0
	ended := time.Unix(1_800_000_600, 0).UTC()
	r := &export.Rollout{
		ID: id, TaskID: "interval-merge", GroupID: "g_1", Instruction: "Fix the bug in intervals/merge.py.", PolicyName: "mine", PolicyVersion: "step-1", Model: "m",
		Status: "graded", StopReason: "submitted", FailureClass: "none", Outcome: "resolved", Reward: &one, Seed: 7, CreatedAt: time.Unix(1_800_000_000, 0).UTC(), EndedAt: &ended,
		Tools: json.RawMessage(`[{"type":"function","function":{"name":"bash","description":"Runs a command.","parameters":{"type":"object","properties":{"command":{"type":"string"}}}}}]`),
		Patch: []byte("diff --git a/x b/x\n"), ModelCalls: p.Calls, Segments: trajectory.Build(p.Calls),
	}
	for _, c := range p.Calls {
		m, err := trajectory.ParseMessage(c.Output)
		if err != nil {
			panic(err)
		}
		for _, t := range m.ToolCalls {
			if c.Disconnected {
				continue
			}
			rec := trajectory.ToolRecord{Ordinal: len(r.Calls) + 1, CallID: t.ID, Name: t.Name, Arguments: json.RawMessage(t.Arguments), Decision: "allow", Action: "executed",
				Agent: true, Shown: true, Output: "file\n", StartedAt: c.StartedAt, DurationMS: 20}
			if len(r.Calls)%3 == 1 {
				rec.Decision, rec.Action, rec.Class, rec.Rule, rec.Hits, rec.Hack, rec.Output = "block", "decoyed", "hidden_artifact", "core/hidden", 1, true, shown
			}
			r.Calls = append(r.Calls, rec)
		}
	}
	r.Guard = trajectory.Spans(r.Segments, r.ModelCalls, r.Calls)
	return r
}

func write(t testing.TB, form string, r *export.Rollout, blocked string) []byte {
	t.Helper()
	policy, err := trajectory.ParseBlockPolicy(blocked)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	err = export.Write(form, r, policy, func(d export.Document) error {
		if !json.Valid(d.Body) || bytes.ContainsRune(d.Body, '\n') || d.Name == "" {
			t.Errorf("%s: document %q is %.200s", form, d.Name, d.Body)
		}
		b.Write(d.Body)
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Every form of every kind of rollout, under every policy, holds what Check asks for.
func TestWrittenIsGood(t *testing.T) {
	for _, form := range export.Forms() {
		for seed := range uint64(8) {
			r := rollout("r_1", trajtest.Random(seed, 10))
			for _, blocked := range []string{"keep", "mask", "penalty:-0.5"} {
				text := write(t, form, r, blocked)
				rep, err := export.Check(bytes.NewReader(text))
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range rep.Problems {
					t.Fatalf("%s, seed %d, %s: %v", form, seed, blocked, p)
				}
				if rep.Forms[form] == 0 || rep.Rollouts != 1 {
					t.Fatalf("%s: report %+v", form, rep)
				}
				// What was shown for a blocked call is in every form, byte for byte.
				if !bytes.Contains(text, mustJSON(shown)) {
					t.Fatalf("%s: what was shown is not in it", form)
				}
			}
		}
	}
}

func mustJSON(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

func TestGolden(t *testing.T) {
	p := trajtest.New(5)
	p.Turn("ls", "file\n")
	p.Turn("cat .eval/cases.json", shown)
	p.Turn("make", "ok\n")
	r := rollout("r_golden", p)
	for _, form := range export.Forms() {
		text := write(t, form, r, "mask")
		path := filepath.Join("testdata", form+".jsonl")
		if *update {
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(text, want) {
			t.Errorf("%s: not as in %s; -update rewrites it\n%s", form, path, text)
		}
	}
}

// Check finds what is spoiled.
func TestCheckFinds(t *testing.T) {
	p := trajtest.New(5)
	p.Turn("ls", "file\n")
	p.Turn("cat .eval/cases.json", shown)
	p.Turn("make", "ok\n")
	r := rollout("r", p)
	for name, tc := range map[string]struct{ form, blocked, old, new, field string }{
		"cut off":                              {"slime", "keep", `}`, ``, "(document)"},
		"no stamp":                             {"slime", "keep", `"proctor"`, `"other"`, "proctor"},
		"another schema":                       {"slime", "keep", `proctor.export.slime/1`, `mine/1`, "proctor.schema"},
		"a later version":                      {"verl", "keep", `proctor.export.verl/1`, `proctor.export.verl/9`, "proctor.schema"},
		"a longer mask":                        {"slime", "keep", `"loss_mask":[`, `"loss_mask":[0,`, "loss_mask"},
		"a longer list":                        {"verl", "keep", `"response_logprobs":[`, `"response_logprobs":[0,`, "response_logprobs"},
		"a blocked turn trains":                {"slime", "keep", `"blocked":"keep"`, `"blocked":"mask"`, "proctor.guard[0]"},
		"a penalty is not there":               {"slime", "keep", `"blocked":"keep"`, `"blocked":"penalty:-1"`, "proctor.guard[0]"},
		"rejected, and there":                  {"verl", "keep", `"blocked":"keep"`, `"blocked":"reject"`, "proctor.guard[0]"},
		"a reward of infra":                    {"openai", "keep", `"failure_class":"none"`, `"failure_class":"infra"`, "proctor.reward"},
		"another observation":                  {"swe-agent", "keep", `"observation":"cat: .eval`, `"observation":"dog: .eval`, "trajectory[1].observation"},
		"a status":                             {"slime", "keep", `"status":"completed"`, `"status":"odd"`, "status"},
		"an answer to no call":                 {"openai", "keep", `"tool_call_id":"call_1"`, `"tool_call_id":"odd"`, "messages[3].tool_call_id"},
		"no weight":                            {"openai", "keep", `,"weight":1`, ``, "messages[2].weight"},
		"an ATIF of another day":               {"atif", "keep", `ATIF-v1.7`, `ATIF-v1.0`, "schema_version"},
		"no patch":                             {"swe-bench", "keep", `"model_patch"`, `"patch"`, "instance_id"},
		"another log version":                  {"inspect", "keep", `{"version":2`, `{"version":3`, "version"},
		"a node without its mask":              {"verifiers", "keep", `"mask":[]`, `"mask":[false]`, "nodes[0].mask"},
		"a parent that comes later":            {"verifiers", "keep", `"parent":0`, `"parent":7`, "nodes[1].parent"},
		"a trace of a masked turn that trains": {"verifiers", "keep", `"blocked":"keep"`, `"blocked":"mask"`, "proctor.guard[0]"},
		"a trace of another day":               {"verifiers", "keep", `{"version":1`, `{"version":9`, "version"},
		"a path past the nodes":                {"verifiers", "keep", `"leaf":`, `"leaf":99`, "info.paths[0].leaf"},
	} {
		t.Run(name, func(t *testing.T) {
			text := string(write(t, tc.form, r, tc.blocked))
			if tc.new == "" && tc.old == "}" {
				text = strings.TrimRight(text, "}\n")
			} else if !strings.Contains(text, tc.old) {
				t.Fatalf("%q is not in %s", tc.old, text)
			}
			text = strings.Replace(text, tc.old, tc.new, 1)
			rep, err := export.Check(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range rep.Problems {
				if p.Field == tc.field {
					return
				}
			}
			t.Errorf("problems %v, want one of %s", rep.Problems, tc.field)
		})
	}
}

func TestRefusals(t *testing.T) {
	keep := trajectory.BlockPolicy{Way: trajectory.Keep}
	none := func(export.Document) error { return errors.New("a document was written") }
	p := trajtest.New(1)
	p.Turn("ls", "x", func(c *trajectory.ModelCall) {
		c.PromptIDs, c.OutputIDs, c.Logprobs, c.TextOnly = nil, nil, nil, "the server gave none"
	})
	for _, form := range []string{export.Slime, export.Verl} {
		err := export.Write(form, rollout("r", p), keep, none)
		if !errors.Is(err, export.ErrNoTokens) || !strings.Contains(err.Error(), "the server gave none") {
			t.Errorf("%s of text: %v", form, err)
		}
		if err := export.Write(form, &export.Rollout{ID: "r"}, keep, none); !errors.Is(err, export.ErrNoTokens) {
			t.Errorf("%s of nothing: %v", form, err)
		}
	}
	if err := export.Write(export.SWEBench, &export.Rollout{ID: "r"}, keep, none); !errors.Is(err, export.ErrNoPatch) {
		t.Errorf("no patch: %v", err)
	}
	q := trajtest.New(1)
	q.Turn("ls", "x")
	q.Turn("cat .eval/cases.json", "x")
	if err := export.Write(export.OpenAI, rollout("r", q), trajectory.BlockPolicy{Way: trajectory.Reject}, none); !errors.Is(err, export.ErrRejected) {
		t.Errorf("rejected: %v", err)
	}
	if err := export.Write("odd", rollout("r", q), keep, none); err == nil {
		t.Error("an odd form is written")
	}
}

// A rollout without the gateway is told by its calls, in the forms that need no tokens.
func TestWithoutModelCalls(t *testing.T) {
	r := rollout("r", trajtest.New(1))
	r.Calls = []trajectory.ToolRecord{{Ordinal: 1, Name: "bash", Arguments: json.RawMessage(`{"command":"ls"}`), Decision: "block", Rule: "core/x", Agent: true, Shown: true, Output: shown}}
	r.Guard = trajectory.Spans(nil, nil, r.Calls)
	for _, form := range []string{export.OpenAI, export.ATIF, export.SWEAgent, export.Inspect, export.Verifiers, export.SWEBench} {
		text := write(t, form, r, "keep")
		rep, err := export.Check(bytes.NewReader(text))
		if err != nil || len(rep.Problems) > 0 || rep.Documents != 1 {
			t.Errorf("%s: %+v %v\n%s", form, rep, err, text)
		}
	}
}

func FuzzCheck(f *testing.F) {
	r := rollout("r", trajtest.Random(3, 6))
	for _, form := range export.Forms() {
		f.Add(write(f, form, r, "mask"))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		rep, err := export.Check(bytes.NewReader(text))
		if err != nil {
			t.Errorf("%v on a reader that does not fail", err)
		}
		if rep.Documents > bytes.Count(text, []byte("\n"))+1 {
			t.Errorf("%d documents in %q", rep.Documents, text)
		}
	})
}

// BenchmarkWrite is the speed of a form over a rollout of 60 turns, in bytes of output.
func BenchmarkWrite(b *testing.B) {
	r := rollout("r", long(60))
	keep := trajectory.BlockPolicy{Way: trajectory.Keep}
	for _, form := range export.Forms() {
		b.Run(form, func(b *testing.B) {
			b.ReportAllocs()
			size := int64(0)
			for range b.N {
				size = 0
				if err := export.Write(form, r, keep, func(d export.Document) error { size += int64(len(d.Body)); return nil }); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(size)
		})
	}
}

// long plays turns of 200 sampled tokens and 2,000 of observation.
func long(turns int) *trajtest.Play {
	p := trajtest.New(1)
	for i := range turns {
		p.Turn(fmt.Sprintf("python -m pytest -q tests/test_%d.py %s", i, strings.Repeat("x", 150)), strings.Repeat("a line of output\n", 120))
	}
	return p
}
