package grading

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"proctor/sandbox"
	"proctor/tasks"
	"proctor/tasks/grading/testlog"
)

func TestParsePytestJSON(t *testing.T) {
	r, err := parsePytestJSON([]byte(`{"exitcode": 1, "tests": [{"nodeid": "t.py::a", "outcome": "passed"}, {"nodeid": "t.py::b[x]", "outcome": "failed"},
		{"nodeid": "t.py::c", "outcome": "xfailed"}, {"nodeid": "t.py::d", "outcome": "skipped"}, {"nodeid": "t.py::e", "outcome": "weird"},
		{"nodeid": "t.py::f", "outcome": "xpassed"}, {"nodeid": "t.py::a", "outcome": "error"}], "collectors": [{"nodeid": "u.py", "outcome": "failed"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]status{"t.py::a": failed, "t.py::b[x]": failed, "t.py::c": xfailed, "t.py::d": skipped, "t.py::e": failed, "t.py::f": passed, "u.py": failed, "t.py::g": absent} {
		if got := r.of(id); got != want {
			t.Errorf("%s: %v, want %v", id, got, want)
		}
	}
	for _, text := range []string{"", "[]", "{}", `{"tests": 3}`, `{"tests": [`, `{"tests": null}`} {
		if _, err := parsePytestJSON([]byte(text)); err == nil {
			t.Errorf("%q: taken", text)
		}
	}
}

func TestParseGoTest(t *testing.T) {
	r, err := parseGoTest([]byte(`# broken/pkg
./x.go:3: syntax error
{"Action":"run","Package":"m/a","Test":"TestA"}
{"Action":"run","Package":"m/a","Test":"TestA/sub_1"}
{"Action":"pass","Package":"m/a","Test":"TestA/sub_1","Elapsed":0}
{"Action":"pass","Package":"m/a","Test":"TestA"}
{"Action":"output","Package":"m/a","Test":"TestA","Output":"--- PASS: TestFake\n"}
{"Action":"run","Package":"m/b","Test":"TestA"}
{"Action":"fail","Package":"m/b","Test":"TestA"}
{"Action":"run","Package":"m/a","Test":"TestHung"}
{"Action":"skip","Package":"m/a","Test":"TestS"}
{"Action":"pass","Package":"m/a"}
{"Action":"fail","Package":"m/c"}
not json {
`))
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]status{"m/a::TestA": passed, "m/b::TestA": failed, "TestA": failed, "TestA/sub_1": passed, "TestHung": failed, "TestS": skipped, "TestFake": absent, "m/c::": failed} {
		if got := r.of(id); got != want {
			t.Errorf("%s: %v, want %v", id, got, want)
		}
	}
	if _, err := parseGoTest([]byte("PASS\n")); err == nil {
		t.Error("text without events was taken")
	}
}

func FuzzParseReports(f *testing.F) {
	f.Add([]byte(`{"tests": [{"nodeid": "a", "outcome": "passed"}]}`), "a[")
	f.Add([]byte(`{"Action":"run","Package":"m","Test":"T"}`+"\n"), "m::T")
	f.Add([]byte(logStart+"\nPASSED a\n"+logEnd), "a")
	f.Fuzz(func(t *testing.T, data []byte, id string) {
		for _, read := range []func([]byte) (report, error){parsePytestJSON, parseGoTest,
			func(d []byte) (report, error) { return parseLog("pytest_v2", d, testlog.About{}) }} {
			if r, err := read(data); err == nil {
				if s := r.of(id); s < absent || s > failed {
					t.Fatalf("status %d", s)
				}
				r.failures()
				r.function(id)
			}
		}
		marksForged(data)
		if paid, _, err := parseReward(data); err == nil && !(paid >= 0 && paid <= 1) {
			t.Fatalf("a reward of %g", paid)
		}
	})
}

// A log alone is believed where nothing else can be had, and held to the runner's own report elsewhere.
func TestWeighLogs(t *testing.T) {
	const f2p, p2p = "t/a.py::f[x y]", "t/a.py::p"
	code := func(n int) *int { return &n }
	watch := sentinels{file: "t/s.py", mustPass: []string{"good"}, mustFail: []string{"bad"}}
	const honest = "PASSED t/a.py::f[x\nPASSED t/a.py::p\nPASSED t/s.py::good\nFAILED t/s.py::bad - x\nshort test summary info\nFAILED t/s.py::bad - x\n"
	own := junit("+"+f2p, "+"+p2p, "+t/s.py::good", "-t/s.py::bad")
	trace := "+ : '" + logStart + "'\n" + honest + "+ : '" + logEnd + "'\n"
	for name, tc := range map[string]struct {
		parser, output string
		witness        []byte
		exit           int
		want           string
	}{
		"honest":             {output: honest, witness: own, exit: 1, want: tasks.Resolved},
		"between marks":      {output: trace, witness: own, exit: 1, want: tasks.Resolved},
		"no witness":         {output: honest, exit: 1, want: tasks.Resolved},
		"marks printed":      {output: strings.Replace(trace, "PASSED t/a.py::p", logEnd+"\nPASSED t/a.py::p", 1), witness: own, exit: 1, want: tasks.Tampered},
		"marks traced twice": {output: "+ : '" + logStart + "'\n" + trace, witness: own, exit: 1, want: tasks.Tampered},
		"printed pass":       {output: honest, witness: junit("-"+f2p, "+"+p2p, "+t/s.py::good", "-t/s.py::bad"), exit: 1, want: tasks.Unresolved},
		"printed, never run": {output: honest, witness: junit("+"+p2p, "+t/s.py::good", "-t/s.py::bad"), exit: 1, want: tasks.Unresolved},
		"sentinel forged":    {output: strings.ReplaceAll(honest, "FAILED t/s.py::bad", "PASSED t/s.py::bad"), witness: own, exit: 1, want: tasks.Tampered},
		"exit 0":             {output: honest, witness: own, exit: 0, want: tasks.Tampered},
		"skipped p2p":        {output: strings.Replace(honest, "PASSED t/a.py::p", "SKIPPED t/a.py::p", 1), witness: own, exit: 1, want: tasks.Resolved},
		"xfailed f2p":        {output: strings.Replace(honest, "PASSED t/a.py::f", "XFAIL t/a.py::f", 1), witness: own, exit: 1, want: tasks.Unresolved},
		"empty log":          {output: "", exit: 0, want: tasks.Tampered},
		"fail only":          {parser: "log:marked", output: "3 specs, 0 failures\n", exit: 0, want: tasks.Resolved},
		"fail only, no run":  {parser: "log:marked", output: "npm ERR!\n", exit: 0, want: tasks.Tampered},
		"fail only, fails":   {parser: "log:marked", output: "1) t/a.py::p\n3 specs, 1 failures\n", exit: 1, want: tasks.Unresolved},
	} {
		task := &tasks.Task{Grader: &tasks.Grader{Report: "log:pytest", FailToPass: []string{"t/a.py::f[x"}, PassToPass: []string{p2p}}}
		run := testRun{command: "pytest -rA t", exit: code(tc.exit), output: []byte(tc.output), witness: tc.witness, sentinels: watch}
		if tc.parser != "" {
			task.Grader.Report, run.sentinels, run.command = tc.parser, sentinels{}, "npm test"
		}
		got := weigh(task, run)
		if got.outcome != tc.want {
			t.Errorf("%s: %s, want %s; witnesses %q, notes %q", name, got.outcome, tc.want, got.witnesses, got.notes)
		}
	}
}

func TestParseReward(t *testing.T) {
	for text, want := range map[string]float64{"1": 1, " 0.5\n": 0.5, `{"reward": 0.25, "speed": 7}`: 0.25, `{"score": 1}`: 1} {
		if paid, _, err := parseReward([]byte(text)); err != nil || paid != want {
			t.Errorf("%q: %g, %v", text, paid, err)
		}
	}
	for _, text := range []string{"", "yes", "1.5", "-1", "NaN", "Inf", "0x1p-2", `{"a": 1, "b": 0}`, `{"reward": 2}`, `{"reward": "1"}`, `{"reward": null, "x": 1}`, "{", "[1]", `{"reward": 1} x`} {
		if paid, _, err := parseReward([]byte(text)); err == nil && text != "0x1p-2" && text != `{"reward": null, "x": 1}` {
			t.Errorf("%q is worth %g", text, paid)
		}
	}
	code := 0
	f, paid := byRewardFile(&tasks.Grader{Report: "reward-file"}, testRun{exit: &code, report: []byte(`{"reward": 1, "style": 0.5}`)})
	if paid != 1 || f.outcome != tasks.Resolved || components(f)["style"] != 0.5 || f.failure != sandbox.FailureNone {
		t.Errorf("%g, %+v", paid, f)
	}
}

// A truncated id of a big report is looked up once a test; the published sets hold hundreds.
func TestTruncatedIDs(t *testing.T) {
	r := newReport(plainKey)
	for i := range 1000 {
		r.add(fmt.Sprintf("t.py::f[%d photon flux]", i), passed)
	}
	r.add("t.py::g[a b]", passed)
	r.add("t.py::g[a c]", failed)
	for id, want := range map[string]status{"t.py::f[7": passed, "t.py::g[a": failed, "t.py::g[a b]": passed, "t.py::g[a d]": absent, "t.py::f": absent, "t.py::f[[": absent} {
		if got := r.of(id); got != want {
			t.Errorf("%s: %v, want %v", id, got, want)
		}
	}
}

// The kinds of report of the task format are those that are read here.
func TestReportKindsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/grading.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range append(append([]string{}, reportKinds...), testlog.Names()...) {
		if !strings.Contains(string(page), "`"+word+"`") {
			t.Errorf("docs/grading.md does not name `%s`", word)
		}
	}
}
