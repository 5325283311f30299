package gitobj

import (
	"bytes"
	"encoding/hex"
	"errors"
	"sort"
)

// ID is the SHA-1 name of an object.
type ID [20]byte

// Zero is the id that stands for none.
var Zero ID

// String gives 40 hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// ParseID reads 40 hexadecimal digits.
func ParseID(s string) (ID, bool) {
	var id ID
	if len(s) != 40 {
		return id, false
	}
	_, err := hex.Decode(id[:], []byte(s))
	return id, err == nil
}

// Set is a set of ids that answers membership and prefixes; the zero Set is empty. It is sorted
// once, by NewSet, and safe for concurrent use after that.
type Set struct{ ids []ID }

// NewSet takes over ids, sorts them, and drops repeats.
func NewSet(ids []ID) Set {
	sort.Slice(ids, func(i, j int) bool { return bytes.Compare(ids[i][:], ids[j][:]) < 0 })
	kept := ids[:0]
	for i, id := range ids {
		if i == 0 || id != ids[i-1] {
			kept = append(kept, id)
		}
	}
	return Set{kept}
}

// SetOf is NewSet over the keys of m.
func SetOf[V any](m map[ID]V) Set {
	ids := make([]ID, 0, len(m))
	for id := range m {
		ids = append(ids, id)
	}
	return NewSet(ids)
}

// Len counts the ids.
func (s Set) Len() int { return len(s.ids) }

// IDs gives the ids in order. They must not be changed.
func (s Set) IDs() []ID { return s.ids }

// Has reports membership.
func (s Set) Has(id ID) bool {
	i := s.search(id)
	return i < len(s.ids) && s.ids[i] == id
}

func (s Set) search(id ID) int {
	return sort.Search(len(s.ids), func(i int) bool { return bytes.Compare(s.ids[i][:], id[:]) >= 0 })
}

// HasPrefix reports whether an id starts with the hexadecimal digits.
func (s Set) HasPrefix(digits string) bool {
	if len(digits) > 40 {
		return false
	}
	padded := digits + "0000000000000000000000000000000000000000"[len(digits):]
	id, ok := ParseID(padded)
	if !ok {
		return false
	}
	i := s.search(id)
	return i < len(s.ids) && s.ids[i].String()[:len(digits)] == digits
}

// MarshalBinary gives the ids one after another, 20 bytes each.
func (s Set) MarshalBinary() ([]byte, error) {
	out := make([]byte, 0, len(s.ids)*20)
	for _, id := range s.ids {
		out = append(out, id[:]...)
	}
	return out, nil
}

// UnmarshalBinary reads what MarshalBinary gave.
func (s *Set) UnmarshalBinary(data []byte) error {
	if len(data)%20 != 0 {
		return errors.New("a set of ids has a broken length")
	}
	ids := make([]ID, len(data)/20)
	for i := range ids {
		copy(ids[i][:], data[i*20:])
	}
	*s = NewSet(ids)
	return nil
}
