package rules

import (
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

// atom compares one text with one value. It gives the piece of text that matched, for the hit's
// span; an empty piece with ok true stands for the whole text.
type atom func(text string) (piece string, ok bool)

// newAtom makes the comparison op with an expanded value. workdir anchors relative paths of under.
func newAtom(op, value, workdir string) (atom, error) {
	switch op {
	case "equals":
		return func(t string) (string, bool) { return "", t == value }, nil
	case "contains":
		return func(t string) (string, bool) { return value, strings.Contains(t, value) }, nil
	case "startswith":
		return func(t string) (string, bool) { return value, strings.HasPrefix(t, value) }, nil
	case "endswith":
		return func(t string) (string, bool) { return value, strings.HasSuffix(t, value) }, nil
	case "re":
		return reAtom(value)
	case "glob":
		return globAtom(value, "")
	case "under":
		return underAtom(value, workdir)
	case "domain":
		return domainAtom(value), nil
	case "cidr":
		return cidrAtom(value)
	case "semver":
		r, err := parseRange(value)
		return func(t string) (string, bool) {
			v, ok := parseVersion(t)
			return "", ok && r.holds(v)
		}, err
	}
	return nil, fmt.Errorf("no comparison %q", op)
}

// reAtom compiles an RE2 expression, searched for anywhere in the text. Where every match holds one
// of a few literals as written, a text without them is not searched: this is what an expression with
// a task's variables has in place of the shared prefilter.
func reAtom(value string) (atom, error) {
	re, err := regexp.Compile(value)
	if err != nil {
		return nil, err
	}
	guard := guards(value)
	return func(t string) (string, bool) {
		if guard != nil && !slices.ContainsFunc(guard, func(l string) bool { return strings.Contains(t, l) }) {
			return "", false
		}
		// MatchString alone can use the one-pass and the bounded back-tracking engine without
		// captures; the place is wanted only for the few texts that match.
		if !re.MatchString(t) {
			return "", false
		}
		return re.FindString(t), true
	}, nil
}

// guards gives at most four literals, as written, of which every match holds one; nil where there
// are none.
func guards(value string) []string {
	set := literalsOf("re", value)
	if len(set) > 4 {
		return nil
	}
	var out []string
	for _, l := range set {
		if l.fold {
			return nil
		}
		out = append(out, l.raw)
	}
	return out
}

// globAtom matches the whole text: * and ? stop at a slash, ** does not. tail is appended to the
// expression.
func globAtom(value, tail string) (atom, error) {
	expr, err := globExpr(value)
	if err != nil {
		return nil, err
	}
	re, err := regexp.Compile(`^(?:` + expr + `)` + tail + `$`)
	if err != nil {
		return nil, err
	}
	return func(t string) (string, bool) { return "", re.MatchString(t) }, nil
}

// globExpr translates a glob to a regular expression.
func globExpr(g string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(g); i++ {
		switch c := g[i]; c {
		case '*':
			switch {
			case strings.HasPrefix(g[i:], "**/"):
				b.WriteString(`(?:[^/]*/)*`)
				i += 2
			case strings.HasPrefix(g[i:], "**"):
				b.WriteString(`(?s:.*)`)
				i++
			default:
				b.WriteString(`[^/]*`)
			}
		case '?':
			b.WriteString(`[^/]`)
		case '[':
			end := strings.IndexByte(g[i+1:], ']')
			if end < 1 {
				return "", fmt.Errorf("the glob %q has an open [", g)
			}
			class := g[i+1 : i+1+end]
			b.WriteByte('[')
			if class[0] == '!' {
				b.WriteByte('^')
				class = class[1:]
			}
			b.WriteString(strings.NewReplacer(`\`, `\\`, `[`, `\[`, `^`, `\^`).Replace(class))
			b.WriteByte(']')
			i += end + 1
		default:
			b.WriteString(regexp.QuoteMeta(string(c)))
		}
	}
	return b.String(), nil
}

// underAtom holds for a path and everything below it, component by component. The value may be a
// pattern; a relative one is taken below workdir and as it stands.
func underAtom(value, workdir string) (atom, error) {
	dirs := []string{cleanPath(value)}
	if !strings.HasPrefix(value, "/") && workdir != "" {
		dirs = append(dirs, path.Join(workdir, value))
	}
	var atoms []atom
	for _, dir := range dirs {
		if strings.ContainsAny(dir, "*?[") {
			a, err := globAtom(dir, `(?:/.*)?`)
			if err != nil {
				return nil, err
			}
			atoms = append(atoms, a)
			continue
		}
		atoms = append(atoms, func(t string) (string, bool) {
			return "", dir == "/" && strings.HasPrefix(t, "/") ||
				strings.HasPrefix(t, dir) && (len(t) == len(dir) || t[len(dir)] == '/')
		})
	}
	return func(t string) (string, bool) {
		if t = cleanPath(t); t == "" {
			return "", false
		}
		for _, a := range atoms {
			if _, ok := a(t); ok {
				return "", true
			}
		}
		return "", false
	}, nil
}

// cleanPath is path.Clean that leaves an empty path empty.
func cleanPath(p string) string {
	if p == "" {
		return ""
	}
	return path.Clean(p)
}

// hostOf gives the host of a host, host:port or URL, in lower case and without a trailing dot.
func hostOf(t string) string {
	if strings.Contains(t, "://") {
		if u, err := url.Parse(t); err == nil {
			t = u.Host
		}
	}
	if i := strings.LastIndexByte(t, '@'); i >= 0 {
		t = t[i+1:]
	}
	switch {
	case strings.HasPrefix(t, "["):
		t, _, _ = strings.Cut(t[1:], "]")
	case strings.Count(t, ":") == 1:
		t, _, _ = strings.Cut(t, ":")
	}
	return strings.TrimSuffix(strings.ToLower(t), ".")
}

// domainAtom holds for a host and its subdomains, label by label; "*.x" for the subdomains alone.
func domainAtom(value string) atom {
	base, below := strings.CutPrefix(strings.ToLower(value), "*.")
	base = hostOf(base)
	return func(t string) (string, bool) {
		h := hostOf(t)
		return "", h == base && !below || strings.HasSuffix(h, "."+base)
	}
}

// cidrAtom holds for addresses in a network.
func cidrAtom(value string) (atom, error) {
	net, err := netip.ParsePrefix(value)
	if err != nil {
		addr, err2 := netip.ParseAddr(value)
		if err2 != nil {
			return nil, err
		}
		net = netip.PrefixFrom(addr, addr.BitLen())
	}
	return func(t string) (string, bool) {
		a, err := netip.ParseAddr(hostOf(t))
		return "", err == nil && net.Contains(a.Unmap())
	}, nil
}
