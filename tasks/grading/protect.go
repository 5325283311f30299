package grading

import (
	"path"
	"sort"
	"strings"

	"proctor/tasks"
)

// guard is the set of paths that a patch cannot change: test paths, the files of the hidden tests,
// and the files that expected tests are named after.
type guard struct {
	roots []string // clean, relative to the working folder; each guards all below it
}

// newGuard gathers what task protects. hidden are the files that go in before the tests run.
func newGuard(task *tasks.Task, hidden []string) guard {
	seen := map[string]bool{}
	add := func(p string) {
		p = path.Clean(strings.TrimPrefix(p, "./"))
		if p != "." && p != "" && !strings.HasPrefix(p, "../") && !path.IsAbs(p) {
			seen[p] = true
		}
	}
	for _, p := range task.TestPaths {
		add(p)
	}
	for _, p := range hidden {
		add(p)
	}
	for _, id := range expectedIDs(task.Grader) {
		if file := testFile(id); file != "" {
			add(file)
		}
	}
	for _, p := range task.HiddenPaths {
		if rest, ok := strings.CutPrefix(path.Clean(p), path.Clean(task.Workdir)+"/"); ok {
			add(rest)
		}
	}
	roots := make([]string, 0, len(seen))
	for p := range seen {
		roots = append(roots, p)
	}
	sort.Strings(roots)
	return guard{roots: roots}
}

// holds reports whether name is guarded: at or below a root, or in the place of a folder above one
// (a link or file there would lead the root elsewhere).
func (g guard) holds(name string) bool {
	for _, root := range g.roots {
		if under(name, root) || under(root, name) {
			return true
		}
	}
	return false
}

// under reports whether name is root or lies below it.
func under(name, root string) bool {
	return name == root || (len(name) > len(root) && name[len(root)] == '/' && strings.HasPrefix(name, root))
}

// testFile gives the file of a test id such as "tests/test_a.py::test_b[x]"; "" where it names none.
func testFile(id string) string {
	file, _, _ := strings.Cut(id, "::")
	if strings.HasSuffix(file, ".py") && !strings.Contains(file, " ") {
		return file
	}
	return ""
}

// expectedIDs are all tests that a grader names.
func expectedIDs(g *tasks.Grader) []string {
	if g == nil {
		return nil
	}
	return append(append([]string(nil), g.FailToPass...), g.PassToPass...)
}

// restore gives files with every path for which keep says so taken from base: as it is there, or not
// at all. It tells what was put back.
func restore(files, base listing, keep func(string) bool) (listing, []string) {
	out := make(listing, len(files))
	var changed []string
	for name, e := range files {
		if !keep(name) {
			out[name] = e
			continue
		}
		if base[name] != e {
			changed = append(changed, name)
		}
	}
	for name, e := range base {
		if !keep(name) {
			continue
		}
		if _, ok := files[name]; !ok {
			changed = append(changed, name)
		}
		out[name] = e
	}
	sort.Strings(changed)
	return out, changed
}
