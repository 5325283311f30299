package rules

import "slices"

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
