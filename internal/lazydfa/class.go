package lazydfa

import (
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"sort"
	"unicode"
	"unicode/utf8"
)

// runeKind is what ^, $ and \b see of a rune.
type runeKind byte

const (
	kindNone runeKind = iota // no rune: an edge of the text
	kindLine
	kindWord
	kindOther
	numKinds
)

// rune gives a rune of the kind, -1 for none.
func (k runeKind) rune() rune {
	return [...]rune{-1, '\n', 'a', ' '}[k]
}

func kindOf(r rune) runeKind {
	switch {
	case r == '\n':
		return kindLine
	case syntax.IsWordChar(r):
		return kindWord
	}
	return kindOther
}

// classes parts the runes into classes that no instruction of a program tells apart.
type classes struct {
	n     int
	ascii [256]uint8 // by byte; a byte that is no rune of its own has the class of the text's end, whose cells are no state's
	from  []rune     // starts of the ranges of runes, ascending from 0
	class []uint8
	kinds []runeKind
	index []int      // by instruction, its kind among those that read a rune; -1 of one that reads none
	takes []classSet // by kind, the classes of the runes that it reads
}

// classSet is a set of classes.
type classSet [(maxClasses + 63) / 64]uint64

func (s *classSet) has(class uint32) bool { return s[class>>6]&(1<<(class&63)) != 0 }

// asked gives the kinds as the program tells them apart: without \b a letter is like any other rune, and without
// ^ and $ of lines so is a newline, so that fewer states are alike in all but what nobody asks.
func (k runeKind) asked(of syntax.EmptyOp) runeKind {
	const lines, words = syntax.EmptyBeginLine | syntax.EmptyEndLine, syntax.EmptyWordBoundary | syntax.EmptyNoWordBoundary
	if k == kindLine && of&lines == 0 || k == kindWord && of&words == 0 {
		return kindOther
	}
	return k
}

// emptyOps gives what the program asks about between runes.
func emptyOps(prog *syntax.Prog) (ops syntax.EmptyOp) {
	for i := range prog.Inst {
		if prog.Inst[i].Op == syntax.InstEmptyWidth {
			ops |= syntax.EmptyOp(prog.Inst[i].Arg)
		}
	}
	return ops
}

// classesOf gives the classes of a program; false where there are too many.
func classesOf(prog *syntax.Prog) (c classes, ok bool) {
	var insts []*syntax.Inst
	insts, c.index = distinct(prog)
	ops := emptyOps(prog)
	edges := []rune{0, '\n', '\n' + 1, '0', '9' + 1, 'A', 'Z' + 1, '_', '_' + 1, 'a', 'z' + 1}
	for _, in := range insts {
		edges = append(edges, edgesOf(in)...)
	}
	slices.Sort(edges)
	c.from = slices.Compact(edges)
	if len(c.from) > 8*maxClasses {
		return c, false
	}
	byTaste := map[string]uint8{}
	c.takes = make([]classSet, len(insts))
	taste := make([]byte, len(insts)+1)
	for _, r := range c.from {
		kind := kindOf(r).asked(ops)
		taste[len(insts)] = byte(kind)
		for i, in := range insts {
			taste[i] = 0
			if in.MatchRune(r) {
				taste[i] = 1
			}
		}
		n, known := byTaste[string(taste)]
		if !known {
			if c.n == maxClasses {
				return c, false
			}
			n = uint8(c.n)
			byTaste[string(taste)] = n
			for i := range insts {
				c.takes[i][c.n>>6] |= uint64(taste[i]) << (c.n & 63)
			}
			c.kinds = append(c.kinds, kind)
			c.n++
		}
		c.class = append(c.class, n)
	}
	for b := range c.ascii {
		c.ascii[b] = uint8(c.n)
		if b < utf8.RuneSelf {
			c.ascii[b] = uint8(c.of(rune(b)))
		}
	}
	return c, true
}

// of gives the class of a rune.
func (c *classes) of(r rune) int {
	i := sort.Search(len(c.from), func(i int) bool { return c.from[i] > r })
	return int(c.class[i-1])
}

// distinct gives the instructions that read a rune, one of each kind, and for every instruction the index of its kind,
// -1 for those that read none.
func distinct(prog *syntax.Prog) (kinds []*syntax.Inst, index []int) {
	seen := map[string]int{}
	for pc := range prog.Inst {
		in := &prog.Inst[pc]
		switch in.Op {
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		default:
			index = append(index, -1)
			continue
		}
		key := make([]byte, 0, 64)
		for _, r := range append(slices.Clone(in.Rune), rune(in.Op), rune(in.Arg)) {
			key = binary.LittleEndian.AppendUint32(key, uint32(r))
		}
		i, known := seen[string(key)]
		if !known {
			i = len(kinds)
			seen[string(key)] = i
			kinds = append(kinds, in)
		}
		index = append(index, i)
	}
	return kinds, index
}

// edgesOf gives where an instruction's answer may change, going up the runes.
func edgesOf(in *syntax.Inst) []rune {
	var out []rune
	switch {
	case in.Op == syntax.InstRuneAny || in.Op == syntax.InstRuneAnyNotNL:
		// every rune, or every one but the newline, whose edges are always there
	case len(in.Rune) == 1:
		// A single rune, and under (?i) those that fold to it.
		first := in.Rune[0]
		out = append(out, first, first+1)
		for r := unicode.SimpleFold(first); r != first; r = unicode.SimpleFold(r) {
			out = append(out, r, r+1)
		}
	default:
		for i := 0; i+1 < len(in.Rune); i += 2 {
			out = append(out, in.Rune[i], in.Rune[i+1]+1)
		}
	}
	return out
}
