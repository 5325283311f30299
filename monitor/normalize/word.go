package normalize

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// arg is one word after expansion.
type arg struct {
	s      string
	raw    string // as written
	opaque bool   // part of it is not known; that part stands as written
	glob   string // the pattern, with quoted magic escaped, where an unquoted part holds * ? [
	quoted bool
}

func plainArgs(words []string) []arg {
	out := make([]arg, len(words))
	for i, w := range words {
		out[i] = arg{s: w, raw: w}
	}
	return out
}

// chunk is a piece of a word: quoted text is neither split nor globbed.
type chunk struct {
	s      string
	quoted bool
	split  bool // from an unquoted expansion: split at white space
	opaque bool
}

// fields expands words as bash does: braces, parameters, substitutions, splitting; globs are kept
// as patterns.
func (r *run) fields(words []*syntax.Word, f frame) []arg {
	out := make([]arg, 0, len(words))
	for _, w := range words {
		for _, b := range r.braces(w) {
			if len(out) >= maxWords {
				return out
			}
			out = append(out, r.field(b, f)...)
		}
	}
	return out
}

// word expands a word to one value without splitting, as in an assignment.
func (r *run) word(w *syntax.Word, f frame) arg {
	if w == nil {
		return arg{}
	}
	a := arg{raw: f.raw(w)}
	var b strings.Builder
	for _, c := range r.chunks(w.Parts, f, false, true) {
		b.WriteString(c.s)
		a.opaque = a.opaque || c.opaque
	}
	a.s = clip(b.String(), maxValue)
	return a
}

func (f frame) raw(n syntax.Node) string {
	return f.unit.text(n.Pos(), n.End())
}

func (u *unit) text(from, to syntax.Pos) string {
	if u == nil || !from.IsValid() || !to.IsValid() {
		return ""
	}
	i, j := int(from.Offset()), int(to.Offset())
	if i > j || j > len(u.src) {
		return ""
	}
	return u.src[i:j]
}

// field expands one word to the fields it splits into.
func (r *run) field(w *syntax.Word, f frame) []arg {
	if lit := w.Lit(); lit != "" && !strings.ContainsAny(lit, "\\~*?[") {
		return []arg{{s: lit, raw: lit}}
	}
	if params, ok := r.positional(w, f); ok {
		return params
	}
	raw := f.raw(w)
	var out []arg
	var text, glob strings.Builder
	cur := arg{raw: raw}
	magic, any := false, false
	flush := func() {
		if !any {
			return
		}
		cur.s = clip(text.String(), maxValue)
		if magic && !cur.opaque {
			cur.glob = glob.String()
		}
		out = append(out, cur)
		cur = arg{raw: raw}
		text.Reset()
		glob.Reset()
		magic, any = false, false
	}
	add := func(s string, c chunk) {
		any = true
		text.WriteString(s)
		cur.opaque = cur.opaque || c.opaque
		cur.quoted = cur.quoted || c.quoted
		if c.quoted {
			glob.WriteString(escapeGlob(s))
			return
		}
		glob.WriteString(s)
		magic = magic || !c.opaque && strings.ContainsAny(s, "*?[")
	}
	blanks := r.separators()
	for _, c := range r.chunks(w.Parts, f, false, false) {
		if !c.split || c.opaque {
			add(c.s, c)
			continue
		}
		rest := c.s
		for rest != "" && len(out) < maxWords {
			i := strings.IndexAny(rest, blanks)
			if i < 0 {
				add(rest, c)
				break
			}
			if i > 0 {
				add(rest[:i], c)
			}
			flush()
			rest = strings.TrimLeft(rest[i:], blanks)
		}
	}
	flush()
	return out
}

// positional expands "$@", $@ and $* standing alone, and an array's "${a[@]}".
func (r *run) positional(w *syntax.Word, f frame) ([]arg, bool) {
	if len(w.Parts) != 1 {
		return nil, false
	}
	part := w.Parts[0]
	if q, ok := part.(*syntax.DblQuoted); ok && len(q.Parts) == 1 {
		part = q.Parts[0]
	}
	p, ok := part.(*syntax.ParamExp)
	if !ok || p.Param == nil || p.Exp != nil || p.Repl != nil || p.Length || p.Excl {
		return nil, false
	}
	switch p.Param.Value {
	case "@", "*":
		if p.Slice != nil || f.params == nil {
			return nil, false
		}
		return plainArgs(f.params), true
	}
	if idx, ok := p.Index.(*syntax.Word); ok && (idx.Lit() == "@" || idx.Lit() == "*") {
		if v, ok := r.st.vars.get(p.Param.Value); ok && v.known && v.list != nil {
			return plainArgs(v.list), true
		}
	}
	return nil, false
}

func escapeGlob(s string) string {
	if !strings.ContainsAny(s, `*?[\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if strings.IndexByte(`*?[\`, s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// chunks expands the parts of a word. whole: the word is not split (an assignment, a heredoc).
func (r *run) chunks(parts []syntax.WordPart, f frame, quoted, whole bool) []chunk {
	var out []chunk
	for i, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			s := p.Value
			if !quoted && i == 0 && strings.HasPrefix(s, "~") {
				s = r.tilde(s)
			}
			if strings.IndexByte(s, '\\') >= 0 {
				out = append(out, unescape(s, quoted)...)
				continue
			}
			out = append(out, chunk{s: s, quoted: quoted})
		case *syntax.SglQuoted:
			s := p.Value
			if p.Dollar {
				s, _, _ = strings.Cut(ansiC(s), "\x00")
			}
			out = append(out, chunk{s: s, quoted: true})
		case *syntax.DblQuoted:
			inner := r.chunks(p.Parts, f, true, whole)
			if len(inner) == 0 {
				inner = []chunk{{quoted: true}}
			}
			out = append(out, inner...)
		case *syntax.ParamExp:
			v := r.param(p, f)
			out = append(out, r.expansion(v, f.raw(p), quoted, whole))
		case *syntax.CmdSubst:
			v := r.cmdSubst(p, f)
			out = append(out, r.expansion(v, f.raw(p), quoted, whole))
		case *syntax.ArithmExp:
			v := r.arithm(p.X, f)
			out = append(out, r.expansion(v, f.raw(p), quoted, whole))
		case *syntax.ProcSubst:
			out = append(out, chunk{s: r.procSubst(p, f), quoted: true})
		case *syntax.ExtGlob:
			out = append(out, chunk{s: f.raw(p)})
		default:
			out = append(out, chunk{s: f.raw(p), quoted: true, opaque: true})
		}
	}
	return out
}

func (r *run) expansion(v val, raw string, quoted, whole bool) chunk {
	if !v.known {
		return chunk{s: raw, quoted: quoted, opaque: true}
	}
	return chunk{s: v.s, quoted: quoted, split: !quoted && !whole}
}

// unescape resolves backslashes: all of them outside quotes, those before $ ` " \ and newline inside.
func unescape(s string, quoted bool) []chunk {
	var out []chunk
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '\\' || i+1 >= len(s) {
			b.WriteByte(c)
			continue
		}
		next := s[i+1]
		switch {
		case next == '\n':
			i++
		case quoted && strings.IndexByte("$`\"\\", next) < 0:
			b.WriteByte(c)
		case quoted:
			b.WriteByte(next)
			i++
		default:
			if b.Len() > 0 {
				out = append(out, chunk{s: b.String()})
				b.Reset()
			}
			out = append(out, chunk{s: string(next), quoted: true})
			i++
		}
	}
	if b.Len() > 0 || len(out) == 0 {
		out = append(out, chunk{s: b.String(), quoted: quoted})
	}
	return out
}

func (r *run) tilde(s string) string {
	name, rest, _ := strings.Cut(s[1:], "/")
	home := ""
	switch name {
	case "":
		home = r.home()
	case "+":
		home = r.st.cwd
	case "-":
		home = r.st.old
	case "root":
		home = "/root"
	default:
		if strings.ContainsAny(name, "\\=:") {
			return s
		}
		home = "/home/" + name
	}
	if len(s) > len(name)+1 {
		return home + "/" + rest
	}
	return home
}

func (r *run) home() string {
	if v, ok := r.st.vars.get("HOME"); ok && v.known {
		return v.value
	}
	return "/root"
}

// cmdSubst runs the commands of $( ) in a subshell; its value is their output less the last newlines.
func (r *run) cmdSubst(p *syntax.CmdSubst, f frame) val {
	if r.depth >= maxDepth {
		return val{}
	}
	r.depth++
	defer func() { r.depth-- }()
	g := f
	g.files, g.reads = nil, nil
	if p.Backquotes {
		g.exact = false
	}
	sc := r.st.enter()
	defer r.st.leave(sc)
	if v, ok := r.readInput(p.Stmts, g); ok {
		return v
	}
	v := r.stmts(p.Stmts, g, val{})
	if !v.known {
		return v
	}
	return known(strings.TrimRight(v.s, "\n"))
}

// readInput is $(< file).
func (r *run) readInput(list []*syntax.Stmt, f frame) (val, bool) {
	if len(list) != 1 || list[0].Cmd != nil || len(list[0].Redirs) != 1 || list[0].Redirs[0].Op != syntax.RdrIn {
		return val{}, false
	}
	in, _, reads := r.redirects(list[0], f, val{})
	f.reads = reads
	r.redirectOnly(list[0], f)
	in.s = strings.TrimRight(in.s, "\n")
	return in, true
}

// procSubst runs <( ) or >( ) and gives the name that stands for it.
func (r *run) procSubst(p *syntax.ProcSubst, f frame) string {
	if r.depth >= maxDepth {
		return "/dev/fd/63"
	}
	r.depth++
	defer func() { r.depth-- }()
	g := f
	g.files, g.reads = nil, nil
	sc := r.st.enter()
	out := r.stmts(p.Stmts, g, val{})
	r.st.leave(sc)
	name := "/dev/fd/" + string(rune('0'+r.substs%10)) + "63"
	r.substs++
	if out.known {
		if r.temp == nil {
			r.temp = map[string]string{}
		}
		r.temp[name] = out.s
	}
	return name
}
