package testlog

import (
	"regexp"
	"strings"
)

// The published parsers are Python's: their blanks, words and line ends are read as Python does.

// universal reads line ends as a text file does in Python.
func universal(log string) string {
	if !strings.Contains(log, "\r") {
		return log
	}
	return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(log)
}

// blank reports whether r is white space to str.split and str.strip.
func blank(r rune) bool {
	switch {
	case r >= '\t' && r <= '\r', r >= 0x1c && r <= ' ', r == 0x85, r == 0xa0, r == 0x1680,
		r >= 0x2000 && r <= 0x200a, r == 0x2028, r == 0x2029, r == 0x202f, r == 0x205f, r == 0x3000:
		return true
	}
	return false
}

func fields(line string) []string { return strings.FieldsFunc(line, blank) }
func strip(line string) string    { return strings.TrimFunc(line, blank) }

// indent counts the blanks that a line starts with.
func indent(line string) int {
	n := 0
	for _, r := range line {
		if !blank(r) {
			break
		}
		n++
	}
	return n
}

const blanks = `\t-\r\x1c-\x20\x{85}\p{Z}`

// inClass and outside turn Python's classes, which know all of Unicode, into Go's.
var (
	outside = strings.NewReplacer(`\s`, `[`+blanks+`]`, `\S`, `[^`+blanks+`]`, `\d`, `\p{Nd}`, `\w`, `[\p{L}\p{N}_]`)
	inClass = strings.NewReplacer(`\s`, blanks, `\d`, `\p{Nd}`, `\w`, `\p{L}\p{N}_`)
)

// py compiles a pattern of Python's re. It knows what the patterns of this package hold.
func py(pattern string) *regexp.Regexp {
	var out strings.Builder
	for pattern != "" {
		open := classStart(pattern)
		out.WriteString(outside.Replace(pattern[:open]))
		pattern = pattern[open:]
		end := classEnd(pattern)
		out.WriteString(inClass.Replace(pattern[:end]))
		pattern = pattern[end:]
	}
	return regexp.MustCompile(out.String())
}

// classStart finds the next bracket that opens a class; the pattern's end where there is none.
func classStart(pattern string) int {
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
		case '[':
			return i
		}
	}
	return len(pattern)
}

// classEnd finds the end of the class that a pattern starts with.
func classEnd(pattern string) int {
	for i := 1; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
		case ']':
			return i + 1
		}
	}
	return len(pattern)
}

// words are the statuses of the words that runners print.
var words = map[string]string{
	"PASS": Passed, "PASSED": Passed, "ok": Passed, "OK": Passed, "✓": Passed, "pass": Passed, "passed": Passed, ".": Passed,
	"FAIL": Failed, "FAILED": Failed, "ERR": Failed, "not ok": Failed, "✕": Failed, "×": Failed, "failed": Failed, "F": Failed, "E": Failed,
	"SKIP": Skipped, "○": Skipped, "↓": Skipped, "skip": Skipped, "O": Skipped,
}

// lines makes a parser for logs that tell a test and its status in one line. name and word are the
// groups of pattern that hold them; a word that means no status is passed over.
func lines(pattern string, name, word int) parser {
	return plain(func(log string) Results {
		out, re := Results{}, py(pattern)
		for line := range strings.SplitSeq(log, "\n") {
			m := matchStart(re, strip(line))
			if m == nil {
				continue
			}
			if s, ok := words[m[word]]; ok {
				out[trimTest(m[name], pattern)] = s
			}
		}
		return out
	})
}

// trimTest strips names of jest's tests, which its timing may leave a blank behind.
func trimTest(name, pattern string) string {
	if strings.Contains(pattern, "✕") {
		return strip(name)
	}
	return name
}

// matchStart gives the groups of a match that starts where text does, as Python's re.match; nil for none.
func matchStart(re *regexp.Regexp, text string) []string {
	at := re.FindStringSubmatchIndex(text)
	if at == nil || at[0] != 0 {
		return nil
	}
	groups := make([]string, len(at)/2)
	for i := range groups {
		if at[2*i] >= 0 {
			groups[i] = text[at[2*i]:at[2*i+1]]
		}
	}
	return groups
}

// step is a suite on the way to a test, with the blanks before its name.
type step struct {
	name   string
	indent int
}

// nest puts a line of a tree of suites in its place: below the last one that is less indented.
func nest(suites []step, line string) []step {
	n := indent(line)
	for len(suites) > 0 && suites[len(suites)-1].indent >= n {
		suites = suites[:len(suites)-1]
	}
	return append(suites, step{name: strip(line), indent: n})
}

// path joins the suites and a test with dashes.
func path(suites []step, test ...string) string {
	var parts []string
	for _, s := range suites {
		parts = append(parts, s.name)
	}
	return strings.Join(append(parts, test...), " - ")
}
