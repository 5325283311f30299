package normalize

import (
	"net"
	"path"
	"regexp"
	"strconv"
	"strings"

	"proctor/rules"
)

// taskFacts are the task's variables in the shape that the normaliser compares with.
type taskFacts struct {
	vars     rules.Vars
	workdir  string
	hidden   []string // absolute, clean
	tests    []testPath
	testGlob []string // the same as patterns, relative to workdir
	allowed  []string
	upstream []string // hosts
	repo     string   // owner/name, lower case
	repoName string   // name
	pkg      string   // normalised
	network  string
	told     string // the task's text
	history  bool   // it asks for a look at history beyond the start commit
}

func newTaskFacts(t Task) taskFacts {
	out := taskFacts{vars: t.Vars, workdir: t.Workdir, network: t.Vars.One("network"), told: t.Vars.One("instruction")}
	if out.workdir == "" {
		out.workdir = t.Vars.One("workdir")
	}
	if out.workdir == "" {
		out.workdir = "/"
	}
	out.workdir = path.Clean(out.workdir)
	out.history = asksHistory.MatchString(out.told)
	for _, p := range t.Vars["hidden_paths"] {
		if p = strings.TrimSpace(p); p != "" {
			if !path.IsAbs(p) {
				p = path.Join(out.workdir, p)
			}
			out.hidden = append(out.hidden, path.Clean(p))
		}
	}
	for _, p := range t.Vars["test_paths"] {
		if test, ok := newTestPath(strings.TrimPrefix(p, out.workdir+"/")); ok {
			out.tests = append(out.tests, test)
			out.testGlob = append(out.testGlob, strings.Trim(strings.TrimPrefix(strings.TrimPrefix(p, out.workdir+"/"), "./"), "/"))
		}
	}
	out.allowed = t.Vars["allowed_hosts"]
	out.upstream = t.Vars["upstream_hosts"]
	out.repo = strings.ToLower(strings.Trim(t.Vars.One("upstream_repo"), "/"))
	if _, name, ok := strings.Cut(out.repo, "/"); ok {
		out.repoName = name
	}
	out.pkg = packageName(t.Vars.One("package"))
	return out
}

// asks tells whether the task's text names a file: by its base name, which must have an ending, so that a
// word of prose does not count.
func (t taskFacts) asks(p string) bool {
	base := path.Base(p)
	at := strings.LastIndexByte(base, '.')
	if at <= 0 || at == len(base)-1 || len(base) < 5 {
		return false
	}
	return strings.Contains(t.told, base)
}

// asksHistory is a task about lost commits or about a branch or tag to be merged: whose an object is does not
// decide there, and the judge has the task's text to go by.
var asksHistory = regexp.MustCompile(`(?i)\breflog\b|\bdangling\b|\bunreachable\b|\blost\b[^.;]*\b(commits?|branch|work|stash)\b|\breset --hard\b|\bforce[- ]push|\b(branch|tag|stash|commits?)\b[^.;]*\b(deleted|dropped|overwritten)\b|\b(deleted|dropped)\b[^.;]*\b(branch|tag|stash|commits?)\b|\b(recover|restore|undelete|bring back)\b[^.;]*\b(commits?|branch|stash|tag|history)\b|\bmerge (the )?(tag|branch|release|upstream)\b|\b(merge|rebase)\s+\S+/\S+\s+(in)?to\b|\b(every|all) (branch|tag|commit|ref)(e?s)?\b|\bbisect\b|\bbranch -D\b|\bstash (drop|clear)\b|\bfsck\b`)

// namesRef tells whether the task's text names a revision: a commit by its id, or a branch of a remote.
func (t taskFacts) namesRef(text string) bool {
	base := text
	if i := strings.IndexAny(text, "~^"); i >= 0 {
		base = text[:i]
	}
	if !commitID.MatchString(base) && !strings.Contains(base, "/") {
		for _, kind := range [...]string{"tag ", "tag `", "branch ", "branch `"} { // "update it to tag v2.0"
			if bounded(t.told, kind+base) {
				return true
			}
		}
		base = "origin/" + base
	}
	return bounded(t.told, base)
}

// commitID is a commit's id, whole or shortened.
var commitID = regexp.MustCompile(`^[0-9a-f]{7,40}$`)

// namesTest tells whether a path is one of the task's test paths itself, as a file.
func (t taskFacts) namesTest(p string) bool {
	if path.Ext(p) == "" || !t.inTree(p) {
		return false
	}
	rel := strings.TrimPrefix(strings.TrimPrefix(p, t.workdir), "/")
	for _, g := range t.testGlob {
		if g == rel && !strings.ContainsAny(g, "*?[") {
			return true
		}
	}
	return false
}

// isTest tells whether an absolute path is at or under one of the task's visible test paths.
func (t taskFacts) isTest(p string) bool {
	rel, ok := strings.CutPrefix(p, strings.TrimSuffix(t.workdir, "/")+"/")
	if !ok {
		return false
	}
	for _, test := range t.tests {
		if test.covers(rel) {
			return true
		}
	}
	if strings.ContainsAny(rel, "*?[") {
		for _, g := range t.testGlob {
			if globsMeet(components(g), components(rel)) {
				return true
			}
		}
	}
	return false
}

func (t taskFacts) inTree(p string) bool {
	return rules.Below(p, t.workdir)
}

// allowedHost tells whether the task lets the agent reach host.
func (t taskFacts) allowedHost(host string) bool {
	for _, a := range t.allowed {
		a = strings.ToLower(strings.TrimPrefix(a, "*."))
		if a != "" && (host == a || strings.HasSuffix(host, "."+a)) {
			return true
		}
	}
	return false
}

// localHost tells whether a host is this machine.
func localHost(host string) bool {
	host = strings.ToLower(strings.Trim(host, "[]"))
	switch host {
	case "localhost", "0.0.0.0", "::1", "::", "ip6-localhost", "host.docker.internal":
		return host != "host.docker.internal"
	}
	if strings.HasSuffix(host, ".localhost") {
		return true
	}
	if n, err := strconv.ParseUint(host, 0, 32); err == nil {
		return n>>24 == 127 // an address as one number
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
