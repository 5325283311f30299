package grading

import (
	"strings"
	"testing"

	"proctor/tasks"
)

func TestParseJUnit(t *testing.T) {
	r, err := parseJUnit([]byte(`<?xml version="1.0" encoding="utf-8"?><testsuites><testsuite>
<testcase classname="tests.test_a" name="test_ok" time="0.1" />
<testcase classname="tests.test_a.TestB" name="test_bad[a::b &lt;c&gt;]"><failure message="x">y</failure></testcase>
<testcase classname="tests.test_a" name="test_skip"><skipped type="pytest.xfail"/></testcase>
<testcase classname="tests.test_a" name="test_twice"/><testcase classname="tests.test_a" name="test_twice"><error>teardown</error></testcase>
<testcase classname="tests.test_a" name="test_p[a b]"/><testcase classname="tests.test_a" name="test_p[a c]"/>
<testcase classname="tests.test_a" name="test_q[a b]"/><testcase classname="tests.test_a" name="test_q[a c]"><failure/></testcase>
</testsuite></testsuites>`))
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]status{
		"tests/test_a.py::test_ok":                   passed,
		"tests/test_a.py::TestB::test_bad[a::b <c>]": failed,
		"tests/test_a.py::test_skip":                 xfailed,
		"tests/test_a.py::test_twice":                failed,
		"tests/test_a.py::test_none":                 absent,
		"tests/test_a.py::test_p[a":                  passed,
		"tests/test_a.py::test_q[a":                  failed,
		"tests/test_a.py::test_q[a b]":               passed,
		"tests/test_a.py::test_p":                    absent,
	} {
		if got := r.of(id); got != want {
			t.Errorf("%s: %v, want %v", id, got, want)
		}
	}
	if r.failures() != 3 {
		t.Errorf("%d failures", r.failures())
	}
}

func TestParseJUnitRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "text": "hello", "cut off": "<testsuites><testcase", "open": "<testsuites><testcase>",
		"entity": `<!DOCTYPE b [<!ENTITY a "aaaa">]><testsuites>&a;</testsuites>`,
		"deep":   strings.Repeat("<a>", 100) + strings.Repeat("</a>", 100),
		"closed": "</a>",
	} {
		if _, err := parseJUnit([]byte(text)); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func FuzzParseJUnit(f *testing.F) {
	f.Add([]byte(`<testsuites><testsuite><testcase classname="a" name="b"><failure/></testcase></testsuite></testsuites>`), "a.py::b[x")
	f.Fuzz(func(t *testing.T, data []byte, id string) {
		r, err := parseJUnit(data)
		if err != nil {
			return
		}
		if s := r.of(id); s < absent || s > failed {
			t.Fatalf("status %d", s)
		}
	})
}

func TestSummaryFailures(t *testing.T) {
	out := []byte("short test summary info\nFAILED old\n=== short test summary info ===\nPASSED a\nFAILED t.py::x[a - b] - assert 1\nFAILED t.py::y\n== 2 failed ==\n")
	got := summaryFailures(out)
	for id, want := range map[string]bool{"t.py::x[a - b]": true, "t.py::y": true, "t.py::x[a": true, "old": false, "t.py::x": false, "a": false} {
		if saysFailed(got, id) != want {
			t.Errorf("saysFailed(%q) = %v in %q", id, !want, got)
		}
	}
}

// junit writes a report: "+id" passed, "-id" failed, "~id" skipped.
func junit(tests ...string) []byte {
	var b strings.Builder
	b.WriteString("<testsuites>")
	for _, test := range tests {
		class, name, _ := strings.Cut(junitKey(test[1:]), "\x00")
		b.WriteString(`<testcase classname="` + class + `" name="` + name + `">`)
		b.WriteString(map[byte]string{'+': "", '-': "<failure/>", '~': "<skipped/>"}[test[0]] + "</testcase>")
	}
	return []byte(b.String() + "</testsuites>")
}

func TestWeigh(t *testing.T) {
	const f2p, p2p, good, bad = "t/a.py::f", "t/a.py::p", "t/s.py::good", "t/s.py::bad"
	summary := []byte("short test summary info\nFAILED t/s.py::bad - x\n")
	code := func(n int) *int { return &n }
	watch := sentinels{file: "t/s.py", mustPass: []string{"good"}, mustFail: []string{"bad"}}
	honest := junit("+"+f2p, "+"+p2p, "+"+good, "-"+bad)
	for name, tc := range map[string]struct {
		report, command string
		run             testRun
		want            string
	}{
		"resolved":              {run: testRun{exit: code(1), report: honest, sentinels: watch, output: summary}, want: tasks.Resolved},
		"without sentinels":     {run: testRun{exit: code(0), report: junit("+"+f2p, "+"+p2p)}, want: tasks.Resolved},
		"gold fails elsewhere":  {run: testRun{exit: code(1), report: junit("+"+f2p, "+"+p2p, "-t/b.py::x")}, want: tasks.Resolved},
		"fails":                 {run: testRun{exit: code(1), report: junit("-"+f2p, "+"+p2p, "+"+good, "-"+bad), sentinels: watch, output: summary}, want: tasks.Unresolved},
		"breaks":                {run: testRun{exit: code(1), report: junit("+"+f2p, "-"+p2p, "+"+good, "-"+bad), sentinels: watch, output: summary}, want: tasks.Unresolved},
		"skipped":               {run: testRun{exit: code(1), report: junit("~"+f2p, "+"+p2p, "+"+good, "-"+bad), sentinels: watch, output: summary}, want: tasks.Unresolved},
		"id not there":          {run: testRun{exit: code(1), report: junit("+"+p2p, "+"+good, "-"+bad), sentinels: watch, output: summary}, want: tasks.Unresolved},
		"collection error":      {run: testRun{exit: code(2), report: junit("-t/a.py::x"), sentinels: watch, output: summary}, want: tasks.Unresolved},
		"exit 0 with failures":  {run: testRun{exit: code(0), report: honest, sentinels: watch, output: summary}, want: tasks.Tampered},
		"exit masked":           {command: "pytest; true", run: testRun{exit: code(0), report: honest, sentinels: watch, output: summary}, want: tasks.Resolved},
		"must fail passed":      {run: testRun{exit: code(1), report: junit("+"+f2p, "+"+p2p, "+"+good, "+"+bad, "-x::y"), sentinels: watch, output: summary}, want: tasks.Tampered},
		"must pass failed":      {run: testRun{exit: code(1), report: junit("+"+f2p, "+"+p2p, "-"+good, "-"+bad), sentinels: watch, output: summary}, want: tasks.Tampered},
		"sentinels left out":    {run: testRun{exit: code(1), report: junit("+"+f2p, "+"+p2p, "-x::y"), sentinels: watch, output: summary}, want: tasks.Tampered},
		"no report, exit 0":     {run: testRun{exit: code(0)}, want: tasks.Tampered},
		"no report, masked":     {command: "pytest || true", run: testRun{exit: code(0)}, want: tasks.Unresolved},
		"no report, exit 1":     {run: testRun{exit: code(1)}, want: tasks.Unresolved},
		"bad report, exit 0":    {run: testRun{exit: code(0), report: []byte("<a>")}, want: tasks.Tampered},
		"exit without failures": {run: testRun{exit: code(3), report: junit("+"+f2p, "+"+p2p)}, want: tasks.Unresolved},
		"summary differs":       {run: testRun{exit: code(1), report: honest, sentinels: watch, output: []byte("short test summary info\nFAILED t/s.py::bad\nFAILED " + f2p + " - x\n")}, want: tasks.Tampered},
		"no summary":            {run: testRun{exit: code(1), report: honest, sentinels: watch}, want: tasks.Tampered},
		"no summary wanted":     {command: "pytest -rN", run: testRun{exit: code(1), report: honest, sentinels: watch}, want: tasks.Resolved},
		"summary cut off":       {run: testRun{exit: code(1), report: honest, sentinels: watch, truncated: true}, want: tasks.Resolved},
		"timed out":             {run: testRun{timedOut: true, report: honest}, want: tasks.Unresolved},
		"killed":                {run: testRun{report: honest}, want: tasks.Unresolved},
		"out of memory":         {run: testRun{oom: true, exit: code(137)}, want: tasks.Unresolved},
		"exit kind":             {report: "exit", run: testRun{exit: code(0)}, want: tasks.Resolved},
		"exit kind fails":       {report: "exit", run: testRun{exit: code(4)}, want: tasks.Unresolved},
	} {
		g := &tasks.Grader{Report: "junit", Command: "pytest", FailToPass: []string{f2p}, PassToPass: []string{p2p}}
		if tc.report != "" {
			g.Report = tc.report
		}
		if tc.command != "" {
			g.Command = tc.command
		}
		tc.run.command = g.Command
		got := weigh(&tasks.Task{Grader: g}, tc.run)
		if got.outcome != tc.want {
			t.Errorf("%s: %s, want %s; witnesses %q, notes %q", name, got.outcome, tc.want, got.witnesses, got.notes)
		}
		if (got.failure == "none") != (got.outcome == tasks.Resolved) {
			t.Errorf("%s: outcome %s with failure class %s", name, got.outcome, got.failure)
		}
	}
}

func TestScore(t *testing.T) {
	half := map[string]float64{"fail_to_pass": 0.5, "pass_to_pass": 0.5}
	for name, tc := range map[string]struct {
		g    tasks.Grader
		f    finding
		paid float64
		want float64
	}{
		"binary":      {f: finding{outcome: tasks.Unresolved}, want: 0},
		"resolved":    {f: finding{outcome: tasks.Resolved}, want: 1},
		"fraction":    {g: tasks.Grader{Reward: "fraction"}, f: finding{outcome: tasks.Unresolved}, want: 0.25},
		"tampered":    {g: tasks.Grader{Reward: "fraction"}, f: finding{outcome: tasks.Tampered}, want: 0},
		"reward file": {g: tasks.Grader{Report: "reward-file"}, f: finding{outcome: tasks.Unresolved}, paid: 0.7, want: 0.7},
	} {
		if got := score(&tc.g, tc.f, half, tc.paid); got != tc.want {
			t.Errorf("%s: %g, want %g", name, got, tc.want)
		}
	}
}

func TestByRewardFile(t *testing.T) {
	code := 0
	for text, want := range map[string]float64{"1\n": 1, "0.25": 0.25, "": 0, "2": 0, "-1": 0, "NaN": 0, "yes": 0} {
		f, paid := byRewardFile(&tasks.Grader{Report: "reward-file"}, testRun{exit: &code, report: []byte(text)})
		if paid != want || (f.outcome == tasks.Resolved) != (want == 1) {
			t.Errorf("%q: %g, %s", text, paid, f.outcome)
		}
	}
}

func TestSentinelsAreDrawn(t *testing.T) {
	g := &tasks.Grader{Report: "junit", Command: "python -m pytest --junitxml={report} tests/test_a.py", FailToPass: []string{"tests/test_a.py::x", "y/test_b.py::z"}, PassToPass: []string{"tests/test_a.py::w"}}
	a, err := newSentinels(g, g.Command, []string{"src/tests/test_a.py", "tests/test_a.py"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := newSentinels(g, g.Command, []string{"src/tests/test_a.py", "src/a/tests/test_a.py"})
	if err != nil {
		t.Fatal(err)
	}
	if a.file == b.file || string(a.content) == string(b.content) {
		t.Error("two runs share their sentinels")
	}
	if !strings.HasPrefix(a.file, "tests/test_") || a.addopts != "-rfE "+a.file || !strings.HasPrefix(b.file, "src/tests/test_") || len(a.mustPass) != 2 || len(a.mustFail) != 2 || strings.Contains(string(a.content), "@") {
		t.Errorf("%+v", a)
	}
	for command, want := range map[string]bool{"pytest tests": true, "pytest -rA x": true, "pytest -r s": false, "pytest -rs": false,
		"pytest --no-summary": false, "pytest | tee x": false, "pytest > x": false, "pytest -rfE -rN": false} {
		if summaryExpected(command) != want {
			t.Errorf("summaryExpected(%q) = %v", command, !want)
		}
	}
	for command, want := range map[string]bool{"pytest tests": true, "cd x && python3 -m pytest": true, "/usr/bin/pytest-3": true, "make test": false, "echo pytesting": false} {
		if runsPytest(command) != want {
			t.Errorf("runsPytest(%q) = %v", command, !want)
		}
	}
}
