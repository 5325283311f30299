package testlog

import (
	"regexp"
	"strings"
)

// statuses are the words that a pytest line of a test starts or ends with.
var statuses = []string{Failed, Passed, Skipped, Error, XFail}

func startsWithStatus(line string) bool {
	for _, s := range statuses {
		if strings.HasPrefix(line, s) {
			return true
		}
	}
	return false
}

func endsWithStatus(line string) bool {
	for _, s := range statuses {
		if strings.HasSuffix(line, s) {
			return true
		}
	}
	return false
}

var skipCount = py(`^\[\d+\]$`)

// summed reports whether a line is pytest's "SKIPPED [3] file:7: reason", which names no test.
func summed(words []string) bool { return words[0] == Skipped && skipCount.MatchString(words[1]) }

// pytestLine reads "STATUS id ..." of pytest's short summary (-rA). ok is false for all other lines.
func pytestLine(line string) (id, status string, ok bool) {
	if !startsWithStatus(line) {
		return "", "", false
	}
	if strings.HasPrefix(line, Failed) {
		line = strings.ReplaceAll(line, " - ", " ")
	}
	words := fields(line)
	if len(words) < 2 || summed(words) {
		return "", "", false
	}
	return words[1], words[0], true
}

func pytest(log string) Results {
	out := Results{}
	for line := range strings.SplitSeq(log, "\n") {
		if id, status, ok := pytestLine(line); ok {
			out[id] = status
		}
	}
	return out
}

// pytestOptions cuts parameters that are paths to their last part: those differ from machine to machine.
func pytestOptions(log string) Results {
	out := Results{}
	for line := range strings.SplitSeq(log, "\n") {
		id, status, ok := pytestLine(line)
		if !ok {
			continue
		}
		open, end := strings.IndexByte(id, '['), strings.LastIndexByte(id, ']')
		if open >= 0 && end > open {
			option := id[open+1 : end]
			if strings.HasPrefix(option, "/") && !strings.HasPrefix(option, "//") && !strings.Contains(option, "*") {
				option = option[strings.LastIndexByte(option, '/'):]
			}
			id = id[:open] + "[" + option + "]"
		}
		out[id] = status
	}
	return out
}

var colour = py(`\[(\d+)m`)

// pytestV2 takes colours away, keeps blanks in ids, and reads the lines of a verbose run, which end in
// the status.
func pytestV2(log string) Results {
	out := Results{}
	for line := range strings.SplitSeq(log, "\n") {
		if strings.Contains(line, "m") {
			line = colour.ReplaceAllString(line, "")
		}
		line = strings.Map(func(r rune) rune {
			if r >= 1 && r < ' ' {
				return -1
			}
			return r
		}, line)
		switch {
		case startsWithStatus(line):
			if strings.HasPrefix(line, Failed) {
				line, _, _ = strings.Cut(line, " - ")
			}
			if words := fields(line); len(words) >= 2 && !summed(words) {
				out[strings.Join(words[1:], " ")] = words[0]
			}
		case endsWithStatus(line):
			if words := fields(line); len(words) >= 2 {
				out[strings.Join(words[:len(words)-1], " ")] = words[len(words)-1]
			}
		}
	}
	return out
}

func matplotlib(log string) Results {
	return pytest(strings.NewReplacer("MouseButton.LEFT", "1", "MouseButton.RIGHT", "3").Replace(log))
}

// seaborn believes passes and failures alone, in short summary and verbose form.
func seaborn(log string) Results {
	out := Results{}
	for line := range strings.SplitSeq(log, "\n") {
		words := fields(line)
		if len(words) < 2 {
			continue
		}
		switch {
		case strings.HasPrefix(line, Failed):
			out[words[1]] = Failed
		case strings.Contains(line, " "+Passed+" "):
			if words[1] == Passed {
				out[words[0]] = Passed
			}
		case strings.HasPrefix(line, Passed):
			out[words[1]] = Passed
		}
	}
	return out
}

var sympyFailure = regexp.MustCompile(`(_*) (.*)\.py:(.*) (_*)`)

// sympy reads the lines of bin/test, and the headings of its failures.
func sympy(log string) Results {
	out := Results{}
	for _, m := range sympyFailure.FindAllStringSubmatch(log, -1) {
		out[m[2]+".py:"+m[3]] = Failed
	}
	for line := range strings.SplitSeq(log, "\n") {
		line = strip(line)
		if !strings.HasPrefix(line, "test_") {
			continue
		}
		for _, end := range []struct{ word, status string }{{" E", Error}, {" F", Failed}, {" ok", Passed}} {
			if strings.HasSuffix(line, end.word) {
				out[fields(line)[0]] = end.status
			}
		}
	}
	return out
}
