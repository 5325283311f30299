package grading

import (
	"errors"
	"strings"

	"proctor/tasks"
	"proctor/tasks/grading/testlog"
)

// status is what became of a test. Of several reports on one test the worst counts.
type status int

const (
	absent  status = iota
	passed         // and nothing else
	xfailed        // failed, as its author says it must
	skipped        // not run
	failed         // a failure or an error, in the test or around it
)

func (s status) String() string {
	return [...]string{"absent", "passed", "expected to fail", "skipped", "failed"}[s]
}

// Bounds on a report: a hundred times what the largest real ones hold.
const (
	maxReport = 64 << 20
	maxDepth  = 64
	maxTests  = 500_000
)

// errReport: the structured report is broken or over its bounds.
var errReport = errors.New("the report cannot be read")

// report is what a test run says of its tests.
type report struct {
	tests    map[string]status
	key      func(id string) string // how the report writes a test id as sets publish it
	failOnly bool                   // it names failures alone: a test that is not named has passed
	lenient  bool                   // a test that was skipped still counts as kept: see keeps
}

func newReport(key func(id string) string) report {
	return report{tests: map[string]status{}, key: key}
}

func plainKey(id string) string { return id }

func (r report) add(key string, s status) {
	if key != "" && s > r.tests[key] {
		r.tests[key] = s
	}
}

// failures counts the tests that failed.
func (r report) failures() int {
	n := 0
	for _, s := range r.tests {
		if s == failed {
			n++
		}
	}
	return n
}

// of gives what a report says of a test id as sets publish them: "tests/test_a.py::TestB::test_c[x]",
// "package.Class::test" or a bare name. An id cut off inside its parameters, as hundreds of published
// ones are, stands for every test that begins like it, and passes where all of them do.
func (r report) of(id string) status {
	key := r.key(id)
	if s := r.tests[key]; s != absent {
		return s
	}
	worst := absent
	if strings.Count(id, "[") > strings.Count(id, "]") {
		for k, s := range r.tests {
			if s > worst && strings.HasPrefix(k, key) {
				worst = s
			}
		}
	}
	if worst == absent && r.failOnly {
		return passed
	}
	return worst
}

// keeps reports whether a status keeps a PASS_TO_PASS test whole. An expected failure does: it is no
// pass, but nothing was broken either. A skipped test does in logs alone, whose sets count it so.
func (r report) keeps(s status) bool {
	return s == passed || s == xfailed || (s == skipped && r.lenient)
}

// named gives what a report says of the tests with this name, in whatever class or file.
func (r report) named(name string) status {
	worst := absent
	for key, s := range r.tests {
		if s > worst && (key == name || strings.HasPrefix(key, name+" (") || strings.HasSuffix(key, "\x00"+name) || strings.HasSuffix(key, "::"+name)) {
			worst = s
		}
	}
	return worst
}

// function gives what a JUnit report says of a test that a log names. Logs cut, colour and clean
// parameters, so that an id that is not there by its parameters stands for its function: absent where no
// run of that is there, failed where each failed.
func (r report) function(id string) status {
	if s := r.of(id); s != absent {
		return s
	}
	base, _, ok := strings.Cut(id, "[")
	if !ok || base == "" {
		if words := strings.Fields(id); len(words) > 1 {
			return r.function(words[0])
		}
		return absent
	}
	best, key := absent, r.key(base)
	for k, s := range r.tests {
		if strings.HasPrefix(k, key+"[") && (best == absent || s < best) {
			best = s
		}
	}
	return best
}

// reportKinds are the values of grader.report that are read, log parsers aside.
var reportKinds = []string{"junit", "pytest-json", "go-test-json", "reward-file", "exit"}

// logParser gives the name of the parser of "log:<parser>".
func logParser(report string) (string, bool) { return strings.CutPrefix(report, "log:") }

// readReport reads what a run left by the grader's kind of report. found is false where it left none.
func readReport(task *tasks.Task, run testRun) (r report, found bool, err error) {
	g := task.Grader
	if parser, ok := logParser(g.Report); ok {
		r, err = parseLog(parser, run.output, testlog.About{InstanceID: task.ID, Version: task.Vars.BaseVersion})
		return r, true, err
	}
	data := run.report
	if data == nil && g.Report == "go-test-json" && !strings.Contains(run.command, "{report}") {
		data = run.output
	}
	if data == nil {
		return report{}, false, nil
	}
	switch g.Report {
	case "pytest-json":
		r, err = parsePytestJSON(data)
	case "go-test-json":
		r, err = parseGoTest(data)
	default:
		r, err = parseJUnit(data)
	}
	return r, true, err
}

// summaryFailures reads the short test summary at the end of pytest's output: the ids that it says
// failed. The runner writes it before any exit handler can rewrite the report. Only the last summary
// counts, and only what it says against a test: printed PASSED lines are worth nothing.
func summaryFailures(output []byte) []string {
	const heading = "short test summary info"
	at := strings.LastIndex(string(output), heading)
	if at < 0 {
		return nil
	}
	var ids []string
	for line := range strings.SplitSeq(string(output[at:]), "\n") {
		rest, ok := strings.CutPrefix(line, "FAILED ")
		if !ok {
			continue
		}
		ids = append(ids, strings.TrimRight(rest, "\r"))
	}
	return ids
}

// saysFailed reports whether a summary names id among its failures. A line may go on with " - " and
// the reason.
func saysFailed(summary []string, id string) bool {
	for _, line := range summary {
		if line == id || strings.HasPrefix(line, id+" - ") {
			return true
		}
	}
	return false
}
