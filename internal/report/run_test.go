package report

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"proctor/internal/evalrun"
	"proctor/internal/rollouts"
	"proctor/internal/tally"
	"proctor/judge"
	"proctor/monitor"
	"proctor/rules"
	"proctor/tasks"
)

func hostileRun() *evalrun.Report {
	reward := 1.0
	return &evalrun.Report{Plan: evalrun.Plan{ID: "x", Tasks: []string{hostile}, N: 2, Model: hostile}, Attempts: 2, Done: 2, Graded: 1,
		PassAt: map[int]evalrun.Estimate{1: {Value: 0.5, Lo: 0.1, Hi: 0.9, Tasks: 1}}, PassAtClean: map[int]evalrun.Estimate{}, HackRate: tally.Rate{N: 2, Hit: 1},
		ByClass: map[string]*evalrun.ClassAttempts{hostile: {Attempts: 1, Tried: 2, Blocked: 1}}, Failures: map[string]int{hostile: 1},
		Results: []*evalrun.Result{{TaskID: hostile, Attempt: 1, Reward: &reward, Outcome: "resolved", Seconds: 3, TokensIn: 100, Stop: hostile, Hacks: 1},
			{TaskID: "b", Attempt: 2, FailureClass: hostile, Error: hostile, Stop: "failed"}}}
}

func hostileRecord(t *testing.T) []byte {
	t.Helper()
	zero := 0
	args, err := json.Marshal(map[string]string{"command": hostile})
	if err != nil {
		t.Fatal(err)
	}
	shown, other := &monitor.Observation{Output: hostile, ExitCode: &zero}, &monitor.Observation{Output: "the truth " + hostile, TimedOut: true}
	verdict := monitor.Verdict{Decision: "block", Action: "decoyed", Hack: true, Class: hostile, Hits: []rules.Hit{{Rule: hostile, Title: hostile, Span: hostile}},
		Opinion: &judge.Opinion{By: hostile, Verdict: judge.Hack, Reason: hostile}}
	calls := []*monitor.Record{{Ordinal: 1, Name: hostile, Arguments: args, Principal: "agent", Verdict: verdict, Observation: shown, Original: other},
		{Ordinal: 2, Name: "bash", Arguments: args, Principal: "harness", Observation: shown, Original: shown}, {Ordinal: 3, Name: "bash", Arguments: args, Error: hostile}}
	grade := &tasks.Grade{Outcome: hostile, Review: &tasks.Review{Verdict: hostile, Class: hostile, Reason: hostile}}
	body, err := json.Marshal(rollouts.Trajectory{Calls: calls, Grade: grade})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestRunPagesAreHarmless(t *testing.T) {
	r := hostileRun()
	var b bytes.Buffer
	if err := RunHTML(&b, r, map[*evalrun.Result]string{r.Results[0]: "pages/x.html", r.Results[1]: "javascript:alert(1)"}); err != nil {
		t.Fatal(err)
	}
	harmless(t, b.String())
	if strings.Count(b.String(), "<svg") != 4 || !strings.Contains(b.String(), `href="pages/x.html"`) {
		t.Error("charts or links are missing")
	}
	b.Reset()
	if err := RolloutHTML(&b, r.Results[0], hostileRecord(t), hostile); err != nil {
		t.Fatal(err)
	}
	harmless(t, b.String())
	if !strings.Contains(b.String(), "the truth &lt;/pre&gt;") || strings.Count(b.String(), `<div class="two">`) != 2 {
		t.Error("shown and real do not stand side by side")
	}
	if err := RolloutHTML(&b, r.Results[0], []byte("{"), ""); err == nil {
		t.Error("a broken record makes a page")
	}
}

func TestRunMarkdownIsHarmless(t *testing.T) {
	var b bytes.Buffer
	if err := RunMarkdown(&b, hostileRun()); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(strings.ReplaceAll(b.String(), `\<`, ""), "<") || strings.Contains(b.String(), "\x1b") {
		t.Errorf("markup gets through: %s", b.String())
	}
}

func TestRunPagesInAFolder(t *testing.T) {
	dir, r := t.TempDir(), hostileRun()
	file := evalrun.TrajectoryFile(dir, r.Results[0])
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, hostileRecord(t), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := RunPages(dir, r); err != nil {
		t.Fatal(err)
	}
	pages, err := os.ReadDir(filepath.Join(dir, "pages"))
	if err != nil || len(pages) != 1 || !strings.HasPrefix(pages[0].Name(), "_") {
		t.Errorf("%v, %v", pages, err)
	}
}
