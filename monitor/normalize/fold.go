package normalize

import (
	"strconv"
	"strings"
)

// A folder evaluates the constant string expressions of a script: concatenation, join, chr, hex and
// base64 of literals, path joins, formatting with constants, and the variables that hold them.
type folder struct {
	toks  []token
	lang  string
	cwd   string
	file  string // the script's own path, where it is known
	home  string
	vars  map[string]constant
	named map[string]bool // names in it, once asked for
	depth int
}

// constant is a folded value: a text, a number or a list.
type constant struct {
	s     string
	n     int
	num   bool
	list  []constant
	lists bool
	path  bool // of pathlib: / joins
}

func text(s string) constant { return constant{s: clip(s, maxValue)} }

func (c constant) str() string {
	if c.num {
		return strconv.Itoa(c.n)
	}
	return c.s
}

func (f *folder) at(i int) token {
	if i < 0 || i >= len(f.toks) {
		return token{kind: tokPunct}
	}
	return f.toks[i]
}

func (f *folder) is(i int, punct string) bool {
	t := f.at(i)
	return t.kind == tokPunct && t.text == punct
}

// expr folds the expression that starts at token i; next is the token after it.
func (f *folder) expr(i int) (c constant, next int, ok bool) {
	if f.depth > 24 {
		return c, i, false
	}
	f.depth++
	defer func() { f.depth-- }()
	c, i, ok = f.term(i)
	for ok {
		switch t := f.at(i); {
		case f.is(i, "+"), t.kind == tokPunct && t.text == "." && (f.lang == "perl" || f.lang == "php"), f.is(i, ".") && f.is(i+1, ".") && f.lang == "lua":
			if f.lang == "lua" && t.text == "." { // two dots
				i++
			}
			d, j, more := f.term(i + 1)
			if !more || d.num != c.num || d.lists != c.lists {
				return c, i, true
			}
			switch {
			case c.lists:
				c.list = append(c.list[:len(c.list):len(c.list)], d.list...)
			case c.num:
				c.n += d.n
			default:
				c = text(c.s + d.s)
			}
			i = j
		case f.is(i, "/") && c.path, f.is(i, "/") && f.lang == "python" && f.at(i+1).kind == tokString && !c.num:
			d, j, more := f.term(i + 1)
			if !more || d.num || d.lists {
				return c, i, true
			}
			c = constant{s: joinPath(c.s, d.s), path: true}
			i = j
		case f.is(i, "%") && f.lang == "python" && !c.num && !c.lists:
			d, j, more := f.term(i + 1)
			if !more {
				return c, i, true
			}
			args := []string{d.str()}
			if d.lists {
				args = args[:0]
				for _, e := range d.list {
					args = append(args, e.str())
				}
			}
			s, good := printf(c.s, args)
			if !good {
				return c, i, true
			}
			c, i = text(s), j
		case f.is(i, "*") && f.lang == "python" && !c.num && !c.lists:
			d, j, more := f.term(i + 1)
			if !more || !d.num || d.n < 0 || d.n*len(c.s) > 4096 {
				return c, i, true
			}
			c, i = text(strings.Repeat(c.s, d.n)), j
		case t.kind == tokString && !c.num && !c.lists && (f.lang == "python" || f.lang == "c" || f.lang == "ruby" || f.lang == "awk") && f.at(i-1).kind == tokString:
			d, j, more := f.term(i)
			if !more || d.lists {
				return c, i, true
			}
			c, i = text(c.s+d.s), j
		default:
			return c, i, true
		}
	}
	return c, i, ok
}

func joinPath(a, b string) string {
	if strings.HasPrefix(b, "/") {
		return b
	}
	return strings.TrimSuffix(a, "/") + "/" + b
}

// term folds an atom and the methods and indexes after it.
func (f *folder) term(i int) (c constant, next int, ok bool) {
	c, i, ok = f.atom(i)
	for ok {
		d, j, more := f.postfix(c, i)
		if !more {
			return c, i, true
		}
		c, i = d, j
	}
	return c, i, ok
}

func (f *folder) atom(i int) (constant, int, bool) {
	t := f.at(i)
	switch t.kind {
	case tokString:
		if t.interp {
			s, ok := f.interpolate(t.text)
			return text(s), i + 1, ok
		}
		return text(t.text), i + 1, true
	case tokNumber:
		n, err := strconv.ParseInt(strings.ReplaceAll(t.text, "_", ""), 0, 32)
		return constant{n: int(n), num: true}, i + 1, err == nil
	case tokPunct:
		switch t.text {
		case "(":
			if c, j, ok := f.expr(i + 1); ok && f.is(j, ")") {
				return c, j + 1, true
			}
			return f.items(i, ")")
		case "[", "{":
			return f.items(i, map[string]string{"[": "]", "{": "}"}[t.text])
		}
	case tokName:
		return f.name(i)
	}
	return constant{}, i, false
}

// items folds a list of constants.
func (f *folder) items(i int, end string) (constant, int, bool) {
	out := constant{lists: true}
	for j := i + 1; len(out.list) < 1024; {
		if f.is(j, end) {
			return out, j + 1, true
		}
		spread := f.is(j, ".") && f.is(j+1, ".") && f.is(j+2, ".")
		if spread { // [...'abc']
			j += 3
		}
		c, k, ok := f.expr(j)
		if !ok {
			return out, i, false
		}
		switch {
		case !spread || c.num:
			out.list = append(out.list, c)
		case c.lists:
			out.list = append(out.list, c.list...)
		default:
			for _, letter := range clip(c.s, 512) {
				out.list = append(out.list, text(string(letter)))
			}
		}
		switch {
		case f.is(k, ","):
			j = k + 1
		case f.is(k, end):
			j = k
		default:
			return out, i, false
		}
	}
	return out, i, false
}

// name folds a variable that holds a constant or a call of a function that makes one.
func (f *folder) name(i int) (constant, int, bool) {
	full, j := f.dotted(i)
	if full == "__import__" && f.is(j, "(") && f.at(j+1).kind == tokString && f.is(j+2, ")") && f.is(j+3, ".") {
		full, j = f.dotted(j + 4)
	}
	if !f.is(j, "(") {
		if c, ok := f.vars[f.at(i).text]; ok {
			return c, i + 1, true
		}
		switch full {
		case "os.sep", "path.sep":
			return text("/"), j, true
		}
		if c, ok := f.place(f.at(i).text); ok {
			return c, i + 1, true
		}
		return constant{}, i, false
	}
	if c, k, ok := f.standing(full, j); ok {
		return c, k, true
	}
	if !pureCall(full) {
		if c, ok := f.vars[f.at(i).text]; ok { // a method of a constant
			return c, i + 1, true
		}
		return constant{}, i, false
	}
	if full == "map" && f.at(j+1).text == "chr" && f.is(j+2, ",") {
		list, k, ok := f.expr(j + 3)
		if !ok || !f.is(k, ")") {
			return constant{}, i, false
		}
		c, ok := fromCodes(list)
		return c, k + 1, ok
	}
	args, k, ok := f.items(j, ")")
	if !ok {
		return constant{}, i, false
	}
	if c, ok := f.glued(full, args.list); ok {
		return c, k, true
	}
	c, ok := apply(full, args.list, f.cwd)
	return c, k, ok
}

// dotted reads a.b.c and a::b.
func (f *folder) dotted(i int) (string, int) {
	full := f.at(i).text
	i++
	for {
		switch {
		case f.is(i, ".") && f.at(i+1).kind == tokName:
			full += "." + f.at(i+1).text
			i += 2
		case f.is(i, ":") && f.is(i+1, ":") && f.at(i+2).kind == tokName:
			full += "." + f.at(i+2).text
			i += 3
		default:
			return full, i
		}
	}
}

// postfix folds one method call or index on a constant.
func (f *folder) postfix(c constant, i int) (constant, int, bool) {
	if f.is(i, "[") {
		return f.index(c, i)
	}
	if !f.is(i, ".") && (f.lang != "lua" || !f.is(i, ":")) || f.at(i+1).kind != tokName || f.lang == "perl" || f.lang == "php" {
		return c, i, false
	}
	method := f.at(i + 1).text
	if !f.is(i+2, "(") {
		switch {
		case method == "reverse" && f.lang == "ruby":
			return text(reverse(c.s)), i + 2, true
		case (method == "parent" || method == "parents") && !c.num && !c.lists && f.lang == "python":
			return f.parents(c, method), i + 2, true
		}
		return c, i, false
	}
	if method == "join" && !c.lists {
		if s, j, ok := f.joined(c.s, i+2); ok {
			return text(s), j, true
		}
	}
	args, j, ok := f.items(i+2, ")")
	if !ok {
		return c, i, false
	}
	switch method {
	case "resolve", "absolute", "realpath", "expanduser":
		if len(args.list) == 0 && !c.num && !c.lists {
			return constant{s: absFrom(f.cwd, c.s), path: true}, j, true
		}
	}
	d, ok := methodOf(c, method, args.list)
	return d, j, ok
}
