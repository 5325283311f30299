package normalize

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// whileLoop reads a while or until loop: round after round where its condition is known, else once. What
// counts or grows in rounds that were not read is not known after it.
func (r *run) whileLoop(c *syntax.WhileClause, f frame, in val) {
	f.exact = false
	for round := 0; ; round++ {
		held := r.st.vars.save()
		r.stmts(c.Cond, f, in)
		goes, decided := r.decides(c.Cond, f)
		if decided && goes == c.Until && round > 0 {
			return
		}
		if round == maxLoop || !r.spend() {
			r.forgetGrown(held)
			return
		}
		before := r.st.vars.save()
		r.loopInput(c, f, in)
		if !decided || goes == c.Until {
			r.forgetGrown(before)
			return
		}
	}
}

// cStyleLoop reads for ((i = 0; i < 3; i++)).
func (r *run) cStyleLoop(c *syntax.CStyleLoop, do []*syntax.Stmt, f frame, in val) {
	f.exact = false
	r.arithmEffects(c.Init, f)
	for round := 0; ; round++ {
		v := known("1")
		if c.Cond != nil {
			v = r.arithm(c.Cond, f)
		}
		if v.known && v.s == "0" && round > 0 {
			return
		}
		before := r.st.vars.save()
		r.stmts(do, f, in)
		r.arithmEffects(c.Post, f)
		if !v.known || v.s == "0" || round == maxLoop || !r.spend() {
			r.forgetGrown(before)
			return
		}
	}
}

// forgetGrown marks the variables unknown that a round of a loop has made longer or counted.
func (r *run) forgetGrown(before map[string]*variable) {
	for name, now := range r.st.vars.top {
		if now == nil || !now.known || now.list != nil {
			continue
		}
		old, was := r.st.vars.base[name]
		if p, ok := before[name]; ok && p != nil {
			old, was = *p, true
		}
		if !was || old.value == now.value {
			continue
		}
		_, a := strconv.Atoi(old.value)
		_, b := strconv.Atoi(now.value)
		if a == nil && b == nil || len(now.value) > len(old.value) && strings.Contains(now.value, old.value) {
			r.st.vars.set(name, variable{value: now.value, exported: now.exported})
		}
	}
}

// decides evaluates a condition that is one [ a -lt b ] or (( a < b )) over known words.
func (r *run) decides(cond []*syntax.Stmt, f frame) (holds, ok bool) {
	if len(cond) != 1 || cond[0].Negated {
		return false, false
	}
	switch c := cond[0].Cmd.(type) {
	case *syntax.ArithmCmd:
		v := r.arithm(c.X, f)
		return v.s != "0", v.known
	case *syntax.CallExpr:
		words := r.fields(c.Args, f)
		if anyOpaque(words) || len(words) == 0 {
			return false, false
		}
		switch words[0].s {
		case "true", ":":
			return true, true
		case "[":
			words = words[:len(words)-1]
		case "test":
		default:
			return false, false
		}
		return decide(texts(words[1:]))
	}
	return false, false
}

// decide is test with two strings or integers.
func decide(w []string) (holds, ok bool) {
	if len(w) != 3 {
		return false, false
	}
	switch w[1] {
	case "=", "==":
		return w[0] == w[2], true
	case "!=":
		return w[0] != w[2], true
	}
	a, err := strconv.Atoi(w[0])
	b, err2 := strconv.Atoi(w[2])
	if err != nil || err2 != nil {
		return false, false
	}
	switch w[1] {
	case "-lt":
		return a < b, true
	case "-le":
		return a <= b, true
	case "-gt":
		return a > b, true
	case "-ge":
		return a >= b, true
	case "-eq":
		return a == b, true
	case "-ne":
		return a != b, true
	}
	return false, false
}

// arithmEffects follows what (( )) assigns: i++, i += 2, i = 3.
func (r *run) arithmEffects(x syntax.ArithmExpr, f frame) {
	switch x := x.(type) {
	case nil:
	case *syntax.UnaryArithm:
		if x.Op == syntax.Inc || x.Op == syntax.Dec {
			step := 1
			if x.Op == syntax.Dec {
				step = -1
			}
			r.bump(x.X, step, true)
		}
	case *syntax.BinaryArithm:
		switch x.Op {
		case syntax.Comma:
			r.arithmEffects(x.X, f)
			r.arithmEffects(x.Y, f)
		case syntax.Assgn:
			if name := arithmName(x.X); name != "" {
				v := r.arithm(x.Y, f)
				r.st.vars.set(name, variable{value: v.s, known: v.known})
			}
		case syntax.AddAssgn, syntax.SubAssgn:
			v := r.arithm(x.Y, f)
			n, err := strconv.Atoi(v.s)
			if x.Op == syntax.SubAssgn {
				n = -n
			}
			r.bump(x.X, n, v.known && err == nil)
		case syntax.MulAssgn, syntax.QuoAssgn, syntax.RemAssgn, syntax.AndAssgn, syntax.OrAssgn, syntax.XorAssgn, syntax.ShlAssgn, syntax.ShrAssgn:
			r.bump(x.X, 0, false)
		}
	}
}

// bump adds to a variable; what is not known before is not known after.
func (r *run) bump(x syntax.ArithmExpr, by int, ok bool) {
	name := arithmName(x)
	if name == "" {
		return
	}
	old, _ := r.st.vars.get(name)
	n, err := strconv.Atoi(old.value)
	if old.value == "" {
		err = nil
	}
	r.st.vars.set(name, variable{value: strconv.Itoa(n + by), known: ok && err == nil && (old.known || old.value == ""), exported: old.exported})
}

func arithmName(x syntax.ArithmExpr) string {
	w, ok := x.(*syntax.Word)
	if !ok {
		return ""
	}
	return w.Lit()
}
