package normalize

import "strings"

// isCopy tells whether a path lies in another copy of the task's own package: installed, cached or
// unpacked outside the work tree.
func (r *run) isCopy(p string) bool {
	t := &r.n.task
	if t.pkg == "" && t.repoName == "" || t.inTree(p) && !strings.Contains(p, "/site-packages/") && !strings.Contains(p, "/node_modules/") {
		return false
	}
	i := -1
	for _, place := range [...]string{
		"/site-packages/", "/dist-packages/", "/node_modules/", "/pkg/mod/", "GOMODCACHE", "/registry/src/", "/pkgs/", "/.m2/", "/gems/", "/.cache/", "/vendor_packages/",
	} {
		if j := strings.Index(p, place); j >= 0 && (i < 0 || j < i) {
			i = j
		}
	}
	if i < 0 {
		// $c/github.com/owner/name@version: a module cache behind a variable.
		if strings.Contains(p, "@v") && t.repo != "" && strings.Contains(strings.ToLower(p), t.repo+"@v") {
			return true
		}
		return false
	}
	for _, c := range components(p[i:]) {
		if t.ownName(c) || t.ownName(strings.TrimSuffix(strings.SplitN(c, "*", 2)[0], ".")) {
			return true
		}
	}
	return t.repo != "" && bounded(strings.ToLower(p[i:]), t.repo)
}
