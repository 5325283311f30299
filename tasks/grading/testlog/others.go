package testlog

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	minitestLine = `^(.+)\. .*=.*(\.|F|E).*$`
	cucumberLine = `^(.*) \.+(\.|F)`
)

// jekyll changed its runner between the pull requests of the set.
func jekyll(log string, about About) (Results, error) {
	_, number, _ := strings.Cut(about.InstanceID, "-")
	number, _, _ = strings.Cut(number, "-")
	switch number {
	case "9141", "8047", "8167":
		return lines(minitestLine, 1, 2)(log, about)
	case "8761", "8771":
		return lines(cucumberLine, 1, 2)(log, about)
	}
	return nil, fmt.Errorf("%w: jekyll: nothing is known of the runner of %q", ErrLog, about.InstanceID)
}

var (
	mavenTest   = py(`^.*-Dtest=(\S+).*$`)
	mavenResult = py(`^.*BUILD (SUCCESS|FAILURE)$`)
)

// maven names no test that passes: each is run by itself, and its command (set -x) and the build's end
// are matched in order.
func maven(log string) Results {
	out := Results{}
	var tests, results []string
	settle := func(test, result string) {
		out[test] = map[string]string{"SUCCESS": Passed, "FAILURE": Failed}[result]
	}
	for line := range strings.SplitSeq(log, "\n") {
		line = strip(line)
		if m := mavenTest.FindStringSubmatch(line); m != nil {
			tests = append(tests, m[1])
		}
		m := mavenResult.FindStringSubmatch(line)
		switch {
		case m == nil:
		case len(tests) > 0:
			settle(tests[0], m[1])
			tests = tests[1:]
		default:
			results = append(results, m[1])
		}
	}
	for i := range min(len(tests), len(results)) {
		settle(tests[i], results[i])
	}
	return out
}

var (
	gradleWhole = py(`^([^>].+)\s+(PASSED|FAILED)$`)
	gradleTest  = py(`^([^>]\S*\s+>\s+\S+)$`)
)

// gradle reads "Class > test PASSED", also where other output came between the two.
func gradle(log string) Results {
	out := Results{}
	waiting := ""
	for line := range strings.SplitSeq(log, "\n") {
		line = strip(line)
		if m := gradleWhole.FindStringSubmatch(line); m != nil {
			out[m[1]] = m[2]
			waiting = ""
			continue
		}
		if m := gradleTest.FindStringSubmatch(line); m != nil {
			waiting = m[1]
			continue
		}
		if waiting != "" && (line == Passed || line == Failed) {
			out[waiting] = line
			waiting = ""
		}
	}
	return out
}

var (
	redisLine = py(`^\[(ok|err|skip|ignore)\]:\s(.+?)(?:\s\((\d+\s*m?s)\))?$`)
	redisFile = py(`\s+in\s+\S+$`)
)

func redis(log string) Results {
	out := Results{}
	for line := range strings.SplitSeq(log, "\n") {
		m := redisLine.FindStringSubmatch(strip(line))
		if m == nil {
			continue
		}
		switch m[1] {
		case "ok":
			out[m[2]] = Passed
		case "err":
			out[redisFile.ReplaceAllString(m[2], "")] = Failed
		default:
			out[m[2]] = Skipped
		}
	}
	return out
}

var (
	phpSuite = py(`^(\w.+) \(.+\)$`)
	phpTest  = py(`^\s*([✔✘↩])\s*(.*)$`)
)

// phpunit reads --testdox. A test before any suite is the suite None's.
func phpunit(log string) Results {
	out := Results{}
	suite := "None"
	for line := range strings.SplitSeq(log, "\n") {
		if m := phpSuite.FindStringSubmatch(line); m != nil {
			suite = m[1]
		} else if m := phpTest.FindStringSubmatch(line); m != nil {
			out[suite+" > "+m[2]] = map[string]string{"✔": Passed, "✘": Failed, "↩": Skipped}[m[1]]
		}
	}
	return out
}

// doctest reads the XML (-s -r=xml) of the C++ runner of that name: a subcase passes where each of its
// expressions held.
func doctest(log string) (Results, error) {
	const endTag = "</doctest>"
	out := Results{}
	start := strings.Index(log, "<doctest")
	if start < 0 {
		return out, nil
	}
	end := strings.Index(log[start:], endTag)
	if end < 0 {
		return nil, fmt.Errorf("%w: doctest: the report ends early", ErrLog)
	}
	dec := xml.NewDecoder(strings.NewReader(log[start : start+end+len(endTag)]))
	w := &doctestWalk{out: out, last: map[string]int{}}
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: doctest: %w", ErrLog, err)
		}
		if err := w.take(token); err != nil {
			return nil, err
		}
	}
}

// doctestWalk is the way from the report's root to where its reading stands.
type doctestWalk struct {
	out   Results
	open  []xml.StartElement
	tests []string       // names of the open test cases
	subs  []subcase      // the open subcases
	last  map[string]int // the latest subcase of a name, which is the one that counts
	count int
}

type subcase struct {
	name   string
	number int
}

func (w *doctestWalk) take(token xml.Token) error {
	switch t := token.(type) {
	case xml.StartElement:
		if len(w.open) > 64 {
			return fmt.Errorf("%w: doctest: nested too deeply", ErrLog)
		}
		w.open = append(w.open, t.Copy())
		w.start(t)
	case xml.EndElement:
		w.open = w.open[:len(w.open)-1]
		if t.Name.Local == "TestCase" {
			w.tests = w.tests[:len(w.tests)-1]
		}
		if t.Name.Local == "SubCase" {
			w.subs = w.subs[:len(w.subs)-1]
		}
	}
	return nil
}

func (w *doctestWalk) start(t xml.StartElement) {
	switch t.Name.Local {
	case "TestCase":
		w.tests = append(w.tests, attribute(t, "name"))
	case "SubCase":
		w.count++
		s := subcase{name: attribute(t, "name"), number: w.count}
		w.subs = append(w.subs, s)
		for _, test := range w.tests {
			w.last[test+" > "+s.name] = s.number
			w.out[test+" > "+s.name] = Passed
		}
	case "Expression":
		if attribute(t, "success") == "true" {
			return
		}
		for _, s := range w.subs {
			for _, test := range w.tests {
				if key := test + " > " + s.name; w.last[key] == s.number {
					w.out[key] = Failed
				}
			}
		}
	}
}

// attribute gives an attribute as Python prints one, None where there is none.
func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return "None"
}
