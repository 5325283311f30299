package rules

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"proctor/internal/lazydfa/lazydfatest"
)

func ascii(s string) bool {
	return !slices.ContainsFunc([]byte(s), func(b byte) bool { return b >= utf8.RuneSelf })
}

// What holds a literal is found; of literals of ASCII nothing else is.
func TestFinderFindsWhatContainsFinds(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		var lits []string
		for range 1 + r.IntN(12) {
			l := lowerASCII(lazydfatest.RandomText(r, 6))
			if len(l) >= minLiteral && !slices.Contains(lits, l) {
				lits = append(lits, l)
			}
		}
		text := lazydfatest.RandomText(r, 12)
		if len(lits) > 0 && r.IntN(2) == 0 { // long literals are seldom met by chance
			text += strings.ToUpper(lits[r.IntN(len(lits))][:1+r.IntN(2)]) + lits[0] + lazydfatest.RandomText(r, 3)
		}
		found, plain := newFinder(lits).scan(text, nil)
		for id, l := range lits {
			want := strings.Contains(lowerASCII(text), l)
			if ascii(l) && found.has(id) != want || want && !found.has(id) {
				t.Fatalf("%q in %q: got %t", l, text, found.has(id))
			}
		}
		if plain != ascii(text) {
			t.Fatalf("%q: ascii %t", text, plain)
		}
	}
}

// More literals than two bytes count, as a pack with a long list has.
func TestFinderHoldsManyLiterals(t *testing.T) {
	var lits []string
	for i := range 1 << 17 {
		lits = append(lits, "x"+string([]byte{byte('a' + i&15), byte('a' + i>>4&15), byte('a' + i>>8&15), byte('a' + i>>12&15), byte('a' + i>>16&15)}))
	}
	found, _ := newFinder(lits).scan(lits[99999]+" "+lits[5], nil)
	for id := range lits {
		if found.has(id) != (id == 99999 || id == 5) {
			t.Fatalf("%q: %t", lits[id], found.has(id))
		}
	}
}

func BenchmarkFinder(b *testing.B) {
	p, err := Core()
	if err != nil {
		b.Fatal(err)
	}
	if err := p.share(); err != nil {
		b.Fatal(err)
	}
	text := strings.Repeat("def split(text):  # a note on what it returns\n    for part in text.split(','):\n        yield part.strip() or None\n", 30)
	found := make(bits, p.shared.filter.finder.words)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		p.shared.filter.finder.scan(text, found)
	}
}
