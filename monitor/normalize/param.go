package normalize

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/pattern"
	"mvdan.cc/sh/v3/syntax"
)

// param gives the value of a parameter expansion.
func (r *run) param(p *syntax.ParamExp, f frame) val {
	if p.Param == nil || p.Names != 0 || p.NestedParam != nil {
		return val{}
	}
	v, set := r.lookup(p.Param.Value, p.Index, f)
	if p.Excl && v.known {
		v, set = r.lookup(v.s, nil, f)
	}
	if p.Length {
		if !v.known {
			return val{}
		}
		return known(strconv.Itoa(len([]rune(v.s))))
	}
	switch {
	case p.Slice != nil:
		return r.slice(v, p.Slice, f)
	case p.Repl != nil:
		return r.replace(v, p.Repl, f)
	case p.Exp != nil:
		return r.modify(v, set, p.Exp, f, p.Param.Value)
	}
	return v
}

// lookup gives a variable; set is false only where it is known to be unset. Variables that the
// rollout never touched are unknown: the sandbox's environment is not read.
func (r *run) lookup(name string, index syntax.ArithmExpr, f frame) (v val, set bool) {
	switch name {
	case "@", "*":
		if f.params != nil {
			return known(strings.Join(f.params, " ")), len(f.params) > 0
		}
		return val{}, true
	case "#":
		return known(strconv.Itoa(len(f.params))), true
	case "0":
		return val{f.name, f.name != ""}, true
	case "?":
		return val{}, true
	case "PWD":
		return known(r.st.cwd), true
	case "OLDPWD":
		return known(r.st.old), true
	}
	if n, err := strconv.Atoi(name); err == nil {
		if f.params == nil {
			return val{}, true
		}
		if n >= 1 && n <= len(f.params) {
			return known(f.params[n-1]), true
		}
		return known(""), false
	}
	w, ok := r.st.vars.get(name)
	if !ok {
		if name == "HOME" {
			return known("/root"), true
		}
		if name == "IFS" {
			return known(" \t\n"), true
		}
		return val{}, false
	}
	if w.list == nil {
		return val{w.value, w.known}, true
	}
	if index == nil {
		if len(w.list) == 0 {
			return known(""), false
		}
		return val{w.list[0], w.known}, true
	}
	if iw, ok := index.(*syntax.Word); ok && (iw.Lit() == "@" || iw.Lit() == "*") {
		return val{strings.Join(w.list, " "), w.known}, true
	}
	i, err := strconv.Atoi(r.arithm(index, f).s)
	if err != nil {
		return val{}, true
	}
	if i < 0 {
		i += len(w.list)
	}
	if i < 0 || i >= len(w.list) {
		return known(""), false
	}
	return val{w.list[i], w.known}, true
}

func (r *run) slice(v val, s *syntax.Slice, f frame) val {
	off := r.arithm(s.Offset, f)
	from, err := strconv.Atoi(off.s)
	if !v.known || !off.known || err != nil {
		return val{}
	}
	runes := []rune(v.s)
	if from < 0 {
		from += len(runes)
	}
	if from < 0 || from > len(runes) {
		return known("")
	}
	to := len(runes)
	if s.Length != nil {
		l := r.arithm(s.Length, f)
		n, err := strconv.Atoi(l.s)
		if !l.known || err != nil {
			return val{}
		}
		if n < 0 {
			to += n
		} else {
			to = min(to, from+n)
		}
	}
	if to < from {
		return known("")
	}
	return known(string(runes[from:to]))
}

func (r *run) replace(v val, re *syntax.Replace, f frame) val {
	orig, with := r.word(re.Orig, f), r.word(re.With, f)
	if !v.known || orig.opaque || with.opaque || orig.s == "" {
		return val{}
	}
	n := 1
	if re.All {
		n = -1
	}
	if !pattern.HasMeta(orig.s, 0) {
		switch {
		case !re.All && orig.s[0] == '#':
			if rest, ok := strings.CutPrefix(v.s, orig.s[1:]); ok {
				return known(with.s + rest)
			}
			return v
		case !re.All && orig.s[0] == '%':
			if rest, ok := strings.CutSuffix(v.s, orig.s[1:]); ok {
				return known(rest + with.s)
			}
			return v
		}
		return known(strings.Replace(v.s, orig.s, with.s, n))
	}
	rx := shellPattern(orig.s, 0)
	if rx == nil {
		return val{}
	}
	done := 0
	return known(rx.ReplaceAllStringFunc(v.s, func(m string) string {
		if done++; n == 1 && done > 1 {
			return m
		}
		return with.s
	}))
}

// modify is ${a:-b}, ${a#b}, ${a^^} and so on.
func (r *run) modify(v val, set bool, e *syntax.Expansion, f frame, name string) val {
	switch e.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if v.known && (v.s != "" || e.Op == syntax.DefaultUnset || e.Op == syntax.AssignUnset) && set {
			return v
		}
		if set && !v.known {
			return val{}
		}
		w := r.word(e.Word, f)
		d := val{w.s, !w.opaque}
		if e.Op == syntax.AssignUnset || e.Op == syntax.AssignUnsetOrNull {
			r.st.vars.set(name, variable{value: d.s, known: d.known})
		}
		return d
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		if !set || v.known && v.s == "" && e.Op == syntax.AlternateUnsetOrNull {
			return known("")
		}
		w := r.word(e.Word, f)
		return val{w.s, !w.opaque}
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		return v
	}
	if !v.known {
		return val{}
	}
	switch e.Op {
	case syntax.RemSmallPrefix, syntax.RemLargePrefix, syntax.RemSmallSuffix, syntax.RemLargeSuffix:
		w := r.word(e.Word, f)
		if w.opaque {
			return val{}
		}
		return known(trimPattern(v.s, w.s, e.Op))
	case syntax.UpperAll:
		return known(strings.ToUpper(v.s))
	case syntax.LowerAll:
		return known(strings.ToLower(v.s))
	case syntax.UpperFirst:
		if v.s != "" {
			return known(strings.ToUpper(v.s[:1]) + v.s[1:])
		}
	case syntax.LowerFirst:
		if v.s != "" {
			return known(strings.ToLower(v.s[:1]) + v.s[1:])
		}
	default:
		return val{}
	}
	return v
}

func trimPattern(s, pat string, op syntax.ParExpOperator) string {
	rx := shellPattern(pat, pattern.EntireString)
	if rx == nil || len(s) > 4096 {
		return s
	}
	match := func(t string) bool { return rx.MatchString(t) }
	switch op {
	case syntax.RemSmallPrefix:
		for i := 0; i <= len(s); i++ {
			if match(s[:i]) {
				return s[i:]
			}
		}
	case syntax.RemLargePrefix:
		for i := len(s); i >= 0; i-- {
			if match(s[:i]) {
				return s[i:]
			}
		}
	case syntax.RemSmallSuffix:
		for i := len(s); i >= 0; i-- {
			if match(s[i:]) {
				return s[:i]
			}
		}
	case syntax.RemLargeSuffix:
		for i := 0; i <= len(s); i++ {
			if match(s[i:]) {
				return s[:i]
			}
		}
	}
	return s
}

// arithm evaluates $(( )) over known integers. It leans on the parser's own expander, which is
// given nothing but the variables that are known.
func (r *run) arithm(x syntax.ArithmExpr, f frame) val {
	if x == nil {
		return val{}
	}
	ok, nodes := true, 0
	syntax.Walk(x, func(n syntax.Node) bool {
		nodes++
		switch n := n.(type) {
		case *syntax.ParamExp:
			v := r.param(n, f)
			ok = ok && v.known && isInteger(v.s)
			return false
		case *syntax.CmdSubst, *syntax.ProcSubst:
			ok = false
		case *syntax.BinaryArithm:
			// Assignments and powers: not worth the risk of a runaway value.
			ok = ok && n.Op != syntax.Pow && n.Op != syntax.Assgn
		case *syntax.Word:
			if l := n.Lit(); l != "" && !isInteger(l) {
				v, known := r.st.vars.get(l)
				ok = ok && known && v.known && isInteger(v.value)
			}
		}
		return ok && nodes < 64
	})
	if !ok || nodes >= 64 {
		return val{}
	}
	cfg := &expand.Config{Env: expand.FuncEnviron(func(name string) string {
		v, _ := r.lookup(name, nil, f)
		return v.s
	})}
	n, err := expand.Arithm(cfg, x)
	if err != nil {
		return val{}
	}
	return known(strconv.Itoa(n))
}

func isInteger(s string) bool {
	_, err := strconv.ParseInt(s, 0, 64)
	return err == nil
}
