package grading

import (
	"fmt"
	"strings"

	"proctor/tasks/grading/testlog"
)

// Marks that a set's own test script prints around the output of its tests.
const (
	logStart = ">>>>> Start Test Output"
	logEnd   = ">>>>> End Test Output"
)

// parseLog reads a run's output by one of the sets' own parsers.
func parseLog(parser string, output []byte, about testlog.About) (report, error) {
	if len(output) > maxReport {
		return report{}, fmt.Errorf("%w: the log is over %d bytes", errReport, maxReport)
	}
	log := strings.ToValidUTF8(string(output), "\ufffd")
	results, err := testlog.Parse(parser, logRegion(log), about)
	if err != nil {
		return report{}, fmt.Errorf("%w: %w", errReport, err)
	}
	if len(results) > maxTests {
		return report{}, fmt.Errorf("%w: over %d tests", errReport, maxTests)
	}
	r := newReport(plainKey)
	r.lenient = true
	words := map[string]status{testlog.Passed: passed, testlog.XFail: xfailed, testlog.Skipped: skipped}
	for id, word := range results {
		s := words[word]
		if s == absent {
			s = failed
		}
		r.add(id, s)
	}
	if testlog.FailOnly(parser) {
		if !testlog.Ran(log) {
			return report{}, fmt.Errorf("%w: the log shows no run", errReport)
		}
		r.failOnly = true
	}
	return r, nil
}

// logRegion gives what stands between the marks; the whole where they are not.
func logRegion(log string) string {
	_, rest, ok := strings.Cut(log, logStart)
	if !ok {
		return log
	}
	region, _, ok := strings.Cut(rest, logEnd)
	if !ok {
		return log
	}
	return region
}

// marksForged reports whether a log holds a mark more often than the set's script prints it: once as the
// shell's trace of a command, and once more where that command is an echo.
func marksForged(output []byte) bool {
	text := string(output)
	return oftener(text, logStart) || oftener(text, logEnd)
}

func oftener(text, mark string) bool {
	printed, traced, echoed := 0, 0, false
	for text != "" {
		at := strings.Index(text, mark)
		if at < 0 {
			break
		}
		line := text[strings.LastIndexByte(text[:at], '\n')+1 : at]
		text = text[at+len(mark):]
		if strings.HasPrefix(line, "+") {
			traced++
			echoed = echoed || strings.Contains(line, "echo")
		} else {
			printed++
		}
	}
	return printed > 1 || traced > 1 || (printed == 1 && traced == 1 && !echoed)
}
