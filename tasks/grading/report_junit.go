package grading

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// parseJUnit reads a JUnit report as pytest and others write it. The input is hostile: entities that
// it declares itself are refused by encoding/xml, depth and count are bounded. Its keys are class name,
// a NUL, name.
func parseJUnit(data []byte) (report, error) {
	none := report{}
	if len(data) > maxReport {
		return none, fmt.Errorf("%w: over %d bytes", errReport, maxReport)
	}
	dec := xml.NewDecoder(bytes.NewReader(data))
	r, depth, current, complete := newReport(junitKey), 0, "", false
	for {
		token, err := dec.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return none, fmt.Errorf("%w: %w", errReport, err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			if depth++; depth > maxDepth || len(r.tests) > maxTests {
				return none, fmt.Errorf("%w: over %d levels or %d tests", errReport, maxDepth, maxTests)
			}
			if t.Name.Local == "testcase" {
				current = attribute(t, "classname") + "\x00" + attribute(t, "name")
			}
			r.add(current, junitStatus(t))
		case xml.EndElement:
			depth--
			if t.Name.Local == "testcase" {
				current = ""
			}
			if complete = depth == 0; depth < 0 {
				return none, fmt.Errorf("%w: unbalanced", errReport)
			}
		}
	}
	if !complete {
		return none, fmt.Errorf("%w: it ends early", errReport)
	}
	return r, nil
}

// junitStatus is what an element says of the test case that it opens or stands in.
func junitStatus(e xml.StartElement) status {
	switch e.Name.Local {
	case "testcase":
		return passed
	case "failure", "error":
		return failed
	case "skipped":
		if attribute(e, "type") == "pytest.xfail" {
			return xfailed
		}
		return skipped
	}
	return absent
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
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
