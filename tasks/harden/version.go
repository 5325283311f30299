package harden

import (
	"regexp"
	"strconv"
	"strings"
)

// release is the numeric part of a version: "2.28.1.post1" is 2, 28, 1.
type release []int

var releaseForm = regexp.MustCompile(`^[vV]?([0-9]+(?:\.[0-9]+)*)`)

// releaseOf reads a version; nil where it has no number.
func releaseOf(version string) release {
	m := releaseForm.FindStringSubmatch(strings.TrimSpace(version))
	if m == nil {
		return nil
	}
	var r release
	for _, part := range strings.Split(m[1], ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil
		}
		r = append(r, n)
	}
	return r
}

// atLeast reports whether r is o or later; missing parts are 0.
func (r release) atLeast(o release) bool {
	for i := 0; i < max(len(r), len(o)); i++ {
		var a, b int
		if i < len(r) {
			a = r[i]
		}
		if i < len(o) {
			b = o[i]
		}
		if a != b {
			return a > b
		}
	}
	return true
}

// newer reports whether a copy of the task's package of this version can hold the fix: the release
// that first has it, or a later one; where that is not known, the release series of the start commit
// or a later one. false where nothing is known.
func (t Task) newer(version string) bool {
	have := releaseOf(version)
	if have == nil {
		return false
	}
	if fix := releaseOf(t.FixVersion); fix != nil {
		return have.atLeast(fix)
	}
	base := releaseOf(t.BaseVersion)
	return base != nil && have.atLeast(base)
}

// canonical gives a package's name as indexes compare it.
func canonical(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "-", ".", "-").Replace(strings.TrimSpace(name)))
}

// archiveForm takes apart the name of a package's file: name-1.2.3-py3-none-any.whl, name-1.2.3.tar.gz,
// name_1.2.3-1_all.deb, name-1.2.3.tgz.
var archiveForm = regexp.MustCompile(`^(.+?)[-_]v?([0-9]+(?:\.[0-9A-Za-z]+)*)(?:[-_+~].*)?\.(?:whl|egg|zip|tar\.gz|tgz|tar\.bz2|tar\.xz|tbz2|deb|rpm|jar|gem|crate|conda|nupkg)$`)

// archived reports whether a file's name is that of the task's package, and its version.
func (t Task) archived(base string) (version string, ok bool) {
	m := archiveForm.FindStringSubmatch(base)
	if m == nil || t.Package == "" {
		return "", false
	}
	name := canonical(m[1])
	return m[2], name == canonical(t.Package) || name == "python3-"+canonical(t.Package) || name == "python-"+canonical(t.Package)
}
