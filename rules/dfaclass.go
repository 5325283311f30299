package rules

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
	n      int
	ascii  [utf8.RuneSelf]uint8
	from   []rune // starts of the ranges of runes, ascending from 0
	class  []uint8
	sample []rune // a rune of each class
	kinds  []runeKind
}

// classesOf gives the classes of a program; false where there are too many.
func classesOf(prog *syntax.Prog) (c classes, ok bool) {
	insts := distinct(prog)
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
	taste := make([]byte, len(insts)+1)
	for _, r := range c.from {
		taste[len(insts)] = byte(kindOf(r))
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
			c.sample, c.kinds = append(c.sample, r), append(c.kinds, kindOf(r))
			c.n++
		}
		c.class = append(c.class, n)
	}
	for r := range c.ascii {
		c.ascii[r] = uint8(c.of(rune(r)))
	}
	return c, true
}

// of gives the class of a rune.
func (c *classes) of(r rune) int {
	i := sort.Search(len(c.from), func(i int) bool { return c.from[i] > r })
	return int(c.class[i-1])
}

// distinct gives the instructions that read a rune, one of each kind.
func distinct(prog *syntax.Prog) []*syntax.Inst {
	var out []*syntax.Inst
	seen := map[string]bool{}
	for i := range prog.Inst {
		in := &prog.Inst[i]
		switch in.Op {
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		default:
			continue
		}
		key := make([]byte, 0, 64)
		for _, r := range append(slices.Clone(in.Rune), rune(in.Op), rune(in.Arg)) {
			key = binary.LittleEndian.AppendUint32(key, uint32(r))
		}
		if !seen[string(key)] {
			seen[string(key)] = true
			out = append(out, in)
		}
	}
	return out
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
