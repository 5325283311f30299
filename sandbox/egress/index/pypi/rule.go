package pypi

import (
	"regexp"
	"strconv"
	"strings"

	"proctor/sandbox/egress/index"
)

// has reports whether a file of a project exists under a rule.
func has(r index.Rule, project string, f file) bool {
	if !r.InTime(f.Uploaded) {
		return false
	}
	if !r.Bounded() || project != Normalize(r.Package) {
		return true
	}
	version, ok := releaseOf(versionOf(project, f.Filename))
	if !ok {
		return false // which version it is cannot be told
	}
	if fix, ok := releaseOf(r.Fix); ok {
		return version.compare(fix) < 0
	}
	base, ok := releaseOf(r.Base)
	return ok && version.compare(base) <= 0
}

var separators = regexp.MustCompile(`[-_.]+`)

// Normalize gives a project's name as indexes compare it (PEP 503).
func Normalize(name string) string { return strings.ToLower(separators.ReplaceAllString(name, "-")) }

// archiveEnds are the endings of packages' files, the longer before the shorter.
var archiveEnds = []string{".tar.gz", ".tar.bz2", ".tar.xz", ".tar.Z", ".tgz", ".zip", ".whl", ".egg", ".exe", ".msi", ".rpm", ".deb"}

// versionOf gives the version in the name of a project's file, "" where it cannot be told.
func versionOf(project, filename string) string {
	stem := filename
	for _, end := range archiveEnds {
		if s, ok := strings.CutSuffix(filename, end); ok {
			stem = s
			break
		}
	}
	if stem == filename {
		return ""
	}
	for i := range stem {
		if stem[i] == '-' && Normalize(stem[:i]) == project {
			version, _, _ := strings.Cut(stem[i+1:], "-")
			return version
		}
	}
	return ""
}

// release is the numeric part of a version: "2.28.1.post1" is 2, 28, 1. A version before a release, such
// as 2.0rc1, counts as that release: it may well hold the fix.
type release []int

var releaseForm = regexp.MustCompile(`^v?([0-9]{1,9}(?:\.[0-9]{1,9})*)`)

// releaseOf reads a version; false where it has no number, or an epoch (PEP 440), which nothing compares to.
func releaseOf(version string) (release, bool) {
	m := releaseForm.FindStringSubmatch(strings.TrimSpace(version))
	if m == nil || strings.Contains(version, "!") {
		return nil, false
	}
	var r release
	for part := range strings.SplitSeq(m[1], ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil, false
		}
		r = append(r, n)
	}
	return r, true
}

// compare is negative, 0 or positive; missing parts are 0.
func (r release) compare(o release) int {
	for i := range max(len(r), len(o)) {
		if a, b := r.part(i), o.part(i); a != b {
			return a - b
		}
	}
	return 0
}

func (r release) part(i int) int {
	if i < len(r) {
		return r[i]
	}
	return 0
}
