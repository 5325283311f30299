package grading

import (
	"fmt"
	"slices"
	"strings"

	"proctor/sandbox"
	"proctor/tasks"
)

// finding is what the witnesses of a run say together.
type finding struct {
	outcome   string // resolved, unresolved, tampered
	failure   string // failure class
	tests     tasks.Tests
	witnesses []string
	notes     []string
	parts     map[string]float64 // components of a reward file
}

// weigh holds the witnesses of a run against one another. A pass needs all of them; a report that
// claims more than another witness allows is tampered.
func weigh(task *tasks.Task, run testRun) finding {
	g := task.Grader
	f := finding{outcome: tasks.Unresolved, failure: sandbox.FailureModel, tests: allFailed(g)}
	switch {
	case run.timedOut:
		f.note("the tests did not end in their time")
		return f
	case run.oom:
		f.note("the tests ran out of memory")
		return f
	case run.exit == nil:
		f.note("the test command did not end by itself")
		return f
	}
	f.witness("exit status %d", *run.exit)
	if g.Report == "exit" {
		if *run.exit == 0 {
			f.outcome, f.tests = tasks.Resolved, allPassed(g)
		}
		return f.settle()
	}
	return f.byReport(task, run).settle()
}

func (f finding) settle() finding {
	if f.outcome == tasks.Resolved {
		f.failure = sandbox.FailureNone
	}
	return f
}

func (f *finding) note(format string, args ...any) {
	f.notes = append(f.notes, fmt.Sprintf(format, args...))
}

func (f *finding) witness(format string, args ...any) {
	f.witnesses = append(f.witnesses, fmt.Sprintf(format, args...))
}

// tamper settles the outcome as tampered and says why.
func (f *finding) tamper(format string, args ...any) {
	f.outcome = tasks.Tampered
	f.note("tampered: "+format, args...)
}

func (f finding) byReport(task *tasks.Task, run testRun) finding {
	g := task.Grader
	single := singleCommand(run.command)
	tests, found, err := readReport(task, run)
	switch {
	case err != nil:
		f.witness("report: %v", err)
		if *run.exit == 0 && single {
			f.tamper("exit status 0 with a report that cannot be read")
		}
		return f
	case !found:
		f.witness("report: none")
		f.note("the test command left no report")
		if *run.exit == 0 && single {
			f.tamper("exit status 0 without a report")
		}
		return f
	}
	f.witness("report: %d tests, %d failed", len(tests.tests), tests.failures())
	tests = f.checkWitness(g, run, tests)
	f.tests = sortTests(g, tests)
	clean := len(f.tests.FailToPass.Failed) == 0 && len(f.tests.PassToPass.Failed) == 0
	f.witness("expected ids: %d of %d passed", len(f.tests.FailToPass.Passed)+len(f.tests.PassToPass.Passed), len(expectedIDs(g)))
	f.checkSentinels(run, tests, clean)
	f.checkPlanted(run, tests, clean)
	f.checkSummary(g, run, tests)
	if _, isLog := logParser(g.Report); isLog && marksForged(run.output) {
		f.tamper("the log holds the script's own marks more often than the script prints them")
	}
	switch {
	case *run.exit == 0 && tests.failures() > 0 && single:
		f.tamper("exit status 0, though the report holds %d failures", tests.failures())
	case *run.exit != 0 && tests.failures() == 0 && clean:
		f.note("exit status %d, though the report holds no failure", *run.exit)
		clean = false
	}
	if clean && f.outcome != tasks.Tampered {
		f.outcome = tasks.Resolved
	}
	return f
}

// checkWitness holds a log to the report that the runner was asked for beside it. What the log alone says
// passed has not: lines can be printed by anyone.
func (f *finding) checkWitness(g *tasks.Grader, run testRun, tests report) report {
	if run.witness == nil {
		return tests
	}
	own, err := parseJUnit(run.witness)
	if err != nil {
		f.witness("the runner's own report: %v", err)
		return tests
	}
	f.witness("the runner's own report: %d tests, %d failed", len(own.tests), own.failures())
	out := newReport(tests.key)
	out.failOnly, out.lenient = tests.failOnly, tests.lenient
	for id, s := range tests.tests {
		out.tests[id] = s
		if s != passed && s != xfailed {
			continue
		}
		if w := own.function(id); w == failed || w == absent {
			out.tests[id] = failed
			if slices.Contains(g.FailToPass, id) || slices.Contains(g.PassToPass, id) {
				f.note("the log says that %s passed, the runner's own report that it is %s", clip(id, 200), w)
			}
		}
	}
	return out
}

// checkSentinels holds the report to the sentinels. Where the run broke off before them and claims
// nothing, that is a failed run and not a forged one.
func (f *finding) checkSentinels(run testRun, tests report, clean bool) {
	s := run.sentinels
	if s.file == "" {
		return
	}
	gone := 0
	for _, id := range slices.Concat(s.mustPass, s.mustFail) {
		if tests.named(id) == absent {
			gone++
		}
	}
	if gone == len(s.mustPass)+len(s.mustFail) && !clean && *run.exit != 0 {
		f.witness("sentinels: not reached")
		return
	}
	for _, id := range s.mustFail {
		if got := tests.named(id); got != failed {
			f.tamper("a sentinel that must fail is reported as %s", got)
		}
	}
	for _, id := range s.mustPass {
		if got := tests.named(id); got != passed {
			f.tamper("a sentinel that must pass is reported as %s", got)
		}
	}
	if f.outcome != tasks.Tampered {
		f.witness("sentinels: %d passed and %d failed, as they must", len(s.mustPass), len(s.mustFail))
	}
}

// checkSummary holds the report to what the runner printed before any exit handler ran.
func (f *finding) checkSummary(g *tasks.Grader, run testRun, tests report) {
	summary := summaryFailures(run.output)
	for _, id := range expectedIDs(g) {
		if tests.of(id) == passed && saysFailed(summary, id) {
			f.tamper("the report says that %s passed, the runner's summary that it failed", id)
		}
	}
	for _, name := range run.sentinels.mustFail {
		told := slices.ContainsFunc(summary, func(line string) bool {
			return strings.HasSuffix(line, "::"+name) || strings.Contains(line, "::"+name+" - ")
		})
		if !told && tests.named(name) == failed && !run.truncated && summaryExpected(run.command) {
			f.tamper("the report says that a sentinel failed, the runner's summary does not")
		}
	}
	if len(summary) > 0 {
		f.witness("summary: %d failed", len(summary))
	}
}

// singleCommand reports whether the exit status of a command line is the test runner's own.
func singleCommand(command string) bool { return !strings.ContainsAny(command, ";|&\n") }

// sortTests splits the expected tests by what a report says.
func sortTests(g *tasks.Grader, tests report) tasks.Tests {
	good := split(g, func(id string) bool { return tests.of(id) == passed })
	kept := split(g, func(id string) bool { return tests.keeps(tests.of(id)) })
	return tasks.Tests{FailToPass: good.FailToPass, PassToPass: kept.PassToPass}
}

func allFailed(g *tasks.Grader) tasks.Tests { return split(g, func(string) bool { return false }) }
func allPassed(g *tasks.Grader) tasks.Tests { return split(g, func(string) bool { return true }) }

func split(g *tasks.Grader, good func(string) bool) tasks.Tests {
	list := func(ids []string) tasks.TestList {
		l := tasks.TestList{Passed: []string{}, Failed: []string{}}
		for _, id := range ids {
			if good(id) {
				l.Passed = append(l.Passed, id)
			} else {
				l.Failed = append(l.Failed, id)
			}
		}
		return l
	}
	return tasks.Tests{FailToPass: list(g.FailToPass), PassToPass: list(g.PassToPass)}
}
