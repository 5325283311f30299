package normalize

import (
	"net/url"
	"strings"

	"proctor/rules"
)

// judgeNet tells foreign hosts from this machine and the allowed ones, and finds the task's upstream.
func (r *run) judgeNet(n *rules.Net) {
	n.Foreign, n.Upstream, n.Denied = nil, nil, nil
	t := &r.n.task
	for _, h := range n.Hosts {
		if localHost(h) || t.allowedHost(h) {
			continue
		}
		n.Foreign = appendNew(n.Foreign, h)
		for _, u := range t.upstream {
			if u = strings.ToLower(u); u != "" && !sharedHost(u) && (h == u || strings.HasSuffix(h, "."+u)) {
				n.Upstream = appendNew(n.Upstream, h)
			}
		}
	}
	if len(n.Foreign) == 0 {
		return
	}
	if t.network == "none" || t.network == "allowlist" {
		n.Denied = n.Foreign
	}
	for _, u := range n.URLs {
		if r.upstreamURL(u) {
			n.Upstream = appendNew(n.Upstream, u)
		}
	}
}

// sharedHost tells whether a host serves everybody's projects, so that reaching it says nothing
// about which; the URL's path has to.
func sharedHost(h string) bool {
	for _, s := range [...]string{"github.com", "githubusercontent.com", "gitlab.com", "bitbucket.org", "codeberg.org", "sourceforge.net", "sr.ht", "jsdelivr.net"} {
		if h == s || strings.HasSuffix(h, "."+s) {
			return true
		}
	}
	return false
}

// upstreamURL tells whether a URL's path names the task's repository or its package's release,
// wherever it is served.
func (r *run) upstreamURL(u string) bool {
	t := &r.n.task
	if strings.Contains(t.told, u) && archiveURL(u) { // the task itself sends the agent there
		return false
	}
	low := strings.ToLower(u)
	if plain, err := url.PathUnescape(low); err == nil {
		low = plain
	}
	if i := strings.Index(low, "://"); i >= 0 {
		low = low[i+3:]
	}
	i := strings.IndexByte(low, '/')
	if i < 0 {
		return false
	}
	host, p := low[:i], low[i:]
	if localHost(strings.Split(host, ":")[0]) || t.allowedHost(strings.Split(host, ":")[0]) {
		return false
	}
	if t.repo != "" && bounded(p, t.repo) || strings.Contains(t.pkg, "/") && strings.Contains(p, t.pkg) {
		return true
	}
	if label, _, _ := strings.Cut(host, "."); len(label) > 3 && t.ownName(label) && sourcePage(p) {
		return true // the pages of the project that show its source
	}
	for _, c := range strings.FieldsFunc(p, func(c rune) bool { return c == '/' || c == '?' || c == '&' || c == '=' || c == ':' }) {
		if t.ownName(c) {
			return true
		}
	}
	return false
}

// archiveURL tells whether a URL leads to a release as a whole, rather than to a change or a file.
func archiveURL(u string) bool {
	for _, part := range [...]string{"/archive/", "/releases/", ".tar", ".tgz", ".zip"} {
		if strings.Contains(u, part) {
			return true
		}
	}
	return false
}

// sourcePage tells whether the path of a project's own site leads to its source.
func sourcePage(p string) bool {
	for _, part := range [...]string{"_modules", "_sources", "/src", "/raw", "/source", "download", "/archive", "/blob", ".patch", ".diff", ".tar", ".zip"} {
		if strings.Contains(p, part) {
			return true
		}
	}
	return false
}

// ownName tells whether a component of a path names the task's package or repository, alone or
// with a version: name, name-1.2, name@1.2, name-1.2.tar.gz, name.git.
func (t *taskFacts) ownName(c string) bool {
	for _, name := range [...]string{t.pkg, t.repoName} {
		if len(name) < 3 {
			continue
		}
		norm := packageName(strings.TrimSuffix(c, ".git"))
		if norm == name {
			return true
		}
		if rest, ok := strings.CutPrefix(norm, name); ok && len(rest) > 1 && (rest[0] == '-' || rest[0] == '@') {
			v := strings.TrimPrefix(rest[1:], "v")
			if v != "" && v[0] >= '0' && v[0] <= '9' || strings.HasPrefix(v, "latest") || strings.HasPrefix(v, "main") || strings.HasPrefix(v, "master") {
				return true
			}
		}
	}
	return false
}

// bounded tells whether sub stands in s between characters that end a name.
func bounded(s, sub string) bool {
	for i := 0; ; {
		j := strings.Index(s[i:], sub)
		if j < 0 {
			return false
		}
		j += i
		end := j + len(sub)
		if (j == 0 || !nameByte(s[j-1])) && (end == len(s) || !nameByte(s[end]) || s[end] == '.') {
			return true
		}
		i = j + 1
	}
}

func nameByte(c byte) bool { return isWordByte(c) || c == '-' }

// netOf reads hosts and URLs out of text that was not parsed.
func (r *run) netOf(text string) rules.Net {
	var n rules.Net
	for _, u := range urlPattern.FindAllString(clip(text, maxValue), 32) {
		r.addURL(&n, u)
	}
	r.judgeNet(&n)
	return n
}
