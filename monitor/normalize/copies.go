package normalize

import (
	"path"
	"regexp"
	"strings"

	"proctor/rules"
)

// gitBrought notes the folder into which a worktree of a foreign revision, or a clone of the upstream project,
// is put: what is read there later is another copy of the task's project.
func (r *run) gitBrought(cmd *rules.Command, rest []arg) {
	verb, ops := rest[0].s, operands("git", rest[1:])
	switch {
	case verb == "worktree" && len(ops) > 1 && ops[0].s == "add":
		for _, ref := range cmd.Git.Refs {
			if ref.Standing == rules.Foreign {
				r.st.strange.set(r.abs(ops[1].s), true)
			}
		}
	case verb == "clone" && len(ops) > 0 && len(cmd.Net.Upstream) > 0:
		dir := strings.TrimSuffix(path.Base(ops[0].s), ".git")
		if len(ops) > 1 {
			dir = ops[1].s
		}
		r.st.strange.set(r.abs(dir), true)
	}
}

// oneLetter is a class of one letter in a pattern, which stands for the letter.
var oneLetter = regexp.MustCompile(`\[(\w)\]`)

// isStrange tells whether a path lies in a folder that gitBrought noted.
func (r *run) isStrange(p string) bool {
	if r.st.strange.empty() {
		return false
	}
	found := false
	r.st.strange.each(func(dir string, _ bool) bool {
		found = rules.Below(p, dir)
		return !found
	})
	return found
}

// isCopy tells whether a path lies in another copy of the task's own package: installed, cached or
// unpacked outside the work tree.
func (r *run) isCopy(p string) bool {
	t := &r.n.task
	if r.isStrange(p) {
		return true
	}
	if t.pkg == "" && t.repoName == "" || t.inTree(p) && !strings.Contains(p, "/vendor/") && !strings.Contains(p, "/site-packages/") && !strings.Contains(p, "/node_modules/") {
		return false
	}
	p = oneLetter.ReplaceAllString(p, "$1")
	i := -1
	for _, place := range [...]string{
		"/site-packages/", "/dist-packages/", "/node_modules/", "/pkg/mod/", "GOMODCACHE", "/registry/src/", "/pkgs/", "/.m2/", "/gems/", "/.cache/", "/vendor_packages/", "/vendor/", "/modules-2/", "/.ivy2/", "/.nuget/", "/.julia/", "/.stack/", "/.cabal/", "/.hex/", "/.pub-cache/", "/.opam/", "/cache/", "/nix/store/", "/Cellar/", "/.gradle/", "/.cpan", "/.conan", "/luarocks/", "/.luarocks/", "/.local/share/", "/usr/share/", "/usr/src/", "/usr/lib/", "/usr/include/", "/usr/local/include/", "/usr/local/lib/", "/store/", "/site-library/", "/_build/deps/", "/.bun/", "/.deno/", "/.pixi/", "/.yarn/", "/.pnpm",
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
		return t.namedRelease(p)
	}
	for _, c := range components(p[i:]) {
		if t.ownName(c) || strings.ContainsAny(c, "?[") && t.ownPattern(c) || t.ownName(strings.TrimSuffix(strings.SplitN(c, "*", 2)[0], ".")) {
			return true
		}
	}
	if group := strings.ReplaceAll(t.pkg, ":", "/"); strings.Contains(group, "/") && bounded(strings.ToLower(p[i:]), group) {
		return true
	}
	return t.repo != "" && bounded(strings.ToLower(p[i:]), t.repo)
}

// namedRelease tells whether a component of a path outside the work tree is called after a release of the task's
// package from the fix on: an archive, or what was unpacked from one, in a folder that no package manager knows.
func (t *taskFacts) namedRelease(p string) bool {
	if t.inTree(p) {
		return false
	}
	for _, c := range components(p) {
		if !t.ownName(c) {
			continue
		}
		for _, name := range [...]string{t.pkg, t.repoName} {
			rest, ok := strings.CutPrefix(packageName(c), name)
			if !ok || name == "" || len(rest) < 2 {
				continue
			}
			v := strings.TrimPrefix(rest[1:], "v")
			switch rel := t.relation("=", v); {
			case v == "" || v[0] < '0' || v[0] > '9':
			case rel == "fixed", rel == "newer":
				return true
			case strings.ContainsAny(v, "*?[") && t.vars.One("base_version") != strings.TrimRight(v, ".*"):
				return true
			}
		}
	}
	return false
}

// ownPattern tells whether a pattern for one component begins with letters and wildcards that stand for the name of the
// task's package, and goes on with a version or ends there: glob?er-0.9.* for globber.
func (t *taskFacts) ownPattern(pat string) bool {
	for _, name := range [...]string{t.pkg, t.repoName} {
		rest, plain, ok := pat, 0, len(name) > 3
		for i := 0; ok && i < len(name); i++ {
			switch {
			case rest == "":
				ok = false
			case rest[0] == '?':
				rest = rest[1:]
			case rest[0] == '[':
				end := strings.IndexByte(rest, ']')
				if ok = end > 1; ok {
					rest = rest[end+1:]
				}
			case rest[0]|0x20 == name[i]|0x20:
				rest, plain = rest[1:], plain+1
			default:
				ok = false
			}
		}
		if ok && plain > 2 && (rest == "" || strings.IndexByte("-@_.*", rest[0]) >= 0) {
			return true
		}
	}
	return false
}
