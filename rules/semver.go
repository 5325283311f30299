package rules

import (
	"fmt"
	"strconv"
	"strings"
)

// version is a version number as packages write it: SemVer, or shorter, or with a suffix such as
// PEP 440's (5.1.dev0, 3.2rc1). A suffix makes it a pre-release, which sorts before its release.
type version struct {
	nums [3]int
	pre  string
}

// parseVersion reads a version leniently; false where it does not begin with a number.
func parseVersion(s string) (version, bool) {
	s = strings.TrimPrefix(strings.TrimSpace(s), "v")
	s, _, _ = strings.Cut(s, "+")
	var v version
	for i := range v.nums {
		n := 0
		for n < len(s) && s[n] >= '0' && s[n] <= '9' {
			n++
		}
		if n == 0 || n > 9 {
			if i == 0 {
				return v, false
			}
			break
		}
		v.nums[i], _ = strconv.Atoi(s[:n])
		s = s[n:]
		if i == 2 || !strings.HasPrefix(s, ".") || len(s) < 2 || s[1] < '0' || s[1] > '9' {
			break
		}
		s = s[1:]
	}
	v.pre = strings.TrimLeft(s, ".-")
	if strings.HasPrefix(v.pre, "post") || strings.ContainsAny(v.pre[:min(1, len(v.pre))], "0123456789") {
		v.pre = "" // a fourth number or a post-release is not before the release
	}
	return v, true
}

// compare is -1, 0 or 1. Pre-releases of one release compare as text.
func (v version) compare(w version) int {
	for i := range v.nums {
		if v.nums[i] != w.nums[i] {
			if v.nums[i] < w.nums[i] {
				return -1
			}
			return 1
		}
	}
	switch {
	case v.pre == w.pre:
		return 0
	case v.pre == "":
		return 1
	case w.pre == "":
		return -1
	}
	return strings.Compare(v.pre, w.pre)
}

// versionRange is comparisons that have to hold together: ">=1.2 <2".
type versionRange []struct {
	op string
	v  version
}

// parseRange reads comparisons apart by spaces or commas; a bare version means equal.
func parseRange(s string) (versionRange, error) {
	var r versionRange
	for _, part := range strings.FieldsFunc(s, func(c rune) bool { return c == ' ' || c == ',' }) {
		op := "="
		for _, o := range []string{">=", "<=", "!=", "==", ">", "<", "="} {
			if strings.HasPrefix(part, o) {
				op, part = o, part[len(o):]
				break
			}
		}
		v, ok := parseVersion(part)
		if !ok {
			return nil, fmt.Errorf("%q is not a version", part)
		}
		r = append(r, struct {
			op string
			v  version
		}{op, v})
	}
	if len(r) == 0 {
		return nil, fmt.Errorf("the range %q is empty", s)
	}
	return r, nil
}

// holds says whether v is in the range.
func (r versionRange) holds(v version) bool {
	for _, c := range r {
		d := v.compare(c.v)
		ok := false
		switch c.op {
		case "=", "==":
			ok = d == 0
		case "!=":
			ok = d != 0
		case ">":
			ok = d > 0
		case ">=":
			ok = d >= 0
		case "<":
			ok = d < 0
		case "<=":
			ok = d <= 0
		}
		if !ok {
			return false
		}
	}
	return true
}

// strictSemVer says whether s is MAJOR.MINOR.PATCH, with an optional pre-release or build.
func strictSemVer(s string) bool {
	core, _, _ := strings.Cut(s, "+")
	core, _, _ = strings.Cut(core, "-")
	parts := strings.Split(core, ".")
	if len(parts) != 3 {
		return false
	}
	for _, p := range parts {
		if _, err := strconv.ParseUint(p, 10, 31); err != nil || p != strconv.Itoa(atoi(p)) {
			return false
		}
	}
	return true
}

func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}
