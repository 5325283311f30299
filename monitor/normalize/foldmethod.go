package normalize

import (
	"strconv"
	"strings"
)

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
	case "translate":
		if len(args) == 1 && args[0].lists && len(args[0].list) == 2 && !c.lists {
			return translated(c.s, args[0].list[0].s, args[0].list[1].s)
		}
	case "joinpath":
		d, ok := joinAll(append([]constant{c}, args...))
		d.path = true
		return d, ok
	case "pack":
		return fromCodes(c)
	}
	return constant{}, false
}

// glued folds the calls that join a list in languages where joining is a function: Perl's join, PHP's implode,
// Lua's table.concat.
func (f *folder) glued(name string, args []constant) (constant, bool) {
	if len(args) == 0 {
		return constant{}, false
	}
	switch {
	case name == "join" && f.lang == "perl" && !args[0].lists:
		list := args[1:]
		if len(list) == 1 && list[0].lists {
			list = list[0].list
		}
		return text(joinConstants(list, args[0].str())), true
	case name == "implode" && f.lang == "php" && len(args) == 2 && args[1].lists:
		return text(joinConstants(args[1].list, args[0].str())), true
	case name == "table.concat" && f.lang == "lua" && args[0].lists:
		sep := ""
		if len(args) > 1 {
			sep = args[1].str()
		}
		return text(joinConstants(args[0].list, sep)), true
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
	if c, j, ok := f.slice(c, i+1); ok {
		return c, j, true
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

// slice folds what stands between brackets where it has a colon: a:b, :b, a:, ::k, with signs.
func (f *folder) slice(c constant, i int) (constant, int, bool) {
	if c.lists || c.num {
		return c, i, false
	}
	var part [3]int
	var given [3]bool
	n := 0
	for ; ; i++ {
		switch {
		case f.is(i, ":") && n < 2:
			n++
			continue
		case f.is(i, "]") && n > 0:
			s, ok := cutSlice(c.s, part, given)
			return text(s), i + 1, ok
		}
		sign := 1
		if f.is(i, "-") {
			sign = -1
			i++
		}
		v, err := strconv.Atoi(f.at(i).text)
		if f.at(i).kind != tokNumber || err != nil || given[n] {
			return c, i, false
		}
		part[n], given[n] = sign*v, true
	}
}

// cutSlice is s[a:b:k] as Python has it, for k above zero or -1.
func cutSlice(s string, part [3]int, given [3]bool) (string, bool) {
	at := func(n, unset int) int {
		switch {
		case !given[n]:
			return unset
		case part[n] < 0:
			return max(0, len(s)+part[n])
		}
		return min(part[n], len(s))
	}
	from, to := at(0, 0), at(1, len(s))
	step := 1
	if given[2] {
		step = part[2]
	}
	switch {
	case step == -1 && !given[0] && !given[1]:
		return reverse(s), true
	case step < 1:
		return "", false
	case from >= to:
		return "", true
	}
	var b strings.Builder
	for i := from; i < to; i += step {
		b.WriteByte(s[i])
	}
	return b.String(), true
}

// translated puts each character of from for the one of to at its place.
func translated(s, from, to string) (constant, bool) {
	if len(from) != len(to) || len(from) > 256 {
		return constant{}, false
	}
	b := []byte(s)
	for i := range b {
		if k := strings.IndexByte(from, b[i]); k >= 0 {
			b[i] = to[k]
		}
	}
	return text(string(b)), true
}
