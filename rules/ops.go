package rules

import (
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"proctor/internal/lazydfa"
)

// atom compares one text with one value.
type atom struct {
	match func(text string) bool
	auto  *lazydfa.DFA             // that match asks, alike for the same expression; nil where it asks none
	plain func(text string) bool   // what match stands for, without short cuts; nil where it has none
	find  func(text string) string // the piece that matched, of a text that does; nil: the whole text
}

// reading is how conditions are read: plainly, by their definitions, or with what is remembered of texts that
// stand in several fields of an event.
type reading struct {
	plain bool
	known map[asked]bool
}

// asked is an expression asked about a long text, of those that are the same.
type asked struct {
	auto *lazydfa.DFA
	at   *byte // the text's first, and how many there are
	n    int
}

// holds compares text.
func (a *atom) holds(text string, how reading) bool {
	switch {
	case how.plain && a.plain != nil:
		return a.plain(text)
	case a.auto == nil || how.known == nil || len(text) < memoText:
		return a.match(text)
	}
	key := asked{a.auto, unsafe.StringData(text), len(text)}
	holds, ok := how.known[key]
	if !ok {
		holds = a.match(text)
		how.known[key] = holds
	}
	return holds
}

// literalAtom is a comparison with a plain value, which is the piece that matched.
func literalAtom(value string, match func(text, value string) bool) atom {
	return atom{
		match: func(t string) bool { return match(t, value) },
		find:  func(string) string { return value },
	}
}

// newAtom makes the comparison op with an expanded value. workdir anchors relative paths of under.
func newAtom(op, value, workdir string) (atom, error) {
	switch op {
	case "contains":
		return literalAtom(value, strings.Contains), nil
	case "startswith":
		return literalAtom(value, strings.HasPrefix), nil
	case "endswith":
		return literalAtom(value, strings.HasSuffix), nil
	case "re":
		return reAtom(value)
	case "glob":
		match, err := globMatch(value, "")
		return atom{match: match}, err
	case "under":
		match, err := underMatch(value, workdir)
		return atom{match: match}, err
	case "domain":
		return atom{match: domainMatch(value)}, nil
	case "cidr":
		match, err := cidrMatch(value)
		return atom{match: match}, err
	case "semver":
		r, err := parseRange(value)
		return atom{match: func(t string) bool {
			v, ok := parseVersion(t)
			return ok && r.holds(v)
		}}, err
	}
	return atom{}, fmt.Errorf("no comparison %q", op)
}

// reAtom compiles an RE2 expression, searched for anywhere in the text. An automaton says whether it
// matches; package regexp, the definition, is asked where that cannot say, and for the place.
func reAtom(value string) (atom, error) {
	if _, err := syntax.Parse(value, syntax.Perl); err != nil { // all that can be wrong with one
		return atom{}, err
	}
	re := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(value) })
	auto := lazydfa.New(value)
	plain := func(t string) bool { return re().MatchString(t) }
	return atom{auto: auto, plain: plain, find: func(t string) string { return re().FindString(t[auto.Begin(t):]) },
		match: func(t string) bool { return auto.MatchOr(t, plain) }}, nil
}

// guard lets an expression search only texts that hold one of at most four literals of which every
// match holds one. It is what an expression with a task's variables has beside the shared prefilter,
// which knows nothing of their values.
func (a *atom) guard(value string) {
	clause := needOf("re", value).clause()
	if len(clause) == 0 || len(clause) > 4 {
		return
	}
	match := a.match
	a.match = func(t string) bool {
		return slices.ContainsFunc(clause, func(l *need) bool { return l.in(t) }) && match(t)
	}
}

// in says whether a text holds the literal, in a spelling that it stands for.
func (l *literal) in(t string) bool {
	if !l.fold {
		return strings.Contains(t, l.raw)
	}
	if strings.ContainsAny(l.text, "ks") && (strings.Contains(t, "\u212a") || strings.Contains(t, "\u017f")) {
		return true
	}
	at := rarest(l.text)
	return foldedAround(t, l.text, at, l.text[at]) || foldedAround(t, l.text, at, asciiUpper(l.text[at]))
}

// foldedAround says whether t holds a text in ASCII lower case, in any case, where the byte at a place of it is c.
func foldedAround(t, lower string, at int, c byte) bool {
	for from := at; from+len(lower)-at <= len(t); from++ {
		i := strings.IndexByte(t[from:len(t)-len(lower)+at+1], c)
		if i < 0 {
			return false
		}
		if from += i; startsFolded(t[from-at:], lower) {
			return true
		}
	}
	return false
}

// common are letters and what else is frequent in code, the most frequent first (Norvig 2012, letters of English text).
const common = " etaoinsrhldcumfpgwybv_.-/"

// rarest gives the place of the byte of a text in lower case that other texts hold least often.
func rarest(lower string) int {
	best, rank := 0, -1
	for i := range len(lower) {
		r := strings.IndexByte(common, lower[i])
		if r < 0 {
			return i
		}
		if r > rank {
			best, rank = i, r
		}
	}
	return best
}

func asciiUpper(c byte) byte {
	if c >= 'a' && c <= 'z' {
		return c - ('a' - 'A')
	}
	return c
}

// startsFolded says whether t, which is no shorter, starts with a text in ASCII lower case.
func startsFolded(t, lower string) bool {
	for i := range len(lower) {
		if asciiLower(t[i]) != lower[i] {
			return false
		}
	}
	return true
}

// globMatch matches the whole text: * and ? stop at a slash, ** does not. tail is appended to the
// expression.
func globMatch(value, tail string) (func(string) bool, error) {
	expr, err := globExpr(value)
	if err != nil {
		return nil, err
	}
	re, err := regexp.Compile(`^(?:` + expr + `)` + tail + `$`)
	if err != nil {
		return nil, err
	}
	return re.MatchString, nil
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

// underMatch holds for a path and everything below it, component by component. The value may be a
// pattern; a relative one is taken below workdir and as it stands.
func underMatch(value, workdir string) (func(string) bool, error) {
	var globs []func(string) bool
	var dirs []string
	for _, dir := range underDirs(value, workdir) {
		if !strings.ContainsAny(dir, "*?[") {
			dirs = append(dirs, dir)
			continue
		}
		match, err := globMatch(dir, `(?:/.*)?`)
		if err != nil {
			return nil, err
		}
		globs = append(globs, match)
	}
	return func(t string) bool {
		if t = cleanPath(t); t == "" {
			return false
		}
		return slices.ContainsFunc(dirs, func(dir string) bool { return Below(t, dir) }) ||
			slices.ContainsFunc(globs, func(match func(string) bool) bool { return match(t) })
	}, nil
}

// underDirs gives the folders or patterns that a value of under stands for.
func underDirs(value, workdir string) []string {
	dirs := []string{cleanPath(value)}
	if !strings.HasPrefix(value, "/") && workdir != "" {
		dirs = append(dirs, path.Join(workdir, value))
	}
	return dirs
}

// Below tells whether the clean path t is the clean folder dir or below it.
func Below(t, dir string) bool {
	return dir == "/" && strings.HasPrefix(t, "/") ||
		strings.HasPrefix(t, dir) && (len(t) == len(dir) || t[len(dir)] == '/')
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

// domainMatch holds for a host and its subdomains, label by label; "*.x" for the subdomains alone.
func domainMatch(value string) func(string) bool {
	base, sub := strings.CutPrefix(strings.ToLower(value), "*.")
	base = hostOf(base)
	return func(t string) bool {
		h := hostOf(t)
		return h == base && !sub || strings.HasSuffix(h, "."+base)
	}
}

// cidrMatch holds for addresses in a network.
func cidrMatch(value string) (func(string) bool, error) {
	net, err := netip.ParsePrefix(value)
	if err != nil {
		addr, err2 := netip.ParseAddr(value)
		if err2 != nil {
			return nil, err
		}
		net = netip.PrefixFrom(addr, addr.BitLen())
	}
	return func(t string) bool {
		a, err := netip.ParseAddr(hostOf(t))
		return err == nil && net.Contains(a.Unmap())
	}, nil
}
