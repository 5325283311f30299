package normalize

import (
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/pattern"
)

// shellPattern compiles a shell pattern, nil where it is not one. Bounded: RE2 has no backtracking.
func shellPattern(pat string, mode pattern.Mode) *regexp.Regexp {
	if len(pat) > 1024 {
		return nil
	}
	expr, err := pattern.Regexp(pat, mode)
	if err != nil {
		return nil
	}
	rx, err := regexp.Compile("(?s)" + expr)
	if err != nil {
		return nil
	}
	return rx
}

// matchName tells whether one path component matches one component of a shell pattern. A leading
// dot has to be matched literally, as in bash without dotglob.
func matchName(pat, name string) bool {
	if strings.HasPrefix(name, ".") && !strings.HasPrefix(strings.TrimPrefix(pat, `\`), ".") {
		return false
	}
	if !strings.ContainsAny(pat, "*?[\\") {
		return pat == name
	}
	rx := shellPattern(pat, pattern.EntireString)
	return rx != nil && rx.MatchString(name)
}

// reach says how a pattern of an absolute path stands to a path.
type reach int

const (
	reachNone   reach = iota
	reachAbove        // it names a folder above the path
	reachStar         // it names the path, but only by a bare *
	reachDirect       // it names the path or something below it
)

// globReach compares a pattern, component by component, with an absolute path.
func globReach(pat, target string) reach {
	ps, ts := components(pat), components(target)
	bare := true
	for i, p := range ps {
		if i >= len(ts) {
			break
		}
		if p == "**" {
			return reachStar
		}
		if !matchName(p, ts[i]) {
			return reachNone
		}
		if i == len(ts)-1 {
			bare = p == "*"
		}
	}
	switch {
	case len(ps) < len(ts):
		return reachAbove
	case bare:
		return reachStar
	}
	return reachDirect
}

func components(p string) []string {
	return strings.FieldsFunc(p, func(c rune) bool { return c == '/' })
}

// testPath is one of a task's test paths: a folder, a file, or a pattern in which ** stands for any number of
// folders. Most have no pattern, and there are a task's tests in every rollout: those cost nothing to make.
type testPath struct {
	plain   string
	pattern *regexp.Regexp // nil where plain is all
}

// covers tells whether a path relative to workdir is at or under the test path.
func (t testPath) covers(rel string) bool {
	if t.pattern != nil {
		return t.pattern.MatchString(rel)
	}
	below, ok := strings.CutPrefix(rel, t.plain)
	return ok && (below == "" || below[0] == '/')
}

// newTestPath reads a test path relative to workdir; false where there is none.
func newTestPath(p string) (testPath, bool) {
	p = strings.Trim(strings.TrimPrefix(p, "./"), "/")
	if p == "" {
		return testPath{}, false
	}
	if !strings.ContainsAny(p, "*?") {
		return testPath{plain: p}, true
	}
	rx := testPattern(p)
	return testPath{pattern: rx}, rx != nil
}

// testPattern compiles a test path with a pattern. It matches what is at or under the path.
func testPattern(p string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString("^")
	slash := false // the last component still wants its slash
	for _, c := range strings.Split(p, "/") {
		if slash {
			b.WriteString("/")
		}
		if slash = c != "**"; !slash {
			b.WriteString("(?:[^/]+/)*")
			continue
		}
		for _, r := range c {
			switch r {
			case '*':
				b.WriteString("[^/]*?")
			case '?':
				b.WriteString("[^/]")
			default:
				b.WriteString(regexp.QuoteMeta(string(r)))
			}
		}
	}
	b.WriteString("(?s:/.*)?$")
	rx, err := regexp.Compile(b.String())
	if err != nil {
		return nil
	}
	return rx
}

// globsMeet tells whether some path matches both patterns, given by component; a is a test path, so
// what lies below it counts too. It may say yes too often ([...] is taken for any character).
func globsMeet(a, b []string) bool {
	if len(a) > 32 || len(b) > 32 {
		return false
	}
	if len(a) == 0 {
		return true
	}
	if a[0] == "**" {
		return globsMeet(a[1:], b) || len(b) > 0 && globsMeet(a, b[1:])
	}
	if len(b) == 0 {
		return false
	}
	return namesMeet(a[0], b[0]) && globsMeet(a[1:], b[1:])
}

// namesMeet is globsMeet for one component, by a table over both: star may take nothing or more.
func namesMeet(a, b string) bool {
	a, b = clip(a, 256), clip(b, 256)
	meet := make([][]bool, len(a)+1)
	for i := range meet {
		meet[i] = make([]bool, len(b)+1)
	}
	for i := len(a); i >= 0; i-- {
		for j := len(b); j >= 0; j-- {
			starA, starB := i < len(a) && a[i] == '*', j < len(b) && b[j] == '*'
			switch {
			case i == len(a) && j == len(b):
				meet[i][j] = true
			case starA:
				meet[i][j] = meet[i+1][j] || j < len(b) && meet[i][j+1]
			case starB:
				meet[i][j] = meet[i][j+1] || i < len(a) && meet[i+1][j]
			case i < len(a) && j < len(b):
				meet[i][j] = (a[i] == b[j] || a[i] == '?' || b[j] == '?' || a[i] == '[' || b[j] == '[') && meet[i+1][j+1]
			}
		}
	}
	return meet[0][0]
}
