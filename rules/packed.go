package rules

import (
	"slices"
)

// wordMask is literals whose ids lie in one word of a bit set.
type wordMask struct {
	word int
	mask uint64
}

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

// pack packs the whole formula. Preconditions: every literal below n has its id, and nobody else reads n.
func (n *need) pack() {
	if n == nil {
		return
	}
	for _, s := range n.subs {
		s.pack()
	}
	n.gather()
}

// gather puts the literals among n's own subs into words, so that a list of a hundred costs a few
// comparisons. The subs are only read. Preconditions: literals have their ids, no sub is nil.
func (n *need) gather() {
	masks := map[int]uint64{}
	n.packed, n.rest = nil, nil
	for _, s := range n.subs {
		if s.subs == nil {
			masks[s.id>>6] |= 1 << (s.id & 63)
		} else {
			n.rest = append(n.rest, s)
		}
	}
	for word, mask := range masks {
		n.packed = append(n.packed, wordMask{word, mask})
	}
	slices.SortFunc(n.packed, func(a, b wordMask) int { return a.word - b.word })
}

// holds says whether a text that holds the literals found could match. It reads the packed formula;
// literal_pack_test.go holds it against the formula read plainly.
func (n *need) holds(found bits) bool {
	switch {
	case n == nil:
		return true
	case n.subs == nil:
		return found.has(n.id)
	case n.all:
		for _, w := range n.packed {
			if found == nil || found[w.word]&w.mask != w.mask {
				return false
			}
		}
		for _, s := range n.rest {
			if !s.holds(found) {
				return false
			}
		}
		return true
	}
	if found != nil {
		for _, w := range n.packed {
			if found[w.word]&w.mask != 0 {
				return true
			}
		}
	}
	for _, s := range n.rest {
		if s.holds(found) {
			return true
		}
	}
	return false
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
