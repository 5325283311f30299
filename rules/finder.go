package rules

import (
	"slices"
	"unicode/utf8"
)

// finder finds which of a set of literals a text holds, in one pass (Aho and Corasick 1975). The text is lowered byte
// by byte as it is read. Immutable once built.
//
// A full table of the core packs' seven thousand literals has 28 MB, and what a text needs of it comes from main memory.
// So only states near the root, where nearly all of a text is read, have a row for every byte. The others keep the few
// bytes that lead on, and where to try again when none does.
type finder struct {
	words   int       // of a bitset over the ids
	class   [256]byte // of bytes that count as alike; 0 for those in no literal
	classes int
	rows    []int32 // of the states below wide, by class: the next state, negative (^) where literals end
	wide    int32   // states from here on are narrow
	narrow  []narrowState
	edges   []finderEdge
	ends    [][]int32 // by state, ids of the literals that end there, those by suffix included, the longest first
	longest []int32   // by state, the first of ends
}

// narrowState is a state without a row.
type narrowState struct {
	edge, last int32 // its edges, as a range of the finder's
	fail       int32 // the state of the longest suffix that is a prefix of some literal
}

// finderEdge leads on by a class of bytes; to as in rows.
type finderEdge struct {
	class byte
	to    int32
}

// wideDepth is the length in bytes of the longest prefixes whose states have rows.
const wideDepth = 3

// newFinder builds the finder; the index of a literal is its id. Literals are in ASCII lower case, and not empty.
func newFinder(literals []string) *finder {
	f := &finder{words: (len(literals) + 63) / 64, classes: 1}
	f.classify(literals)
	t := f.plant(literals)
	f.link(t)
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

// trie is the literals as a tree of their bytes' classes. States are numbered by depth.
type trie struct {
	next  []map[byte]int32
	depth []int
}

// plant makes the trie, and notes where literals end.
func (f *finder) plant(literals []string) *trie {
	t := &trie{next: []map[byte]int32{{}}, depth: []int{0}}
	f.ends = make([][]int32, 1)
	at := make([]int32, len(literals)) // of each literal, the state so far
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
				t.next, t.depth, f.ends = append(t.next, map[byte]int32{}), append(t.depth, depth+1), append(f.ends, nil)
			}
			if at[id] = n; len(l) == depth+1 {
				f.ends[n] = append(f.ends[n], int32(id))
			}
		}
		if !more {
			return t
		}
	}
}

// link turns the trie into the automaton. States come in the order of their depth, so what is less deep is done.
func (f *finder) link(t *trie) {
	fail := make([]int32, len(t.next))
	for s := range t.next {
		for c, to := range t.next[s] {
			if s != 0 {
				fail[to] = f.step(t, fail, fail[s], c)
			}
			f.ends[to] = append(f.ends[to], f.ends[fail[to]]...)
		}
		if t.depth[s] <= wideDepth {
			f.wide = int32(s) + 1
			f.widen(t, fail, int32(s))
		} else {
			f.squeeze(t, fail[s], int32(s))
		}
	}
	f.longest = make([]int32, len(f.ends))
	for s, ends := range f.ends {
		if ends != nil {
			f.longest[s] = ends[0]
		}
	}
	mark := func(to *int32) {
		if f.ends[*to] != nil {
			*to = ^*to
		}
	}
	for i := range f.rows {
		mark(&f.rows[i])
	}
	for i := range f.edges {
		mark(&f.edges[i].to)
	}
}

// step gives where a class leads from a state, while nothing is marked yet.
func (f *finder) step(t *trie, fail []int32, s int32, c byte) int32 {
	for {
		if to, ok := t.next[s][c]; ok {
			return to
		}
		if s == 0 {
			return 0
		}
		s = fail[s]
	}
}

// widen gives a state its row.
func (f *finder) widen(t *trie, fail []int32, s int32) {
	for c := range f.classes {
		f.rows = append(f.rows, f.step(t, fail, s, byte(c)))
	}
}

// squeeze gives a state its edges.
func (f *finder) squeeze(t *trie, fail, s int32) {
	n := narrowState{edge: int32(len(f.edges)), fail: fail}
	for c, to := range t.next[s] {
		f.edges = append(f.edges, finderEdge{c, to})
	}
	n.last = int32(len(f.edges))
	slices.SortFunc(f.edges[n.edge:], func(a, b finderEdge) int { return int(a.class) - int(b.class) })
	f.narrow = append(f.narrow, n)
}

// scan adds the ids of the literals that text holds to found, making it where it is nil, and says whether text is all
// ASCII. Where the longest literal that ends somewhere is known, so are the others there, which are its suffixes: text
// repeats itself.
func (f *finder) scan(text string, found bits) (bits, bool) {
	s, high := int32(0), byte(0)
	for i := range len(text) {
		b := text[i]
		high |= b
		if s = f.next(s, f.class[b]); s < 0 {
			s = ^s
			if found == nil {
				found = make(bits, f.words)
			} else if found.has(int(f.longest[s])) {
				continue
			}
			for _, id := range f.ends[s] {
				found[id>>6] |= 1 << (id & 63)
			}
		}
	}
	return found, high < 0x80
}

// next gives where a class leads from a state, as rows say it.
func (f *finder) next(s int32, class byte) int32 {
	for s >= f.wide {
		n := &f.narrow[s-f.wide]
		for i := n.edge; i < n.last; i++ {
			if f.edges[i].class == class {
				return f.edges[i].to
			}
		}
		s = n.fail
	}
	return f.rows[int(s)*f.classes+int(class)]
}
