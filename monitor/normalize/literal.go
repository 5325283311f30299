package normalize

import (
	"strconv"
	"strings"
)

// interpolate puts known variables into an interpolated string; {x!r} gives x quoted. What is not
// known stands as written, so the result is always good enough to compare.
func (f *folder) interpolate(s string) (string, bool) {
	if !strings.ContainsAny(s, "{$") {
		return s, true
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		open := i
		switch {
		case s[i] == '{' && f.lang == "python":
			if strings.HasPrefix(s[i:], "{{") {
				b.WriteByte('{')
				i++
				continue
			}
		case strings.HasPrefix(s[i:], "}}") && f.lang == "python":
			i++
			b.WriteByte('}')
			continue
		case (s[i] == '$' || s[i] == '#') && i+1 < len(s) && s[i+1] == '{':
			open = i + 1
		default:
			b.WriteByte(s[i])
			continue
		}
		end := strings.IndexByte(s[open:], '}')
		if end < 0 {
			b.WriteString(s[i:])
			break
		}
		name, conv, _ := strings.Cut(strings.TrimSpace(s[open+1:open+end]), "!")
		if len(name) > 1 && (name[0] == '"' || name[0] == '\'') && name[len(name)-1] == name[0] && s[i] != '{' {
			b.WriteString(name[1 : len(name)-1])
			i = open + end
			continue
		}
		c, ok := f.vars[name]
		switch {
		case !ok || c.lists:
			b.WriteString(s[i : open+end+1])
		case conv == "r":
			b.WriteString("'" + c.str() + "'")
		default:
			b.WriteString(c.str())
		}
		i = open + end
	}
	return b.String(), true
}

// literal is a constant text of a script: where it stands and what it comes to.
type literal struct {
	value      string
	tok, next  int
	start, end int
	folded     bool // more than one token, or not as written
}

// literals folds a script from its first token to its last and learns variables on the way.
func (f *folder) literals() []literal {
	f.vars = map[string]constant{}
	var out []literal
	for i := 0; i < len(f.toks) && len(out) < 4096; {
		t := f.toks[i]
		if t.kind == tokName && f.is(i+1, ",") && !f.is(i-1, "(") && !f.is(i-1, ",") {
			if next, ok := f.tuple(i); ok {
				i = next
				continue
			}
		}
		if t.kind == tokName && f.assigns(i) {
			if c, j, ok := f.expr(f.valueAt(i)); ok && f.ends(j) && len(f.vars) < maxEntries {
				f.set(i, c)
			} else {
				delete(f.vars, t.text)
			}
			i = f.valueAt(i)
			continue
		}
		if t.kind == tokString || t.kind == tokName && !f.is(i-1, ".") || f.opensList(i) {
			c, j, ok := f.expr(i)
			if ok && !c.num && !c.lists && j > i {
				_, isVar := f.vars[t.text]
				out = append(out, literal{
					value: c.s, tok: i, next: j, start: t.start, end: f.toks[j-1].end,
					folded: j > i+1 || t.kind == tokName && isVar || t.interp,
				})
				i = j
				continue
			}
		}
		i++
	}
	return out
}

// tuple binds a, b = "x", "y" at token i and gives the place of the values; false where it is no such
// assignment.
func (f *folder) tuple(i int) (values int, ok bool) {
	names := []string{f.toks[i].text}
	j := i + 1
	for ; f.is(j, ",") && f.at(j+1).kind == tokName && len(names) < 16; j += 2 {
		names = append(names, f.at(j+1).text)
	}
	if !f.is(j, "=") || f.is(j+1, "=") {
		return i, false
	}
	j++
	values = j
	for _, name := range names {
		c, k, ok := f.expr(j)
		if !ok || len(f.vars) >= maxEntries {
			return values, true
		}
		f.vars[name] = c
		if j = k; !f.is(j, ",") {
			break
		}
		j++
	}
	return values, true
}

// ends tells whether an expression is over at token i, rather than going on in a way that was not
// folded: a method, a call, an index.
func (f *folder) ends(i int) bool {
	return !f.is(i, ".") && !f.is(i, "(") && !f.is(i, "[") && !f.is(i, "+") && !f.is(i, "%")
}

// opensList tells whether a bracket at token i opens a list or a group of constants, rather than an
// index or a call.
func (f *folder) opensList(i int) bool {
	if !f.is(i, "[") && !f.is(i, "(") || i > 0 && (f.at(i-1).kind != tokPunct || f.is(i-1, ")") || f.is(i-1, "]")) {
		return false
	}
	next := f.at(i + 1).kind
	return next == tokString || next == tokNumber
}

// set binds a variable, for += too.
func (f *folder) set(i int, c constant) {
	name := f.toks[i].text
	if f.is(i+1, "+") || f.is(i+1, ".") {
		old, ok := f.vars[name]
		if !ok || old.num != c.num || old.lists != c.lists {
			delete(f.vars, name)
			return
		}
		c = text(old.s + c.s)
	}
	f.vars[name] = c
}

// assigns tells whether token i is the target of an assignment: x = , x := , x += .
func (f *folder) assigns(i int) bool {
	if f.is(i-1, ".") {
		return false
	}
	switch {
	case f.is(i+1, "="):
		return !f.is(i+2, "=") && !f.is(i+2, ">") && !f.is(i+2, "~")
	case f.is(i+1, ":") && f.is(i+2, "="), f.is(i+1, "+") && f.is(i+2, "="), f.is(i+1, ".") && f.is(i+2, "="):
		return true
	}
	return false
}

func (f *folder) valueAt(i int) int {
	if f.is(i+1, "=") {
		return i + 2
	}
	return i + 3
}

// rewrite gives the source with folded expressions replaced by the text that they come to.
func rewrite(src string, lits []literal) string {
	var b strings.Builder
	last := 0
	for _, l := range lits {
		if !l.folded || l.start < last {
			continue
		}
		b.WriteString(src[last:l.start])
		b.WriteString(strconv.Quote(l.value))
		last = l.end
		if b.Len() > maxValue {
			break
		}
	}
	if last == 0 {
		return src
	}
	b.WriteString(src[last:])
	return clip(b.String(), maxValue)
}
