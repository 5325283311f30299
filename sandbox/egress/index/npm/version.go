package npm

import (
	"cmp"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"proctor/sandbox/egress/index"
)

// version is one of a package. Its manifests are as a Mirror serves them, but for a deprecation.
type version struct {
	Number      string // as the upstream writes it
	order       string // by which it is compared; "" where it is no version as semver has it
	Published   time.Time
	Deprecated  bool
	Tarball     *url.URL        // where the upstream has it
	whole, part json.RawMessage // the manifest, and that of the abbreviated document; objects that have a field
}

// orderOf gives the form in which a version is compared, "" for what is none. "1.4" is 1.4.0, as tasks may
// write it.
func orderOf(number string) string {
	v := "v" + strings.TrimPrefix(strings.TrimSpace(number), "v")
	if !semver.IsValid(v) {
		return ""
	}
	return v
}

// compare puts versions in order, those that are none first.
func compare(a, b version) int {
	return cmp.Or(semver.Compare(a.order, b.order), cmp.Compare(a.Number, b.Number))
}

// released reports whether a version is neither one before a release nor none at all.
func (v version) released() bool { return v.order != "" && semver.Prerelease(v.order) == "" }

// owns reports whether a package is the task's own. Some old names differ in case alone: better one too many.
func owns(r index.Rule, name string) bool { return strings.EqualFold(name, r.Package) }

// has reports whether a version of a package exists under a rule.
func has(r index.Rule, name string, v version) bool {
	if !r.InTime(v.Published) {
		return false
	}
	if !r.Bounded() || !owns(r, name) {
		return true
	}
	if v.order == "" {
		return false // which version it is cannot be told
	}
	if fix := orderOf(r.Fix); fix != "" {
		return precedes(v.order, fix)
	}
	base := orderOf(r.Base)
	return base != "" && semver.Compare(v.order, base) <= 0
}

// precedes reports whether a version came before the fix. One before a release, such as 2.0.0-rc.1, counts
// as that release, since it may well hold the fix; unless the fix is such a version itself.
func precedes(v, fix string) bool {
	if semver.Prerelease(fix) == "" {
		v, _, _ = strings.Cut(semver.Canonical(v), "-")
	}
	return semver.Compare(v, fix) < 0
}
