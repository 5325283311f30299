package normalize

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"proctor/rules"
)

// call reads a simple command: assignments, or a program with its words.
func (r *run) call(c *syntax.CallExpr, s *syntax.Stmt, f frame, in val) val {
	if len(c.Args) == 0 {
		for _, a := range c.Assigns {
			r.assign(a, f, false)
		}
		r.redirectOnly(s, f)
		return known("")
	}
	env := map[string]string(nil)
	for _, a := range c.Assigns {
		if a.Name == nil {
			continue
		}
		if env == nil {
			env = map[string]string{}
		}
		env[a.Name.Value] = r.word(a.Value, f).s
	}
	if f.unit != nil && f.unit.own {
		f.span = rules.Span{Start: int(c.Pos().Offset()), End: int(c.End().Offset())}
		f.span.Exact = f.exact && !redirectInside(c, s)
	}
	args := r.fields(c.Args, f)
	if len(args) == 0 {
		return known("")
	}
	before := len(r.ev.Commands)
	out := r.simple(args, env, f, in)
	for i := before; i < len(r.ev.Commands); i++ {
		cmd := &r.ev.Commands[i]
		if len(cmd.Via) == len(f.via) {
			r.redirectFacts(cmd, f)
		}
		for _, o := range f.files {
			cmd.Writes = appendNew(cmd.Writes, o.Path)
			if h := r.hidden(o.Path); h {
				cmd.Hidden = appendNew(cmd.Hidden, o.Path)
			}
		}
	}
	return out
}

// redirectInside tells whether a redirection stands between the words of a command, so that its
// bytes are not the command's alone.
func redirectInside(c *syntax.CallExpr, s *syntax.Stmt) bool {
	if s == nil {
		return false
	}
	for _, rd := range s.Redirs {
		if rd.Pos().Offset() > c.Pos().Offset() && rd.Pos().Offset() < c.End().Offset() {
			return true
		}
	}
	return false
}

// simple reads an expanded simple command: aliases, functions, wrappers and builtins first, then
// the program itself.
func (r *run) simple(args []arg, env map[string]string, f frame, in val) val {
	if !r.spend() || len(args) == 0 {
		return val{}
	}
	if r.depth >= maxDepth {
		r.opaque("nested too deep")
		return val{}
	}
	r.depth++
	defer func() { r.depth-- }()
	name := args[0].s
	if !args[0].quoted && !args[0].opaque {
		if out, ok := r.alias(name, args, env, f, in); ok {
			return out
		}
	}
	if fn, ok := r.st.funcs.get(name); ok && f.depthOf("function:"+name) < 2 {
		g := f.wrapped("function:" + name)
		g.unit, g.params, g.exact = fn.unit, texts(args[1:]), false
		g.noSpanUnit()
		return r.inFunction(fn, g, in)
	}
	if args[0].opaque || name == "" {
		return r.program(args, env, f, in)
	}
	if b := builtinOf(name); b != nil {
		return b(r, args, env, f, in)
	}
	if out, ok := r.wrapper(args, env, f, in); ok {
		return out
	}
	return r.program(args, env, f, in)
}

// inFunction runs a function's body. Its nodes point into the source that it was defined in, whose
// offsets are not the call's unless it is the call; the span of the calling command stands.
func (r *run) inFunction(fn function, f frame, in val) val {
	u := *fn.unit
	u.own = false
	f.unit = &u
	return r.stmt(fn.body, f, in)
}

func (f *frame) noSpanUnit() { f.span.Exact = false }

func (f frame) depthOf(via string) int {
	n := 0
	for _, v := range f.via {
		if v == via {
			n++
		}
	}
	return n
}

// alias expands an alias: its text, then the rest of the words quoted.
func (r *run) alias(name string, args []arg, env map[string]string, f frame, in val) (val, bool) {
	text, ok := r.st.aliases.get(name)
	if !ok || f.depthOf("alias:"+name) > 0 {
		return val{}, false
	}
	var b strings.Builder
	b.WriteString(text)
	for _, a := range args[1:] {
		b.WriteByte(' ')
		b.WriteString(quote(a.s))
	}
	g := f.wrapped("alias:" + name)
	g.exact, g.span.Exact = false, false
	return r.source(&unit{src: b.String()}, g, in).out, true
}

func texts(args []arg) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = a.s
	}
	return out
}

// assign sets a variable.
func (r *run) assign(a *syntax.Assign, f frame, export bool) {
	if a.Name == nil {
		return
	}
	name := a.Name.Value
	old, _ := r.st.vars.get(name)
	v := variable{known: true, exported: export || old.exported}
	switch {
	case a.Array != nil:
		if a.Append {
			v.list = append(v.list, old.list...)
		}
		for _, e := range a.Array.Elems {
			for _, w := range r.fields([]*syntax.Word{e.Value}, f) {
				if len(v.list) < maxWords {
					v.list = append(v.list, w.s)
				}
				v.known = v.known && !w.opaque
			}
		}
		if v.list == nil {
			v.list = []string{}
		}
	case a.Index != nil:
		// One element: kept as an unknown array rather than modelled.
		v = variable{exported: old.exported}
	default:
		w := r.word(a.Value, f)
		v.value, v.known = w.s, !w.opaque
		if a.Append {
			v.value, v.known = clip(old.value+w.s, maxValue), v.known && (old.known || old.value == "")
		}
	}
	r.st.vars.set(name, v)
}

// declare is export, declare, local, readonly and typeset; recorded as a command, since what is
// exported into the shell can change what later programs do.
func (r *run) declare(c *syntax.DeclClause, s *syntax.Stmt, f frame) {
	variant := c.Variant.Value
	args := []arg{{s: variant}}
	for _, a := range c.Args {
		switch {
		case a.Naked && a.Name == nil:
			if a.Value != nil {
				w := r.word(a.Value, f)
				args = append(args, w)
				if name, value, ok := strings.Cut(w.s, "="); ok {
					r.st.vars.set(name, variable{value: value, known: !w.opaque, exported: variant == "export"})
				}
			}
		case a.Naked:
			args = append(args, arg{s: a.Name.Value})
			if v, ok := r.st.vars.get(a.Name.Value); ok && variant == "export" {
				v.exported = true
				r.st.vars.set(a.Name.Value, v)
			}
		default:
			r.assign(a, f, variant == "export")
			v, _ := r.st.vars.get(a.Name.Value)
			text := v.value
			if !v.known {
				text = f.raw(a.Value)
			}
			args = append(args, arg{s: a.Name.Value + "=" + text, opaque: !v.known})
		}
	}
	if f.unit != nil && f.unit.own {
		f.span = rules.Span{Start: int(c.Pos().Offset()), End: int(c.End().Offset()), Exact: f.exact}
	}
	r.record(args, nil, f, val{})
	r.redirectOnly(s, f)
}

// readNames gives the variables of a loop's "read a b" condition.
func readNames(cond []*syntax.Stmt) []string {
	if len(cond) == 0 {
		return nil
	}
	c, ok := cond[len(cond)-1].Cmd.(*syntax.CallExpr)
	if !ok || len(c.Args) == 0 || c.Args[0].Lit() != "read" {
		return nil
	}
	var names []string
	for _, w := range c.Args[1:] {
		if lit := w.Lit(); lit != "" && !strings.HasPrefix(lit, "-") {
			names = append(names, lit)
		}
	}
	if names == nil {
		names = []string{"REPLY"}
	}
	return names
}

// assignRead splits a line over variables as read does.
func assignRead(st *state, names []string, line string) {
	rest := strings.TrimSpace(line)
	for i, name := range names {
		part := rest
		if i < len(names)-1 {
			part, rest, _ = strings.Cut(rest, " ")
			rest = strings.TrimLeft(rest, " \t")
		}
		st.vars.set(name, variable{value: part, known: true})
	}
}

// quote gives s as a word of shell source.
func quote(s string) string {
	if s == "" {
		return "''"
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !isWordByte(c) && strings.IndexByte("-./:=@%+,~^{}[]*?", c) < 0 {
			return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
		}
	}
	return s
}
