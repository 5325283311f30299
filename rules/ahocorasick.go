package rules

import (
	mathbits "math/bits"
	"slices"
)

// automaton finds which of a set of literals a text holds, in one pass (Aho and Corasick 1975).
// The text is lowered byte by byte as it is read. Immutable once built.
type automaton struct {
	class   [256]byte // of bytes that behave alike; 0 for those in no literal
	classes int       // rounded up to a power of two, so that a row's state is a shift away
	shift   int       // its logarithm
	next    []int32   // state*classes + class -> state; once linked, state*classes, negative (^) where literals end
	out     [][]int32 // ids of the literals that end at a state, those by suffix included
	words   int       // of a bitset over the ids
}

// bits is a set of literal ids; nil stands for none.
type bits []uint64

func (b bits) has(id int) bool { return b != nil && b[id>>6]&(1<<(id&63)) != 0 }

// with adds an id, and gives words of it where b is nil.
func (b bits) with(id, words int) bits {
	if b == nil {
		b = make(bits, words)
	}
	b[id>>6] |= 1 << (id & 63)
	return b
}

// union adds the ids of more, which is as long as b or b is nil.
func (b bits) union(more bits) bits {
	if b == nil {
		return slices.Clone(more)
	}
	for i, w := range more {
		b[i] |= w
	}
	return b
}

// newAutomaton builds the automaton; the index of a literal is its id. Literals are not empty.
func newAutomaton(literals []string) *automaton {
	a := &automaton{words: (len(literals) + 63) / 64, classes: 1}
	for _, l := range literals {
		for i := range len(l) {
			if a.class[l[i]] == 0 {
				a.class[l[i]] = byte(a.classes) // at most 255 distinct bytes: literals hold no upper case
				a.classes++
			}
		}
	}
	a.shift = mathbits.Len(uint(a.classes - 1))
	a.classes = 1 << a.shift
	for c := byte('A'); c <= 'Z'; c++ {
		a.class[c] = a.class[c+'a'-'A']
	}
	a.grow()
	for id, l := range literals {
		s := int32(0)
		for i := range len(l) {
			at := int(s)*a.classes + int(a.class[l[i]])
			if a.next[at] == 0 {
				a.next[at] = a.grow()
			}
			s = a.next[at]
		}
		a.out[s] = append(a.out[s], int32(id))
	}
	a.link()
	a.point()
	return a
}

// grow adds a state.
func (a *automaton) grow() int32 {
	a.next = append(a.next, make([]int32, a.classes)...)
	a.out = append(a.out, nil)
	return int32(len(a.out) - 1)
}

// link turns the trie into an automaton: breadth first, a missing edge becomes the edge of the
// longest proper suffix that is a prefix of some literal.
func (a *automaton) link() {
	fail := make([]int32, len(a.out))
	queue := []int32{0}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		for c := range a.classes {
			at := int(s)*a.classes + c
			t := a.next[at]
			var f int32
			if s != 0 {
				f = a.next[int(fail[s])*a.classes+c]
			}
			if t == 0 {
				a.next[at] = f
				continue
			}
			fail[t] = f
			a.out[t] = append(a.out[t], a.out[f]...)
			queue = append(queue, t)
		}
	}
}

// scan adds the ids of the literals that text holds to found, making it where it is nil, and says
// whether text is all ASCII. Text and code in which few literals end cost 2 ns a byte.
func (a *automaton) scan(text string, found bits) (bits, bool) {
	s, high := int32(0), byte(0)
	for i := range len(text) {
		b := text[i]
		high |= b
		s = a.next[int(s)+int(a.class[b])]
		if s < 0 {
			s = ^s
			if found == nil {
				found = make(bits, a.words)
			}
			for _, id := range a.out[s>>a.shift] {
				found[id>>6] |= 1 << (id & 63)
			}
		}
	}
	return found, high < 0x80
}

// point turns the edges into places of rows, negative where literals end there, so that reading a
// byte that ends none touches one place of memory.
func (a *automaton) point() {
	for i, t := range a.next {
		row := t * int32(a.classes)
		if a.out[t] != nil {
			row = ^row
		}
		a.next[i] = row
	}
}
