package grading

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// parsePytestJSON reads the report of the pytest-json-report plugin: {"tests": [{"nodeid": ...,
// "outcome": ...}]}. A test that passed where a failure was expected of it passed.
func parsePytestJSON(data []byte) (report, error) {
	if len(data) > maxReport {
		return report{}, fmt.Errorf("%w: over %d bytes", errReport, maxReport)
	}
	var doc struct {
		Tests *[]struct {
			NodeID  string `json:"nodeid"`
			Outcome string `json:"outcome"`
		} `json:"tests"`
		Collectors []struct {
			NodeID  string `json:"nodeid"`
			Outcome string `json:"outcome"`
		} `json:"collectors"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return report{}, fmt.Errorf("%w: %w", errReport, err)
	}
	if doc.Tests == nil || len(*doc.Tests) > maxTests {
		return report{}, fmt.Errorf("%w: it holds no list of tests, or one of over %d", errReport, maxTests)
	}
	r := newReport(plainKey)
	outcomes := map[string]status{"passed": passed, "xpassed": passed, "xfailed": xfailed, "skipped": skipped}
	for _, t := range *doc.Tests {
		s := outcomes[t.Outcome]
		if s == absent {
			s = failed // "failed", "error", and words that nobody knows
		}
		r.add(t.NodeID, s)
	}
	for _, c := range doc.Collectors {
		if c.Outcome == "failed" {
			r.add(c.NodeID, failed)
		}
	}
	return r, nil
}

// parseGoTest reads `go test -json`: one event a line, among which a build's plain output may stand. Keys
// are package, a NUL, test. A test that began and did not end has failed, and so has a package of that
// status.
func parseGoTest(data []byte) (report, error) {
	if len(data) > maxReport {
		return report{}, fmt.Errorf("%w: over %d bytes", errReport, maxReport)
	}
	r := newReport(goKey)
	open := map[string]bool{}
	events := 0
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] != '{' {
			continue
		}
		var event struct{ Action, Package, Test string }
		if json.Unmarshal(line, &event) != nil || event.Action == "" {
			continue
		}
		events++
		key := event.Package + "\x00" + event.Test
		if len(r.tests)+len(open) > maxTests {
			return report{}, fmt.Errorf("%w: over %d tests", errReport, maxTests)
		}
		switch {
		case event.Action == "run":
			open[key] = true
		case event.Action == "fail":
			r.add(key, failed)
			delete(open, key)
		case event.Action == "pass" && event.Test != "":
			r.add(key, passed)
			delete(open, key)
		case event.Action == "skip" && event.Test != "":
			r.add(key, skipped)
			delete(open, key)
		}
	}
	if events == 0 {
		return report{}, fmt.Errorf("%w: it holds no event", errReport)
	}
	for key := range open {
		r.add(key, failed)
	}
	return r.bare(), nil
}

// goKey writes an id of a Go test: "package::TestA/sub", or the test's name alone.
func goKey(id string) string {
	if pkg, test, ok := strings.Cut(id, "::"); ok {
		return pkg + "\x00" + test
	}
	return "\x00" + id
}

// bare adds each test under its name alone, as some sets publish them: with the worst of its packages.
func (r report) bare() report {
	out := newReport(r.key)
	for key, s := range r.tests {
		out.add(key, s)
		if pkg, test, ok := strings.Cut(key, "\x00"); ok && pkg != "" && test != "" {
			out.add("\x00"+test, s)
		}
	}
	return out
}
