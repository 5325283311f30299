package report

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"proctor/tasks"
	"proctor/tasks/grading"
	"proctor/tasks/grading/predictions"
)

func hostileGrades() (map[string]predictions.RunReport, []predictions.Result) {
	grade := &tasks.Grade{Outcome: hostile, ApplyStep: hostile, PatchSHA256: hostile, Witnesses: []string{hostile}, Notes: []string{hostile}, DurationMS: 1500,
		Tests: tasks.Tests{FailToPass: tasks.TestList{Passed: []string{"a"}, Failed: []string{hostile}}}, Review: &tasks.Review{Verdict: hostile, Class: hostile, Reason: hostile}}
	results := []predictions.Result{{InstanceID: hostile, Model: hostile, Place: hostile, Grade: grade, Known: true},
		{InstanceID: "b", Model: "m", Place: "p.jsonl:2", Class: predictions.ClassRow, Error: hostile}, {InstanceID: "c", Model: "m", Grade: &tasks.Grade{Outcome: tasks.Resolved}}}
	return map[string]predictions.RunReport{hostile: {Total: 3, Resolved: 1}, "m": predictions.Run([]string{"b", "c"}, results[1:])}, results
}

func TestGradesPageIsHarmless(t *testing.T) {
	models, results := hostileGrades()
	var b bytes.Buffer
	if err := GradesHTML(&b, models, results); err != nil {
		t.Fatal(err)
	}
	harmless(t, b.String())
	for _, want := range []string{"3 predictions of 2 models, 1 grade known", "1 of 3, 33.3 %", `<span class="good">resolved</span>`, "1 of 2<br><code>&lt;/pre&gt;", "p.jsonl:2"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	b.Reset()
	if err := GradesHTML(&b, nil, nil); err != nil || !strings.Contains(b.String(), "0 predictions") {
		t.Errorf("no grades: %v", err)
	}
	if err := GradesHTML(errWriter{}, models, results); !errors.Is(err, errFull) {
		t.Errorf("%v", err)
	}
}

func TestValidationPageIsHarmless(t *testing.T) {
	list := []grading.Validation{
		{TaskID: hostile, Gold: grading.Outcomes{Outcome: hostile, Runs: 3}, Flaky: []string{hostile}, Problems: []string{hostile}, Leaks: []tasks.Leak{{Kind: hostile, Path: hostile}}},
		{TaskID: "good", OK: true, Gold: grading.Outcomes{Outcome: tasks.Resolved, Runs: 3}, Empty: grading.Outcomes{Outcome: tasks.Unresolved, Runs: 3}, DurationMS: 2500},
		{TaskID: "machine", Infra: true, Problems: []string{"no daemon"}},
	}
	var b bytes.Buffer
	if err := ValidationHTML(&b, list); err != nil {
		t.Fatal(err)
	}
	harmless(t, b.String())
	for _, want := range []string{"1 of 3, 33.3 %", "resolved x3", "not proven", "2.5 s", "no daemon"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(b.String(), "<b>good</b>") {
		t.Error("a task of which there is nothing to say has a paragraph")
	}
	if err := ValidationHTML(&b, nil); err != nil {
		t.Errorf("no tasks: %v", err)
	}
}

func TestOneIsNotMany(t *testing.T) {
	r := hostileRun()
	r.Plan.N = 1
	var page, text bytes.Buffer
	if err := errors.Join(RunHTML(&page, r, nil), RunMarkdown(&text, r)); err != nil {
		t.Fatal(err)
	}
	for _, got := range []string{page.String(), text.String()} {
		if !strings.Contains(got, "1 task, 1 attempt each") {
			t.Errorf("%.600s", got)
		}
	}
}
