package normalize

import (
	"path"
	"strings"
)

// globHidden adds the hidden paths that a pattern names.
func (r *run) globHidden(hidden, covers *[]string, pat string) {
	prefix, rest := splitGlob(pat)
	if q := r.follow(prefix); q != prefix {
		pat = strings.TrimSuffix(q, "/") + "/" + rest
		prefix = q
	}
	if r.hidden(strings.TrimSuffix(prefix, "/")) && prefix != "/" {
		*hidden = appendNew(*hidden, pat)
		return
	}
	for _, h := range r.hiddenRoots() {
		switch globReach(pat, h) {
		case reachDirect:
			*hidden = appendNew(*hidden, h)
		case reachStar:
			*covers = appendNew(*covers, h)
		}
	}
}

// splitGlob splits a pattern before its first component with magic.
func splitGlob(pat string) (prefix, rest string) {
	i := strings.IndexAny(pat, "*?[")
	if i < 0 {
		return pat, ""
	}
	j := strings.LastIndexByte(pat[:i], '/')
	return path.Clean(pat[:j+1]), pat[j+1:]
}

// hiddenRoots are the paths to compare patterns and walks with.
func (r *run) hiddenRoots() []string {
	if l, ok := r.n.facts.(interface{ HiddenPaths() []string }); ok {
		return append(r.n.task.hidden[:len(r.n.task.hidden):len(r.n.task.hidden)], l.HiddenPaths()...)
	}
	return r.n.task.hidden
}

// globbed replaces patterns that match files which the rollout wrote by their names.
func (r *run) globbed(args []arg) []arg {
	any := false
	for _, a := range args {
		any = any || a.glob != ""
	}
	if !any || r.st.files.empty() {
		return args
	}
	out := make([]arg, 0, len(args))
	for _, a := range args {
		out = append(out, a)
		if a.glob == "" {
			continue
		}
		for _, m := range r.matches(a) {
			if len(out) < maxWords {
				out = append(out, arg{s: m, raw: a.raw})
			}
		}
	}
	return out
}

// matches gives the files and links of the rollout that a pattern names, as written, at most 16.
func (r *run) matches(a arg) []string {
	pat := absFrom(r.st.cwd, a.glob)
	n := len(components(pat))
	var out []string
	hit := func(p string) bool {
		if len(components(p)) == n && globReach(pat, p) >= reachStar {
			if strings.HasPrefix(a.s, "/") {
				out = append(out, p)
			} else {
				out = append(out, relTo(r.st.cwd, p))
			}
		}
		return len(out) < maxLoop
	}
	r.st.files.each(func(p string, _ file) bool { return hit(p) })
	r.st.links.each(func(p string, _ string) bool { return hit(p) })
	sortStrings(out)
	return out
}

func relTo(dir, p string) string {
	if rest, ok := strings.CutPrefix(p, strings.TrimSuffix(dir, "/")+"/"); ok {
		return rest
	}
	return p
}

// matchOne resolves a pattern to a hidden path or a known file, else gives it as written.
func (r *run) matchOne(a arg) string {
	pat := absFrom(r.st.cwd, a.glob)
	for _, h := range r.hiddenRoots() {
		if len(components(pat)) == len(components(h)) && globReach(pat, h) >= reachStar {
			return h
		}
	}
	if m := r.matches(a); len(m) > 0 {
		return m[0]
	}
	return a.s
}

// hiddenOnes gives the hidden paths that the patterns among a loop's items stand for: its body names them by
// a variable only.
func (r *run) hiddenOnes(items []arg) []arg {
	var out []arg
	for _, a := range items {
		if a.glob == "" || len(out) > maxLoop {
			continue
		}
		var hidden, covers []string
		r.globHidden(&hidden, &covers, absFrom(r.st.cwd, a.glob))
		for _, p := range hidden {
			out = append(out, arg{s: p})
		}
	}
	return out
}
