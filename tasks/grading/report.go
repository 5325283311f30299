package grading

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// status is what became of a test. Of several reports on one test the worst counts.
type status int

const (
	absent  status = iota
	passed         // and nothing else
	skipped        // skipped, or an expected failure: no pass
	failed         // a failure or an error, in the test or around it
)

// Bounds on a JUnit report: a hundred times what the largest real ones hold.
const (
	maxReport = 64 << 20
	maxDepth  = 64
	maxTests  = 500_000
)

// errReport: the structured report is broken or over its bounds.
var errReport = errors.New("the report cannot be read")

// report is a structured report by test: classname, a NUL, name.
type report map[string]status

// parseJUnit reads a JUnit report as pytest and others write it. The input is hostile: entities that
// it declares itself are refused by encoding/xml, depth and count are bounded.
func parseJUnit(data []byte) (report, error) {
	if len(data) > maxReport {
		return nil, fmt.Errorf("%w: over %d bytes", errReport, maxReport)
	}
	dec := xml.NewDecoder(bytes.NewReader(data))
	tests, depth, current, complete := report{}, 0, "", false
	for {
		token, err := dec.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errReport, err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			if depth++; depth > maxDepth || len(tests) > maxTests {
				return nil, fmt.Errorf("%w: over %d levels or %d tests", errReport, maxDepth, maxTests)
			}
			switch t.Name.Local {
			case "testcase":
				current = attribute(t, "classname") + "\x00" + attribute(t, "name")
				tests.add(current, passed)
			case "failure", "error":
				tests.add(current, failed)
			case "skipped":
				tests.add(current, skipped)
			}
		case xml.EndElement:
			depth--
			if t.Name.Local == "testcase" {
				current = ""
			}
			if complete = depth == 0; depth < 0 {
				return nil, fmt.Errorf("%w: unbalanced", errReport)
			}
		}
	}
	if !complete {
		return nil, fmt.Errorf("%w: it ends early", errReport)
	}
	return tests, nil
}

func (r report) add(key string, s status) {
	if key != "" && s > r[key] {
		r[key] = s
	}
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// failures counts the tests that did not pass, skipped ones aside.
func (r report) failures() int {
	n := 0
	for _, s := range r {
		if s == failed {
			n++
		}
	}
	return n
}

// of gives what a report says of a test id as sets publish them: "tests/test_a.py::TestB::test_c[x]",
// "package.Class::test" or a bare name. An id cut off inside its parameters stands for every test
// that begins like it, and passes where all of them do.
func (r report) of(id string) status {
	key := junitKey(id)
	if s := r[key]; s != absent {
		return s
	}
	if !strings.Contains(id, "[") || strings.HasSuffix(id, "]") {
		return absent
	}
	worst := absent
	for k, s := range r {
		if strings.HasPrefix(k, key) && s > worst {
			worst = s
		}
	}
	return worst
}

// named gives what a report says of the tests with this name, in whatever class or file.
func (r report) named(name string) status {
	worst := absent
	for key, s := range r {
		if strings.HasSuffix(key, "\x00"+name) && s > worst {
			worst = s
		}
	}
	return worst
}

// junitKey turns a test id into the key of a report: pytest's class name is the path with dots, then
// the classes.
func junitKey(id string) string {
	head, params := id, ""
	if i := strings.IndexByte(id, '['); i >= 0 {
		head, params = id[:i], id[i:]
	}
	parts := strings.Split(head, "::")
	if len(parts) == 1 {
		return "\x00" + id
	}
	class := append([]string(nil), parts[:len(parts)-1]...)
	class[0] = strings.ReplaceAll(strings.TrimSuffix(class[0], ".py"), "/", ".")
	return strings.Join(class, ".") + "\x00" + parts[len(parts)-1] + params
}

// summaryFailures reads the short test summary at the end of pytest's output: the ids that it says
// failed. The runner writes it before any exit handler can rewrite the report. Only the last summary
// counts, and only what it says against a test: printed PASSED lines are worth nothing.
func summaryFailures(output []byte) []string {
	const heading = "short test summary info"
	at := bytes.LastIndex(output, []byte(heading))
	if at < 0 {
		return nil
	}
	var ids []string
	for _, line := range strings.Split(string(output[at:]), "\n") {
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
