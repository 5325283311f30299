package grading

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"proctor/sandbox"
	"proctor/sandbox/sandboxtest"
	"proctor/tasks"
)

// bench is a task of two files on the fake engine. Its "tests" pass where a.txt says so.
type bench struct {
	*sandboxtest.Fake
	subject Subject
	agent   *sandboxtest.FakeSession
	// verdict answers the test command of a grader's sandbox.
	verdict func(s *sandboxtest.FakeSession, command string) (sandbox.ExecResult, error)
}

func newBench(t *testing.T) *bench {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"hidden/tests/t.py": "hidden", "gold.patch": "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-bug\n+fix\n", "solve.sh": "solve"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b := &bench{Fake: &sandboxtest.Fake{}, subject: Subject{Image: "demo", Task: &tasks.Task{
		ID: "t", Workdir: "/w", TestPaths: []string{"tests/"}, Dir: dir, Solution: "gold.patch", Limits: tasks.Limits{},
		Grader: &tasks.Grader{Kind: "patch", Files: "hidden", Command: "check {report}", Report: "exit", FailToPass: []string{"t.py::a"}},
	}}}
	b.OnCreate = func(_ context.Context, s *sandboxtest.FakeSession, _ sandbox.Spec) error {
		s.SetFile("/w/a.txt", []byte("bug\n"))
		s.SetFile("/w/tests/t.py", []byte("visible"))
		return nil
	}
	b.OnExec = func(_ context.Context, s *sandboxtest.FakeSession, e sandbox.Exec) (sandbox.ExecResult, error) {
		if e.Argv[0] == "/bin/sh" {
			return b.verdict(s, e.Argv[len(e.Argv)-1])
		}
		return exited(0), nil // mkdir, rm, rmdir
	}
	b.verdict = func(s *sandboxtest.FakeSession, _ string) (sandbox.ExecResult, error) {
		if string(s.File("/w/a.txt")) == "fix\n" && string(s.File("/w/tests/t.py")) == "hidden" {
			return exited(0), nil
		}
		return exited(1), nil
	}
	agent, err := b.Create(context.Background(), sandbox.Spec{Image: "demo", Workdir: "/w"})
	if err != nil {
		t.Fatal(err)
	}
	b.agent = b.Session(agent.ID())
	b.agent.SetFile("/w/a.txt", []byte("fix\n"))
	return b
}

func exited(code int) sandbox.ExecResult { return sandbox.ExecResult{Exit: &code} }

var quiet = Options{Logger: slog.New(slog.DiscardHandler)}

func (b *bench) grade(t *testing.T, ctx context.Context) tasks.Grade {
	t.Helper()
	grade, err := Grade(ctx, b, b.subject, b.agent, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := b.List(context.Background()); len(left) != 1 {
		t.Errorf("%d sandboxes are left, want the agent's alone", len(left))
	}
	return grade
}

func TestGradeOnFake(t *testing.T) {
	b := newBench(t)
	var told []byte
	opts := quiet
	opts.Patched = func(patch []byte) { told = patch }
	grade, err := Grade(context.Background(), b, b.subject, b.agent, opts)
	if err != nil || grade.Outcome != tasks.Resolved || *grade.Reward != 1 || len(grade.PatchSHA256) != 64 || !strings.Contains(string(told), "+fix") {
		t.Fatalf("%+v, %v, patch %q", grade, err, told)
	}
	b.agent.SetFile("/w/tests/t.py", []byte("mine"))
	b.agent.SetFile("/w/a.txt", []byte("wrong\n"))
	if grade = b.grade(t, context.Background()); grade.Outcome != tasks.Unresolved || *grade.Reward != 0 || len(grade.Notes) == 0 {
		t.Errorf("%+v", grade)
	}
}

func TestGradeFaults(t *testing.T) {
	boom := errors.New("boom")
	dead := func(class string) error { return &sandbox.DeadError{Class: class, Reason: "gone"} }
	for name, tc := range map[string]struct {
		fault          func(b *bench)
		outcome, class string
	}{
		"engine down":         {func(b *bench) { b.Down = sandbox.ErrUnavailable }, tasks.InfraFailure, sandbox.FailureInfra},
		"image gone":          {func(b *bench) { b.subject.Image = "no-such" }, tasks.InfraFailure, sandbox.FailureInfra},
		"exec fails":          {func(b *bench) { b.verdict = failing(boom) }, tasks.InfraFailure, sandbox.FailureInfra},
		"engine dies in test": {func(b *bench) { b.verdict = failing(dead(sandbox.FailureInfra)) }, tasks.InfraFailure, sandbox.FailureInfra},
		"tests kill sandbox":  {func(b *bench) { b.verdict = failing(dead(sandbox.FailureModel)) }, tasks.Unresolved, sandbox.FailureModel},
		"agent dead by model": {func(b *bench) { b.agent.Die(sandbox.FailureModel, "out of memory") }, tasks.PatchFailed, sandbox.FailureModel},
		"agent dead by infra": {func(b *bench) { b.agent.Die(sandbox.FailureInfra, "host") }, tasks.InfraFailure, sandbox.FailureInfra},
		"hidden files gone":   {func(b *bench) { b.subject.Task.Grader.Files = "nowhere" }, tasks.InfraFailure, sandbox.FailureTask},
		"setup command fails": {func(b *bench) { b.OnExec = refusing }, tasks.InfraFailure, sandbox.FailureInfra},
		"timeout": {func(b *bench) {
			b.verdict = func(*sandboxtest.FakeSession, string) (sandbox.ExecResult, error) {
				return sandbox.ExecResult{TimedOut: true}, nil
			}
		}, tasks.Unresolved, sandbox.FailureModel},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			tc.fault(b)
			grade := b.grade(t, context.Background())
			if grade.Outcome != tc.outcome || grade.FailureClass != tc.class || (grade.Reward == nil) != (tc.outcome == tasks.InfraFailure) || len(grade.Notes) == 0 {
				t.Errorf("%+v", grade)
			}
		})
	}
}

func failing(err error) func(*sandboxtest.FakeSession, string) (sandbox.ExecResult, error) {
	return func(*sandboxtest.FakeSession, string) (sandbox.ExecResult, error) { return sandbox.ExecResult{}, err }
}

func refusing(context.Context, *sandboxtest.FakeSession, sandbox.Exec) (sandbox.ExecResult, error) {
	return exited(1), nil
}

func TestGradeCancelled(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(context.Background())
	b.verdict = func(*sandboxtest.FakeSession, string) (sandbox.ExecResult, error) {
		cancel()
		return sandbox.ExecResult{}, ctx.Err()
	}
	if grade := b.grade(t, ctx); grade.Outcome != tasks.InfraFailure || grade.Reward != nil {
		t.Errorf("%+v", grade)
	}
}

func TestUngradable(t *testing.T) {
	for name, tc := range map[string]struct {
		grader *tasks.Grader
		want   error
	}{
		"none":   {nil, ErrNoGrader},
		"kind":   {&tasks.Grader{Kind: "oracle", Report: "exit"}, ErrKind},
		"report": {&tasks.Grader{Kind: "patch", Report: "tap"}, ErrKind},
		"parser": {&tasks.Grader{Kind: "patch", Report: "log:no_such"}, ErrKind},
	} {
		b := newBench(t)
		b.subject.Task.Grader = tc.grader
		if _, err := Grade(context.Background(), b, b.subject, b.agent, quiet); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := InPlace(context.Background(), b.subject, b.agent, quiet); !errors.Is(err, tc.want) {
			t.Errorf("%s in place: %v", name, err)
		}
	}
}

func TestInPlaceBelieves(t *testing.T) {
	b := newBench(t)
	b.subject.Task.Grader.Report = "junit"
	write := func(text string, code int) {
		b.verdict = func(s *sandboxtest.FakeSession, command string) (sandbox.ExecResult, error) {
			if text != "" {
				s.SetFile(strings.TrimPrefix(command, "check "), []byte(text))
			}
			return exited(code), nil
		}
	}
	for _, tc := range []struct {
		report string
		code   int
		want   string
	}{
		{"", 0, tasks.Resolved}, {"", 1, tasks.Unresolved}, {"garbage", 0, tasks.Resolved},
		{string(junit("+t.py::a")), 1, tasks.Resolved}, {string(junit("-t.py::a")), 0, tasks.Unresolved},
		{string(junit("+t.py::other")), 0, tasks.Resolved}, {string(junit("+t.py::other")), 1, tasks.Unresolved},
	} {
		write(tc.report, tc.code)
		grade, err := InPlace(context.Background(), b.subject, b.agent, quiet)
		if err != nil || grade.Outcome != tc.want {
			t.Errorf("report %q, exit %d: %s, %v", clip(tc.report, 60), tc.code, grade.Outcome, err)
		}
		if string(b.agent.File("/w/tests/t.py")) != "hidden" {
			t.Error("the hidden tests did not go into the agent's own sandbox")
		}
	}
}

func validator(b *bench, runs int) *Validator {
	return &Validator{Engine: b, Runs: runs, Parallel: 2, Logger: quiet.Logger,
		Prepare: func(_ context.Context, task *tasks.Task, hardening bool) (*tasks.Prepared, error) {
			if !hardening {
				return nil, errors.New("validated without hardening")
			}
			return &tasks.Prepared{Task: task, Image: sandbox.Image{Ref: b.subject.Image}, Leaks: []tasks.Leak{{Kind: "tag"}}}, nil
		}}
}

func TestValidate(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(b *bench)
		ok     bool
		infra  bool
		gold   string
		empty  string
		says   string
	}{
		"holds":        {func(*bench) {}, true, false, tasks.Resolved, tasks.Unresolved, ""},
		"script":       {func(b *bench) { b.subject.Task.Solution = "solve.sh"; b.solveByScript() }, true, false, tasks.Resolved, tasks.Unresolved, ""},
		"always green": {func(b *bench) { b.verdict = answering(0) }, false, false, tasks.Resolved, tasks.Resolved, "though nothing was done"},
		"always red":   {func(b *bench) { b.verdict = answering(1) }, false, false, tasks.Unresolved, tasks.Unresolved, "gold run 1: unresolved; failed t.py::a"},
		"gold stale":   {func(b *bench) { b.gold("nothing\n") }, false, false, tasks.PatchFailed, tasks.Unresolved, "does not apply"},
		"no solution":  {func(b *bench) { b.subject.Task.Solution = "" }, false, false, "", "", "solution"},
		"gold gone":    {func(b *bench) { b.subject.Task.Solution = "x.patch" }, false, false, tasks.InfraFailure, tasks.Unresolved, "solution"},
		"no grader":    {func(b *bench) { b.subject.Task.Grader = nil }, false, false, "", "", "no grader"},
		"engine down":  {func(b *bench) { b.Down = sandbox.ErrUnavailable }, false, true, tasks.InfraFailure, tasks.InfraFailure, "unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			tc.change(b)
			v := validator(b, 2)
			steps := 0
			v.Progress = func(_ string, done, total int) {
				if steps++; done > total || total != 4 {
					t.Errorf("progress %d of %d", done, total)
				}
			}
			found, err := v.Validate(context.Background(), []*tasks.Task{b.subject.Task})
			if err != nil || len(found) != 1 {
				t.Fatalf("%v, %v", found, err)
			}
			got := found[0]
			if got.OK != tc.ok || got.Infra != tc.infra || got.Gold.Outcome != tc.gold || got.Empty.Outcome != tc.empty {
				t.Errorf("%+v", got)
			}
			if all := strings.Join(got.Problems, "\n"); !strings.Contains(all, tc.says) || (tc.ok && all != "") {
				t.Errorf("problems %q, want %q in them", all, tc.says)
			}
			if left, _ := b.List(context.Background()); len(left) != 1 || steps == 0 {
				t.Errorf("%d sandboxes left, %d steps told", len(left), steps)
			}
		})
	}
}

func TestValidateTellsFlaky(t *testing.T) {
	b := newBench(t)
	n := make(chan struct{}, 1)
	b.verdict = func(s *sandboxtest.FakeSession, _ string) (sandbox.ExecResult, error) {
		if string(s.File("/w/a.txt")) != "fix\n" {
			return exited(1), nil
		}
		select {
		case n <- struct{}{}:
			return exited(1), nil
		default:
			return exited(0), nil
		}
	}
	found, err := validator(b, 3).Validate(context.Background(), []*tasks.Task{b.subject.Task})
	if err != nil || found[0].OK || found[0].Gold.Outcome != differing || found[0].Gold.Runs != 3 || len(found[0].Flaky) != 1 || len(found[0].Leaks) != 1 {
		t.Errorf("%+v, %v", found, err)
	}
}

func answering(code int) func(*sandboxtest.FakeSession, string) (sandbox.ExecResult, error) {
	return func(*sandboxtest.FakeSession, string) (sandbox.ExecResult, error) { return exited(code), nil }
}

// solveByScript makes the fake's shell run the solution script: "/bin/sh -s".
func (b *bench) solveByScript() {
	check := b.verdict
	b.verdict = func(s *sandboxtest.FakeSession, command string) (sandbox.ExecResult, error) {
		if command == "-s" {
			s.SetFile("/w/a.txt", []byte("fix\n"))
			return exited(0), nil
		}
		return check(s, command)
	}
}

func (b *bench) gold(text string) {
	if err := os.WriteFile(filepath.Join(b.subject.Task.Dir, "gold.patch"), []byte(text), 0o600); err != nil {
		panic(err)
	}
}

// The tail of a stream that breaks off must not be graded as deletions.
func TestPullCutOff(t *testing.T) {
	b := newBench(t)
	cut := &cutSession{FakeSession: b.agent}
	grade, err := Grade(context.Background(), b, b.subject, cut, quiet)
	if err != nil || grade.Outcome != tasks.InfraFailure {
		t.Errorf("%+v, %v", grade, err)
	}
}

type cutSession struct{ *sandboxtest.FakeSession }

func (c *cutSession) Pull(ctx context.Context, name string) (io.ReadCloser, error) {
	whole, err := c.FakeSession.Pull(ctx, name)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(io.LimitReader(whole, 1024)), nil
}
