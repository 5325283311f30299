package harden

import (
	"bytes"
	"path"
	"regexp"
	"strings"
)

// fixedFile is what the solution does to one source file, in a form by which copies are known: of the
// lines that it adds, those that say something and that the file did not have.
type fixedFile struct {
	name   string          // as the patch has it
	suffix string          // the last two parts of it, or the one that there is: "requests/models.py"
	top    string          // the first part that is a package's: "requests", "_pytest"
	lines  map[string]bool // normalised
}

// sourceEndings are files whose copies hold code; a changelog or a test tells nothing that can be run.
var sourceEndings = map[string]bool{".py": true, ".pyx": true, ".js": true, ".mjs": true, ".cjs": true, ".ts": true, ".tsx": true, ".jsx": true, ".vue": true,
	".go": true, ".rs": true, ".java": true, ".kt": true, ".c": true, ".h": true, ".cc": true, ".cpp": true, ".hpp": true, ".rb": true, ".php": true,
	".cs": true, ".swift": true, ".scala": true, ".lua": true, ".pl": true, ".sh": true}

// minLine is how long a normalised line must be to count: "return None" is everywhere.
const minLine = 12

// layoutParts are folders that a repository has around its package, and an installed copy has not.
var layoutParts = map[string]bool{"src": true, "lib": true, "source": true, "python": true, "packages": true}

// fixOf reads the source files that a patch writes.
func fixOf(patch string) []*fixedFile {
	var files []*fixedFile
	var current *fixedFile
	before := map[string]bool{}
	for _, line := range strings.Split(patch, "\n") {
		switch {
		case strings.HasPrefix(line, "diff --git "), strings.HasPrefix(line, "--- "):
			current, before = nil, map[string]bool{}
		case strings.HasPrefix(line, "+++ b/"):
			name, _, _ := strings.Cut(strings.TrimRight(line[6:], "\r"), "\t")
			if name = path.Clean(name); sourceEndings[path.Ext(name)] && !isTestName(name) {
				current = newFixedFile(name)
				files = append(files, current)
			}
		case current == nil:
		case strings.HasPrefix(line, "+"):
			if n := normalLine(line[1:]); len(n) >= minLine && !before[n] {
				current.lines[n] = true
			}
		case strings.HasPrefix(line, "-"), strings.HasPrefix(line, " "):
			n := normalLine(line[1:])
			before[n] = true
			delete(current.lines, n)
		}
	}
	return files
}

func newFixedFile(name string) *fixedFile {
	parts := strings.Split(name, "/")
	for len(parts) > 1 && layoutParts[parts[0]] {
		parts = parts[1:]
	}
	return &fixedFile{name: name, suffix: strings.Join(parts[max(0, len(parts)-2):], "/"), top: parts[0], lines: map[string]bool{}}
}

func isTestName(name string) bool {
	base := path.Base(name)
	return strings.HasPrefix(base, "test_") || strings.Contains(base, "_test.") || strings.Contains(base, ".test.") || strings.Contains(base, ".spec.") ||
		strings.Contains("/"+name, "/tests/") || strings.Contains("/"+name, "/test/") || strings.Contains("/"+name, "/testing/")
}

// stringPrefix is what Python 2 code has before a literal, and a reformatted copy has not.
var stringPrefix = regexp.MustCompile(`\b[uU](["'])`)

// normalLine gives a line as reformatting leaves it: without spaces, prefixes of literals, trailing
// commas and semicolons, and with one kind of quote. A comment tells of a fix as its code does.
func normalLine(line string) string {
	line = stringPrefix.ReplaceAllString(line, "$1")
	line = strings.Map(func(r rune) rune {
		switch r {
		case ' ', '\t', '\r', '\f', '\v':
			return -1
		case '\'', '`':
			return '"'
		}
		return r
	}, line)
	return strings.TrimRight(line, ",;")
}

// Bounds of what counts as a copy of a fix, by how many of its lines are there.
const (
	nearShare = 0.5 // in a file of the same name
	farShare  = 0.8 // in any file
	farLines  = 4   // and of at least so many
)

// heldBy reports whether text holds the fix of f: near says that the file has f's name.
func (f *fixedFile) heldBy(text []byte, near bool) bool {
	if len(f.lines) == 0 || !near && len(f.lines) < farLines {
		return false
	}
	found := map[string]bool{}
	for len(text) > 0 {
		var line []byte
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			line, text = text[:i], text[i+1:]
		} else {
			line, text = text, nil
		}
		if len(line) < minLine || len(line) > 4096 {
			continue
		}
		if n := normalLine(string(line)); f.lines[n] {
			found[n] = true
		}
	}
	share := float64(len(found)) / float64(len(f.lines))
	return len(found) > 0 && (near && share >= nearShare || share >= farShare && len(found) >= farLines)
}
