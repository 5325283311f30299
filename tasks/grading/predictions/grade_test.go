package predictions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"proctor/sandbox"
	"proctor/sandbox/sandboxtest"
	"proctor/tasks"
)

// bench is a set of two tasks on the fake engine, whose tests pass where a.txt holds "fix".
func bench(t *testing.T) (*sandboxtest.Fake, *Runner) {
	t.Helper()
	fake := &sandboxtest.Fake{}
	fake.OnCreate = func(_ context.Context, s *sandboxtest.FakeSession, _ sandbox.Spec) error {
		s.SetFile("/w/a.txt", []byte("bug\n"))
		return nil
	}
	fake.OnExec = func(_ context.Context, s *sandboxtest.FakeSession, e sandbox.Exec) (sandbox.ExecResult, error) {
		status := 0
		if e.Argv[0] == "/bin/sh" && string(s.File("/w/a.txt")) != "fix\n" {
			status = 1
		}
		return sandbox.ExecResult{Exit: &status}, nil
	}
	r := &Runner{Engine: fake, Parallel: 2, Logger: slog.New(slog.DiscardHandler)}
	for _, id := range []string{"a", "b"} {
		r.Tasks = append(r.Tasks, &tasks.Task{ID: id, Workdir: "/w", Grader: &tasks.Grader{Kind: "patch", Command: "check", Report: "exit", FailToPass: []string{"t"}, PassToPass: []string{}}})
	}
	r.Prepare = func(_ context.Context, task *tasks.Task, _ bool) (*tasks.Prepared, error) {
		return &tasks.Prepared{Task: task, Image: sandbox.Image{Ref: "demo"}}, nil
	}
	return fake, r
}

const goodPatch = `--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-bug\n+fix\n`

func feed(text string) func(each func(Row) error) error {
	return func(each func(Row) error) error { return Read("p", strings.NewReader(text), each) }
}

func outcomes(results []Result) map[string]string {
	out := map[string]string{}
	for _, r := range results {
		if r.Grade != nil {
			out[r.Place] = r.Grade.Outcome
		} else {
			out[r.Place] = r.Class
		}
	}
	return out
}

func TestGradeRows(t *testing.T) {
	fake, r := bench(t)
	reviewed := 0
	r.Review = func(context.Context, *tasks.Task, []byte) *tasks.Review {
		reviewed++
		return &tasks.Review{Verdict: "benign"}
	}
	r.Parallel = 1
	results, err := r.Grade(context.Background(), feed(`{"instance_id": "a", "model_name_or_path": "m", "model_patch": "`+goodPatch+`"}
{"instance_id": "b", "model_name_or_path": "m", "model_patch": "nonsense"}
{"instance_id": "a", "model_name_or_path": "m", "model_patch": "again"}
{"instance_id": "a", "model_name_or_path": "n", "model_patch": ""}
{"instance_id": "x", "model_name_or_path": "m", "model_patch": "?"}
{"instance_id": "b", "model_name_or_path": "n", "model_patch": "`+strings.ReplaceAll(goodPatch, "fix", "wrong")+`"}
broken`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"p:1": tasks.Resolved, "p:2": tasks.PatchFailed, "p:3": ClassDuplicate, "p:4": tasks.EmptyPatch, "p:5": ClassUnknown, "p:6": tasks.Unresolved, "p:7": ClassRow}
	if got := outcomes(results); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
	if left, _ := fake.List(context.Background()); len(left) != 0 || reviewed != 3 {
		t.Errorf("%d sandboxes left, %d patches reviewed", len(left), reviewed)
	}
	ofM := slices.DeleteFunc(slices.Clone(results), func(r Result) bool { return r.Model != "m" })
	report := Run([]string{"a", "b", "c"}, ofM)
	if report.Total != 3 || report.Submitted != 3 || !slices.Equal(report.ResolvedIDs, []string{"a"}) || !slices.Equal(report.ErrorIDs, []string{"b"}) || !slices.Equal(report.IncompleteIDs, []string{"c"}) {
		t.Errorf("%+v", report)
	}
}

func TestHugePatchMakesNoSandbox(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED under -short: a patch of 100 MB")
	}
	fake, r := bench(t)
	made := 0
	fake.OnCreate = func(context.Context, *sandboxtest.FakeSession, sandbox.Spec) error { made++; return nil }
	results, err := r.Grade(context.Background(), func(each func(Row) error) error {
		return each(Row{File: "p", Index: 1, InstanceID: "a", Model: "m", Patch: make([]byte, 100<<20)})
	})
	if err != nil || len(results) != 1 || results[0].Grade.Outcome != tasks.PatchFailed || results[0].Grade.FailureClass != sandbox.FailureModel || made != 0 {
		t.Errorf("%+v, %v, %d sandboxes", results, err, made)
	}
}

func TestGradeTrouble(t *testing.T) {
	cannot := func(err error) func(*sandboxtest.Fake, *Runner) {
		return func(_ *sandboxtest.Fake, r *Runner) {
			r.Prepare = func(context.Context, *tasks.Task, bool) (*tasks.Prepared, error) { return nil, err }
		}
	}
	for name, tc := range map[string]struct {
		fault func(fake *sandboxtest.Fake, r *Runner)
		class string
	}{
		"engine down": {func(f *sandboxtest.Fake, _ *Runner) { f.Down = sandbox.ErrUnavailable }, sandbox.FailureInfra},
		"no image":    {cannot(fmt.Errorf("x: %w", sandbox.ErrNoImage)), sandbox.FailureTask},
		"daemon":      {cannot(errors.New("down")), sandbox.FailureInfra},
		"no grader":   {func(_ *sandboxtest.Fake, r *Runner) { r.Tasks[0].Grader = nil }, sandbox.FailureTask},
	} {
		fake, r := bench(t)
		tc.fault(fake, r)
		results, err := r.Grade(context.Background(), feed(`{"instance_id": "a", "model_patch": "`+goodPatch+`"}`))
		if err != nil || len(results) != 1 || results[0].Grade == nil || results[0].Grade.Outcome != tasks.InfraFailure || results[0].Grade.FailureClass != tc.class || results[0].Grade.Reward != nil {
			t.Errorf("%s: %+v, %v", name, results, err)
		}
	}
}

func TestGradeCancelled(t *testing.T) {
	_, r := bench(t)
	ctx, cancel := context.WithCancel(context.Background())
	r.Done = func(Result, []byte) error { cancel(); return nil }
	_, err := r.Grade(ctx, feed(strings.Repeat(`{"instance_id": "a", "model_patch": ""}`+"\n", 50)))
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A run that is stopped at any row and started again grades each patch once and ends with the same reports.
func TestResume(t *testing.T) {
	text := `{"instance_id": "a", "model_name_or_path": "m/1", "model_patch": "` + goodPatch + `"}
{"instance_id": "b", "model_name_or_path": "m/1", "model_patch": "nonsense"}
`
	dir := t.TempDir()
	graded := 0
	run := func(fail error) ([]Result, error) {
		fake, r := bench(t)
		create := fake.OnCreate
		fake.OnCreate = func(ctx context.Context, s *sandboxtest.FakeSession, spec sandbox.Spec) error {
			graded++
			return create(ctx, s, spec)
		}
		folder, err := Open(dir, "r")
		if err != nil {
			t.Fatal(err)
		}
		defer folder.Close()
		r.Parallel, r.Known = 1, folder.Known
		r.Done = func(res Result, patch []byte) error { return errors.Join(folder.Keep(res, patch), fail) }
		results, err := r.Grade(context.Background(), feed(text))
		if err == nil {
			_, err = folder.Reports([]string{"a", "b"}, results)
		}
		return results, err
	}
	if _, err := run(errors.New("killed")); err == nil {
		t.Fatal("the run went on though its journal failed")
	}
	f, err := os.OpenFile(filepath.Join(dir, JournalFile), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"instance_id": "b", "mod`); err != nil { // a crash in the middle of a line
		t.Fatal(err)
	}
	f.Close()
	results, err := run(nil)
	if err != nil || len(results) != 2 {
		t.Fatalf("%+v, %v", results, err)
	}
	before := graded
	again, err := run(nil)
	if err != nil || graded != before {
		t.Errorf("%d gradings where all was known; %v", graded-before, err)
	}
	if fmt.Sprint(outcomes(again)) != fmt.Sprint(outcomes(results)) || !again[0].Known {
		t.Errorf("%v, then %v", outcomes(results), outcomes(again))
	}
	var report RunReport
	data, err := os.ReadFile(filepath.Join(dir, "m__1.r.json"))
	if err != nil || json.Unmarshal(data, &report) != nil || report.Resolved != 1 || report.Errors != 1 || report.Schema != 2 {
		t.Errorf("%s, %v", data, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "logs/run_evaluation/r/m__1/a/report.json")); err != nil {
		t.Error(err)
	}
	lines, _ := os.ReadFile(filepath.Join(dir, JournalFile))
	if n := strings.Count(string(lines), "\n"); n != 2 {
		t.Errorf("%d lines in the journal: %s", n, lines)
	}
}

func TestFolderNames(t *testing.T) {
	for name, want := range map[string]string{"org/model": "org__model", "..": "_..", ".": "_.", "a\\b": "a__b"} {
		if got := fileName(name); got != want {
			t.Errorf("%q: %q", name, got)
		}
	}
	if _, err := Open(t.TempDir(), "../x"); err == nil {
		t.Error("a run id that leads out was taken")
	}
}

// The harness's own report of the files that we write agrees with ours.
func TestReportAgainstSwebench(t *testing.T) {
	python := os.Getenv("PROCTOR_SWEBENCH_PYTHON")
	if python == "" {
		t.Skip("SKIPPED: holds the reports to the swebench package itself: make grading-swebench")
	}
	dir := t.TempDir()
	folder, err := Open(dir, "r")
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	var results []Result
	preds := map[string]map[string]any{}
	for i, outcome := range []string{tasks.Resolved, tasks.Unresolved, tasks.Tampered, tasks.EmptyPatch, tasks.PatchFailed} {
		id, patch := fmt.Sprintf("org__x-%d", i), "p"
		g := &tasks.Grade{Outcome: outcome, Tests: tasks.Tests{FailToPass: tasks.TestList{Passed: []string{"a"}}, PassToPass: tasks.TestList{Failed: []string{"b"}}}}
		if outcome == tasks.EmptyPatch {
			patch = ""
		}
		preds[id] = map[string]any{"instance_id": id, "model_name_or_path": "m/1", "model_patch": patch}
		res := Result{InstanceID: id, Model: "m/1", Key: id, Grade: g}
		results = append(results, res)
		if err := folder.Keep(res, []byte(patch)); err != nil {
			t.Fatal(err)
		}
	}
	set := []string{"org__x-0", "org__x-1", "org__x-2", "org__x-3", "org__x-4", "org__x-5"}
	ours, err := folder.Reports(set, results)
	if err != nil {
		t.Fatal(err)
	}
	input, err := json.Marshal(map[string]any{"predictions": preds, "set": set, "run": "r"})
	if err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("testdata/report.py")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, script)
	cmd.Dir, cmd.Stdin, cmd.Stderr = dir, strings.NewReader(string(input)), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var theirs RunReport
	dec := json.NewDecoder(strings.NewReader(string(out)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&theirs); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if fmt.Sprintf("%+v", theirs) != fmt.Sprintf("%+v", ours["m/1"]) {
		t.Errorf("the harness says\n%+v\nours is\n%+v", theirs, ours["m/1"])
	}
}
