package classifier

import "strings"

// replacer replaces names in texts, at each place the first that stands there, as a strings.Replacer made of them does.
// That one walks a tree at every byte, and names stand at few: this one looks first at what pairs of bytes names begin
// with. Safe for concurrent use.
type replacer struct {
	names []string // of two bytes and more
	by    []string
	begin [1 << 16 / 64]uint64 // set of pairs of bytes, the first one the lower
}

func newReplacer(names, by []string) *replacer {
	r := &replacer{names: names, by: by}
	for _, n := range names {
		at := pairAt(n, 0)
		r.begin[at>>6] |= 1 << (at & 63)
	}
	return r
}

// pairAt gives the bytes at i and after it as one number.
func pairAt(text string, i int) uint16 { return uint16(text[i]) | uint16(text[i+1])<<8 }

// replace gives the text with all names replaced.
func (r *replacer) replace(text string) string {
	var b strings.Builder
	done := 0
	for i := 0; i+1 < len(text); {
		at := pairAt(text, i)
		if r.begin[at>>6]&(1<<(at&63)) == 0 {
			i++
			continue
		}
		k := r.nameAt(text[i:])
		if k < 0 {
			i++
			continue
		}
		b.WriteString(text[done:i])
		b.WriteString(r.by[k])
		i += len(r.names[k])
		done = i
	}
	if done == 0 {
		return text
	}
	b.WriteString(text[done:])
	return b.String()
}

// nameAt gives the first name that text begins with, -1 for none.
func (r *replacer) nameAt(text string) int {
	for k, n := range r.names {
		if strings.HasPrefix(text, n) {
			return k
		}
	}
	return -1
}
