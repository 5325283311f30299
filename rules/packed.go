package rules

import (
	"slices"
)

// wordMask is literals whose ids lie in one word of a bit set.
type wordMask struct {
	word int
	mask uint64
}

// program is a formula of literals as tests with jumps, in one piece of memory: a call's texts are held against
// thousands of formulas, and one that is spread over many objects costs more to fetch than to read.
type program struct {
	start int32
	tests []literalTest
	masks []wordMask
}

// literalTest asks for one of some literals, or for all of them, and says where to go on.
type literalTest struct {
	from, to int32 // its masks
	all      bool
	yes, no  int32 // the next test, or an answer
}

// The answers of a program.
const (
	answerYes = -1
	answerNo  = -2
)

// size is the number of literals.
func (n *need) size() int {
	if n.subs == nil {
		return 1
	}
	sum := 0
	for _, s := range n.subs {
		sum += s.size()
	}
	return sum
}

// pack makes the formula's program. Preconditions: every literal below n has its id, no sub is nil, and nobody else
// reads n.
func (n *need) pack() {
	if n == nil {
		return
	}
	var p program
	p.start = p.add(n, answerYes, answerNo)
	n.prog = &p
}

// add adds the tests of a formula that goes on at yes or at no, and gives the first. The last part comes first, so that
// each knows where to go on: in a formula of all parts from one to the next where it holds, in one of any where it does not.
func (p *program) add(n *need, yes, no int32) int32 {
	if n.subs == nil {
		return p.test([]*need{n}, false, yes, no)
	}
	var literals, formulas []*need
	for _, s := range n.subs {
		if s.subs == nil {
			literals = append(literals, s)
		} else {
			formulas = append(formulas, s)
		}
	}
	next := no
	if n.all {
		next = yes
	}
	for i := len(formulas) - 1; i >= 0; i-- {
		if n.all {
			next = p.add(formulas[i], next, no)
		} else {
			next = p.add(formulas[i], yes, next)
		}
	}
	switch {
	case len(literals) == 0:
		return next
	case n.all:
		return p.test(literals, true, next, no)
	}
	return p.test(literals, false, yes, next)
}

// test adds one test of literals, put into words, so that a list of a hundred costs a few comparisons.
func (p *program) test(literals []*need, all bool, yes, no int32) int32 {
	var ids []int
	for _, l := range literals {
		ids = append(ids, l.id)
	}
	slices.Sort(ids)
	from := int32(len(p.masks))
	p.masks = append(p.masks, packIDs(ids)...)
	p.tests = append(p.tests, literalTest{from, int32(len(p.masks)), all, yes, no})
	return int32(len(p.tests) - 1)
}

// holds says whether a text that holds the literals found could match. It runs the packed formula's program;
// literal_pack_test.go holds it against the formula read plainly.
func (n *need) holds(found bits) bool {
	if n == nil {
		return true
	}
	if found == nil {
		return false // every formula needs some literal
	}
	p := n.prog
	at := p.start
	for at >= 0 {
		t := &p.tests[at]
		if t.met(p.masks[t.from:t.to], found) {
			at = t.yes
		} else {
			at = t.no
		}
	}
	return at == answerYes
}

// met says whether the test's literals are among those found.
func (t *literalTest) met(masks []wordMask, found bits) bool {
	for _, m := range masks {
		has := found[m.word] & m.mask
		if t.all && has != m.mask {
			return false
		}
		if !t.all && has != 0 {
			return true
		}
	}
	return t.all
}

// each calls f for every literal.
func (n *need) each(f func(*need)) {
	if n == nil {
		return
	}
	if n.subs == nil {
		f(n)
	}
	for _, s := range n.subs {
		s.each(f)
	}
}

// clause gives literals of which every matching text holds one: of all needs that with the longest
// shortest literal.
func (n *need) clause() []*need {
	switch {
	case n == nil:
		return nil
	case n.subs == nil:
		return []*need{n}
	case n.all:
		var best []*need
		for _, s := range n.subs {
			if c := s.clause(); best == nil || shortest(c) > shortest(best) {
				best = c
			}
		}
		return best
	}
	var out []*need
	for _, s := range n.subs {
		out = append(out, s.clause()...)
	}
	return out
}

// shortest is the length of a clause's shortest literal; 0 of none.
func shortest(clause []*need) int {
	if len(clause) == 0 {
		return 0
	}
	n := maxLiteral
	for _, l := range clause {
		n = min(n, len(l.text))
	}
	return n
}
