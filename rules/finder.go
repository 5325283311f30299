package rules

import (
	"slices"
	"unicode/utf8"
)

// finder finds which of a set of literals a text holds, in one pass (Aho and Corasick 1975). The text is lowered byte
// by byte as it is read. Immutable once built; safe for concurrent use.
//
// A full table of the core packs' seven thousand literals has 28 MB, and what a text needs of it comes from main memory.
// But deep in the tree of the literals few bytes lead on, and for all others a state does as a shallow one does. So a
// state is the row of a shallow one, and at most two bytes for which it has its own answer.
type finder struct {
	words   int       // of a bitset over the ids
	overlap int       // bytes of the longest literal, less one
	class   [256]byte // of bytes that count as alike; 0 for those in no literal
	classes int
	root    int32
	states  []finderState
	rows    []int32 // of some states, by class: the next state
	ends    [][]int32
	longest []int32 // by state, the first of ends
}

// finderState is a state. Those where literals end come first: they have ends, the ids of the literals that end there,
// those by suffix included, the longest first.
type finderState struct {
	row  int32    // where its row begins
	own  [2]byte  // classes for which the row is wrong; noClass for none
	next [2]int32 // where they lead instead
}

// noClass is the class of no byte.
const noClass = 0xff

// wideDepth is the length in bytes of the longest prefixes whose states have rows whatever leads on from them.
const wideDepth = 2

// newFinder builds the finder; the index of a literal is its id. Literals are in ASCII lower case, and not empty.
func newFinder(literals []string) *finder {
	f := &finder{words: (len(literals) + 63) / 64, classes: 1}
	f.classify(literals)
	for _, l := range literals {
		f.overlap = max(f.overlap, len(l)-1)
	}
	t := f.plant(literals)
	t.link(f)
	return f
}

// classify gives every ASCII byte of the literals a class. The others share one, without which rows would be twice as
// long: a literal with such bytes may be found where another of the same shape stands, which a prefilter may do.
func (f *finder) classify(literals []string) {
	of := func(b byte) byte { return min(b, utf8.RuneSelf) }
	for _, l := range literals {
		for i := range len(l) {
			if b := of(l[i]); f.class[b] == 0 {
				f.class[b] = byte(f.classes)
				f.classes++
			}
		}
	}
	for b := range f.class {
		f.class[b] = f.class[of(asciiLower(byte(b)))]
	}
}

// trie is the literals as a tree of their bytes' classes. Nodes are numbered by depth.
type trie struct {
	next  []map[byte]int32
	depth []int
	ends  [][]int32 // ids of the literals that end there; once linked, those by suffix included
	fail  []int32   // the node of the longest suffix that is a prefix of some literal
}

// plant makes the trie.
func (f *finder) plant(literals []string) *trie {
	t := &trie{next: []map[byte]int32{{}}, depth: []int{0}, ends: make([][]int32, 1)}
	at := make([]int32, len(literals)) // of each literal, the node so far
	for depth := 0; ; depth++ {
		more := false
		for id, l := range literals {
			if len(l) <= depth {
				continue
			}
			more = true
			c := f.class[l[depth]]
			n, ok := t.next[at[id]][c]
			if !ok {
				n = int32(len(t.next))
				t.next[at[id]][c] = n
				t.next, t.depth, t.ends = append(t.next, map[byte]int32{}), append(t.depth, depth+1), append(t.ends, nil)
			}
			if at[id] = n; len(l) == depth+1 {
				t.ends[n] = append(t.ends[n], int32(id))
			}
		}
		if !more {
			return t
		}
	}
}

// link turns the trie into the finder's states. Nodes come in the order of their depth, so what is less deep is done.
func (t *trie) link(f *finder) {
	t.fail = make([]int32, len(t.next))
	f.states = make([]finderState, len(t.next))
	for n := range t.next {
		for c, to := range t.next[n] {
			if n != 0 {
				t.fail[to] = t.step(t.fail[n], c)
			}
			t.ends[to] = append(t.ends[to], t.ends[t.fail[to]]...)
		}
		f.states[n] = t.state(f, int32(n))
	}
	f.number(t)
}

// step gives where a class leads from a node.
func (t *trie) step(n int32, c byte) int32 {
	for {
		if to, ok := t.next[n][c]; ok {
			return to
		}
		if n == 0 {
			return 0
		}
		n = t.fail[n]
	}
}

// state makes a node's state: that of the node by suffix with what leads on from this one, where that is little, and
// else one with a row of its own.
func (t *trie) state(f *finder, n int32) finderState {
	if t.depth[n] > wideDepth {
		if s, ok := f.states[t.fail[n]].with(t.next[n]); ok {
			return s
		}
	}
	s := finderState{row: int32(len(f.rows)), own: [2]byte{noClass, noClass}}
	for c := range f.classes {
		f.rows = append(f.rows, t.step(n, byte(c)))
	}
	return s
}

// with gives the state where some classes lead elsewhere; not ok where those are too many.
func (s finderState) with(next map[byte]int32) (_ finderState, ok bool) {
	for c, to := range next {
		i := slices.Index(s.own[:], c)
		if i < 0 {
			i = slices.Index(s.own[:], noClass)
		}
		if i < 0 {
			return s, false
		}
		s.own[i], s.next[i] = c, to
	}
	return s, true
}

// number gives the nodes where literals end the first numbers.
func (f *finder) number(t *trie) {
	nodes := make([]int32, 0, len(t.next)) // by state
	for _, marked := range []bool{true, false} {
		for n := range t.next {
			if (t.ends[n] != nil) == marked {
				nodes = append(nodes, int32(n))
			}
		}
	}
	number := make([]int32, len(nodes)) // by node
	states := make([]finderState, len(nodes))
	for s, n := range nodes {
		number[n], states[s] = int32(s), f.states[n]
		if ends := t.ends[n]; ends != nil {
			f.ends, f.longest = append(f.ends, ends), append(f.longest, ends[0])
		}
	}
	for i := range states {
		for j := range states[i].next {
			states[i].next[j] = number[states[i].next[j]]
		}
	}
	for i := range f.rows {
		f.rows[i] = number[f.rows[i]]
	}
	f.states, f.root = states, number[0]
}

// scan adds the ids of the literals that text holds to found, making it where it is nil, and says whether text is all
// ASCII.
func (f *finder) scan(text string, found bits) (bits, bool) {
	if len(text) >= laneText {
		return f.inLanes(text, found)
	}
	return f.from(f.root, text, found)
}

// from is scan that goes on in a state. Where the longest literal that ends somewhere is known, so are the others there,
// which are its suffixes: text repeats itself.
func (f *finder) from(s int32, text string, found bits) (bits, bool) {
	high := byte(0)
	for i := range len(text) {
		b := text[i]
		high |= b
		if s = f.next(s, f.class[b]); int(s) < len(f.ends) && !found.has(int(f.longest[s])) {
			found = f.note(found, s)
		}
	}
	return found, high < 0x80
}

// note adds the literals that end in a state.
func (f *finder) note(found bits, s int32) bits {
	if found == nil {
		found = make(bits, f.words)
	}
	for _, id := range f.ends[s] {
		found[id>>6] |= 1 << (id & 63)
	}
	return found
}

// next gives where a class leads from a state.
func (f *finder) next(s int32, class byte) int32 {
	st := &f.states[s]
	to := f.rows[int(st.row)+int(class)]
	if st.own[0] == class {
		to = st.next[0]
	}
	if st.own[1] == class {
		to = st.next[1]
	}
	return to
}
