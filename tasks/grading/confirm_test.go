package grading

import (
	"context"
	"strings"
	"testing"

	"proctor/sandbox"
	"proctor/sandbox/sandboxtest"
	"proctor/tasks"
)

// What came out as resolved is run again; a third run decides between two that differ.
func TestConfirm(t *testing.T) {
	pass, fail := junit("+t.py::a"), junit("-t.py::a")
	for name, tc := range map[string]struct {
		runs    []string // by run: pass, fail, forged
		outcome string
		says    string
	}{
		"agrees":        {[]string{"pass", "pass"}, tasks.Resolved, "second run: agrees"},
		"flaky":         {[]string{"pass", "fail", "pass"}, tasks.Resolved, "flaky"},
		"fails twice":   {[]string{"pass", "fail", "fail"}, tasks.Unresolved, "flaky: one of three runs or more differs in t.py::a"},
		"forged second": {[]string{"pass", "forged"}, tasks.Tampered, "the first run came out as resolved"},
		"not resolved":  {[]string{"fail"}, tasks.Unresolved, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.subject.Task.Grader.Report = "junit"
			run := 0
			b.verdict = func(s *sandboxtest.FakeSession, command string) (sandbox.ExecResult, error) {
				if run >= len(tc.runs) {
					t.Errorf("run %d was not asked for", run+1)
					return exited(1), nil
				}
				kind := tc.runs[run]
				run++
				report, status := pass, 0
				if kind != "pass" {
					report = fail
				}
				if kind == "fail" {
					status = 1
				}
				s.SetFile(strings.TrimPrefix(command, "check "), report)
				return exited(status), nil
			}
			opts := quiet
			opts.Confirm = true
			grade, err := Grade(context.Background(), b, b.subject, b.agent, opts)
			if err != nil || grade.Outcome != tc.outcome || run != len(tc.runs) {
				t.Errorf("%+v, %v, %d runs", grade, err, run)
			}
			if all := strings.Join(append(grade.Witnesses, grade.Notes...), "\n"); !strings.Contains(all, tc.says) {
				t.Errorf("%q, want %q in it", all, tc.says)
			}
			if left, _ := b.List(context.Background()); len(left) != 1 {
				t.Errorf("%d sandboxes are left, want the agent's alone", len(left))
			}
		})
	}
}

func TestPlanting(t *testing.T) {
	b := newBench(t)
	ctx := context.Background()
	g, err := newGrading(ctx, b, b.subject, quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer g.close(ctx)
	grader := *b.subject.Task.Grader
	grader.FailToPass, grader.PassToPass = []string{"tests/t.py::test_case[x]", "tests/gone.py::test_y"}, []string{"tests/t.py::test_z"}
	task := *b.subject.Task
	task.Grader = &grader
	g.subject.Task, g.present = &task, []string{"tests/t.py", "a.txt"}
	for command, want := range map[string]int{"pytest tests": 1, "pytest tests/t.py::test_case": 0, "pytest -k case": 0} {
		s := sentinels{file: "tests/s.py"}
		if err := g.plantIn(ctx, &s, command); err != nil {
			t.Fatal(err)
		}
		if len(s.planted) != want {
			t.Errorf("%s: planted %v", command, s.planted)
		}
		text := string(b.Session(g.session.ID()).File("/w/tests/t.py"))
		if want == 1 && (!strings.HasPrefix(s.planted[0], "test_case_") || !strings.HasPrefix(text, "visible\n\ndef "+s.planted[0]+"():")) {
			t.Errorf("%q planted as %v", text, s.planted)
		}
	}
	f := finding{outcome: tasks.Resolved}
	f.checkPlanted(testRun{sentinels: sentinels{planted: []string{"test_case_x"}}}, report{tests: map[string]status{"t.py::test_case_x": passed}, key: plainKey}, true)
	if f.outcome != tasks.Tampered {
		t.Errorf("a planted test that passed: %+v", f)
	}
}
