package normalize

import (
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A folder evaluates the constant string expressions of a script: concatenation, join, chr, hex and
// base64 of literals, path joins, formatting with constants, and the variables that hold them.
type folder struct {
	toks  []token
	lang  string
	cwd   string
	vars  map[string]constant
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
		case f.is(i, "+"), t.kind == tokPunct && t.text == "." && (f.lang == "perl" || f.lang == "php"), f.is(i, "~") && f.lang == "lua":
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
		case t.kind == tokString && !c.num && !c.lists && (f.lang == "python" || f.lang == "c" || f.lang == "ruby") && f.at(i-1).kind == tokString:
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
		c, k, ok := f.expr(j)
		if !ok {
			return out, i, false
		}
		out.list = append(out.list, c)
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
		return constant{}, i, false
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

func pureCall(name string) bool {
	switch name[strings.LastIndexByte(name, '.')+1:] {
	case "chr", "str", "bytes", "bytearray", "fromhex", "b64decode", "urlsafe_b64decode", "decode64", "atob", "from", "fromCharCode",
		"join", "Join", "Path", "PurePath", "PosixPath", "map", "reversed", "expanduser", "abspath", "getcwd", "unhexlify", "decode", "String", "list", "int", "strict_decode64":
		return true
	}
	return false
}

// apply computes a pure call over constants.
func apply(name string, args []constant, cwd string) (constant, bool) {
	short := name[strings.LastIndexByte(name, '.')+1:]
	first := constant{}
	if len(args) > 0 {
		first = args[0]
	}
	switch short {
	case "getcwd":
		return text(cwd), true
	case "join", "Join":
		if strings.Contains(name, "path") || short == "Join" {
			return joinAll(args)
		}
		return constant{}, false
	case "Path", "PurePath", "PosixPath":
		c, ok := joinAll(args)
		c.path = true
		return c, ok
	}
	if len(args) == 0 {
		return constant{}, false
	}
	switch short {
	case "chr":
		return text(string(rune(first.n))), first.num
	case "str", "String", "list", "expanduser", "abspath":
		return first, true
	case "int":
		return first, first.num
	case "bytes", "bytearray", "fromCharCode", "map":
		list := first
		switch {
		case short == "fromCharCode":
			list = constant{lists: true, list: args}
		case short == "map" && len(args) == 2:
			list = args[1]
		}
		return fromCodes(list)
	case "fromhex", "unhexlify":
		b, err := hex.DecodeString(strings.ReplaceAll(first.s, " ", ""))
		return text(string(b)), err == nil
	case "b64decode", "urlsafe_b64decode", "decode64", "strict_decode64", "atob":
		return decodeText(first.s, "base64")
	case "from", "decode":
		if len(args) == 2 {
			return decodeText(first.s, args[1].s)
		}
		return first, short == "from"
	case "reversed":
		return text(reverse(first.s)), !first.num
	}
	return constant{}, false
}

func joinAll(args []constant) (constant, bool) {
	out := ""
	for i, a := range args {
		if a.num || a.lists {
			return constant{}, false
		}
		if i == 0 {
			out = a.s
		} else {
			out = joinPath(out, a.s)
		}
	}
	return text(out), len(args) > 0
}

func fromCodes(list constant) (constant, bool) {
	if !list.lists {
		return list, !list.num
	}
	var b strings.Builder
	for _, e := range list.list {
		if !e.num {
			b.WriteString(e.s)
			continue
		}
		b.WriteRune(rune(e.n))
	}
	return text(b.String()), true
}

func decodeText(s, how string) (constant, bool) {
	switch strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(how)) {
	case "base64", "b64":
		b, ok := unbase64(s)
		return text(string(b)), ok
	case "hex":
		b, err := hex.DecodeString(s)
		return text(string(b)), err == nil
	case "rot13":
		return text(rot13(s)), true
	case "utf8", "ascii", "latin1":
		return text(s), true
	}
	return constant{}, false
}

func unbase64(s string) ([]byte, bool) {
	s = strings.Join(strings.Fields(s), "")
	for _, enc := range [...]*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		if b, err := enc.DecodeString(s); err == nil {
			return b, true
		}
	}
	return nil, false
}

func rot13(s string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z':
			return 'a' + (c-'a'+13)%26
		case c >= 'A' && c <= 'Z':
			return 'A' + (c-'A'+13)%26
		}
		return c
	}, s)
}

func reverse(s string) string {
	if !utf8.ValidString(s) {
		return s
	}
	r := []rune(s)
	for i, j := 0, len(r)-1; i < j; i, j = i+1, j-1 {
		r[i], r[j] = r[j], r[i]
	}
	return string(r)
}

// postfix folds one method call or index on a constant.
func (f *folder) postfix(c constant, i int) (constant, int, bool) {
	if f.is(i, "[") {
		return f.index(c, i)
	}
	if !f.is(i, ".") || f.at(i+1).kind != tokName || f.lang == "perl" || f.lang == "php" {
		return c, i, false
	}
	method := f.at(i + 1).text
	if !f.is(i+2, "(") {
		if method == "reverse" && f.lang == "ruby" {
			return text(reverse(c.s)), i + 2, true
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
	d, ok := methodOf(c, method, args.list)
	return d, j, ok
}

func methodOf(c constant, method string, args []constant) (constant, bool) {
	arg := func(i int) string {
		if i < len(args) {
			return args[i].str()
		}
		return ""
	}
	switch method {
	case "join":
		if c.lists { // JavaScript, Ruby
			return text(joinConstants(c.list, arg(0))), true
		}
		return constant{}, false
	case "decode", "encode", "strip", "trim", "toString", "strip_", "read", "to_s", "as_posix", "resolve":
		if method == "strip" || method == "trim" {
			return text(strings.TrimSpace(c.s)), true
		}
		return c, method != "read" && !c.lists
	case "lower", "toLowerCase", "downcase":
		return text(strings.ToLower(c.s)), !c.lists
	case "upper", "toUpperCase", "upcase":
		return text(strings.ToUpper(c.s)), !c.lists
	case "replace", "replaceAll", "gsub":
		if len(args) >= 2 && !c.lists && arg(0) != "" {
			return text(strings.ReplaceAll(c.s, arg(0), arg(1))), true
		}
	case "concat":
		s := c.s
		for i := range args {
			s += arg(i)
		}
		return text(s), !c.lists
	case "format":
		return formatBraces(c.s, args)
	case "split":
		if !c.lists {
			out := constant{lists: true}
			for _, p := range strings.Split(c.s, arg(0)) {
				out.list = append(out.list, text(p))
			}
			return out, len(out.list) < 1024
		}
	case "reverse":
		if c.lists {
			out := constant{lists: true}
			for i := len(c.list) - 1; i >= 0; i-- {
				out.list = append(out.list, c.list[i])
			}
			return out, true
		}
		return text(reverse(c.s)), true
	case "joinpath":
		d, ok := joinAll(append([]constant{c}, args...))
		d.path = true
		return d, ok
	case "pack":
		return fromCodes(c)
	}
	return constant{}, false
}

func joinConstants(list []constant, sep string) string {
	parts := make([]string, len(list))
	for i, e := range list {
		parts[i] = e.str()
	}
	return strings.Join(parts, sep)
}

func formatBraces(s string, args []constant) (constant, bool) {
	var b strings.Builder
	n := 0
	for {
		i := strings.IndexByte(s, '{')
		if i < 0 {
			b.WriteString(s)
			return text(b.String()), true
		}
		j := strings.IndexByte(s[i:], '}')
		if j < 0 {
			return constant{}, false
		}
		k, err := strconv.Atoi(s[i+1 : i+j])
		if err != nil {
			if i+1 != i+j {
				return constant{}, false
			}
			k = n
			n++
		}
		if k < 0 || k >= len(args) {
			return constant{}, false
		}
		b.WriteString(s[:i] + args[k].str())
		s = s[i+j+1:]
	}
}

// joined folds the argument of sep.join: a list, map(chr, list) or chr(x) for x in list.
func (f *folder) joined(sep string, open int) (string, int, bool) {
	if args, j, ok := f.items(open, ")"); ok && len(args.list) == 1 {
		a := args.list[0]
		if a.lists {
			return joinConstants(a.list, sep), j, true
		}
		return strings.Join(strings.Split(a.s, ""), sep), j, !a.num
	}
	i := open + 1
	if f.is(i, "[") {
		i++
	}
	if f.at(i).text != "chr" || !f.is(i+1, "(") || f.at(i+2).kind != tokName || !f.is(i+3, ")") || f.at(i+4).text != "for" || f.at(i+6).text != "in" {
		return "", open, false
	}
	list, j, ok := f.expr(i + 7)
	if !ok || !list.lists {
		return "", open, false
	}
	if f.is(j, "]") {
		j++
	}
	c, ok := fromCodes(list)
	return strings.Join(strings.Split(c.s, ""), sep), j + 1, ok && f.is(j, ")")
}

// index folds [n], [a:b] and [::-1].
func (f *folder) index(c constant, i int) (constant, int, bool) {
	if f.is(i+1, ":") && f.is(i+2, ":") && f.is(i+3, "-") && f.at(i+4).text == "1" && f.is(i+5, "]") && !c.num && !c.lists {
		return text(reverse(c.s)), i + 6, true
	}
	n, j, ok := f.expr(i + 1)
	if !ok || !n.num || !f.is(j, "]") {
		return c, i, false
	}
	switch {
	case c.lists && n.n >= 0 && n.n < len(c.list):
		return c.list[n.n], j + 1, true
	case !c.lists && !c.num && n.n >= 0 && n.n < len(c.s):
		return text(c.s[n.n : n.n+1]), j + 1, true
	}
	return c, i, false
}

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
