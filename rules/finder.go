package rules

import (
	"slices"
	"sort"
)

// finder finds which of a set of literals a text holds, in one pass. The text is lowered byte by byte as it is read.
//
// Most places of a text begin no literal, and that is what has to cost little: two bits in tables that fit into the
// processor's nearest cache say of the last four bytes whether a literal starts with them, and of the last two whether a
// literal too short for that does. Only where one is set is the literal's rest followed, byte by byte, through a trie.
// (The automaton of Aho and Corasick reads every byte once, but for the core packs' seven thousand literals its table
// has 28 MB, and each of its rows that a text is the first to need comes from main memory.) Immutable once built.
type finder struct {
	words int          // of a bitset over the ids
	pairs [1024]uint64 // a bit for each two bytes
	quads [2048]uint64 // a bit for each hash of four bytes
	roots []root       // open addressing by hash of the bytes, a power of two
	nodes []trieNode
	edges []trieEdge
	ends  []int32 // ids
}

// root is where the literals that start with some bytes go on: all that start with four, or the shorter that start with
// two, which share no key because of the mark.
type root struct {
	key  uint64 // 0 where none
	node int32
}

// trieNode is a place in the trie: its edges and the literals that end there, as ranges of the finder's.
type trieNode struct{ edge, lastEdge, end, lastEnd int32 }

// trieEdge leads on by a byte.
type trieEdge struct {
	by byte
	to int32
}

// Keys of roots. No literal is shorter than a pair.
const (
	pairMark = 1 << 32
	quadMark = 1 << 33
)

// newFinder builds the finder; the index of a literal is its id. Literals are in ASCII lower case, and not shorter than
// minLiteral.
func newFinder(literals []string) *finder {
	f := &finder{words: (len(literals) + 63) / 64}
	starts := map[uint64][]int{}
	for id, l := range literals {
		key := pairKey(pairOf(l))
		if len(l) >= 4 {
			key = quadKey(quadOf(l))
		}
		starts[key] = append(starts[key], id)
	}
	f.roots = make([]root, 1)
	for len(f.roots) < 4*len(starts) {
		f.roots = append(f.roots, f.roots...)
	}
	for key, ids := range starts {
		depth := 2
		if key >= quadMark {
			depth = 4
			h := quadHash(uint32(key))
			f.quads[h>>6] |= 1 << (h & 63)
		} else {
			p := uint32(key) & 0xffff
			f.pairs[p>>6] |= 1 << (p & 63)
		}
		f.place(root{key, f.grow(literals, ids, depth)})
	}
	return f
}

func pairOf(s string) uint32 { return uint32(s[0]) | uint32(s[1])<<8 }

func quadOf(s string) uint32 { return pairOf(s) | pairOf(s[2:])<<16 }

func pairKey(pair uint32) uint64 { return uint64(pair) | pairMark }

func quadKey(quad uint32) uint64 { return uint64(quad) | quadMark }

func quadHash(quad uint32) uint32 { return quad * 0x9e3779b1 >> 15 } // 17 bits, Knuth's multiplicative hash

// slot is where the search for a key's root begins.
func (f *finder) slot(key uint64) int {
	return int(key*0x9e3779b97f4a7c15>>40) & (len(f.roots) - 1)
}

// place puts a root into the table.
func (f *finder) place(r root) {
	i := f.slot(r.key)
	for f.roots[i].key != 0 {
		i = (i + 1) & (len(f.roots) - 1)
	}
	f.roots[i] = r
}

// root gives the node of a key, -1 where there is none.
func (f *finder) root(key uint64) int32 {
	for i := f.slot(key); f.roots[i].key != 0; i = (i + 1) & (len(f.roots) - 1) {
		if f.roots[i].key == key {
			return f.roots[i].node
		}
	}
	return -1
}

// grow makes the node of literals that are alike up to depth, and what comes below it.
func (f *finder) grow(literals []string, ids []int, depth int) int32 {
	n := int32(len(f.nodes))
	f.nodes = append(f.nodes, trieNode{})
	node := trieNode{end: int32(len(f.ends))}
	more := map[byte][]int{}
	for _, id := range ids {
		if l := literals[id]; len(l) == depth {
			f.ends = append(f.ends, int32(id))
		} else {
			more[l[depth]] = append(more[l[depth]], id)
		}
	}
	node.lastEnd = int32(len(f.ends))
	var edges []trieEdge
	for b, below := range more {
		edges = append(edges, trieEdge{b, f.grow(literals, below, depth+1)})
	}
	sort.Slice(edges, func(i, j int) bool { return edges[i].by < edges[j].by })
	node.edge = int32(len(f.edges))
	f.edges = append(f.edges, edges...)
	node.lastEdge = int32(len(f.edges))
	f.nodes[n] = node
	return n
}

// scan adds the ids of the literals that text holds to found, making it where it is nil, and says whether text is all
// ASCII.
func (f *finder) scan(text string, found bits) (bits, bool) {
	last, high := uint32(0), byte(0) // the last four bytes, the latest on top
	for i := range len(text) {
		b := text[i]
		high |= b
		last = last>>8 | uint32(asciiLower(b))<<24
		if p := last >> 16; f.pairs[p>>6]&(1<<(p&63)) != 0 && i >= 1 {
			found = f.follow(f.root(pairKey(p)), text[i+1:], found)
		}
		if h := quadHash(last); f.quads[h>>6]&(1<<(h&63)) != 0 && i >= 3 {
			found = f.follow(f.root(quadKey(last)), text[i+1:], found)
		}
	}
	return found, high < 0x80
}

// follow adds the literals that end at a node, or below it where rest leads.
func (f *finder) follow(n int32, rest string, found bits) bits {
	for n >= 0 {
		node := &f.nodes[n]
		if node.end < node.lastEnd {
			if found == nil {
				found = make(bits, f.words)
			}
			for _, id := range f.ends[node.end:node.lastEnd] {
				found[id>>6] |= 1 << (id & 63)
			}
		}
		if rest == "" || node.edge == node.lastEdge {
			break
		}
		n = next(f.edges[node.edge:node.lastEdge], asciiLower(rest[0]))
		rest = rest[1:]
	}
	return found
}

// next gives where a byte leads, -1 for nowhere.
func next(edges []trieEdge, by byte) int32 {
	i := slices.IndexFunc(edges, func(e trieEdge) bool { return e.by >= by })
	if i < 0 || edges[i].by != by {
		return -1
	}
	return edges[i].to
}
