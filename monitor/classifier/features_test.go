package classifier

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"proctor/internal/lazydfa/lazydfatest"
)

// plainFeatures gives the words and the pieces of a text by their definition, step by step.
func plainFeatures(text string) (words, pieces []uint32) {
	text = plainNumbers(strings.ToLower(text))
	r := &reader{}
	var hashes []uint32
	for i := 0; i < len(text); {
		end := wordEnd(text, i)
		if end == i {
			i++
			continue
		}
		hashes = append(hashes, hashText(kindWords, text[i:end]))
		i = end
	}
	for i, h := range hashes {
		r.add(kindWords, h)
		if i > 0 {
			r.add(kindWords, join(hashes[i-1], h))
		}
		if i > 1 {
			r.add(kindWords, join(join(hashes[i-2], hashes[i-1]), h))
		}
	}
	r.forget(kindWords)
	for _, w := range strings.Fields(text) {
		w = " " + w[:min(len(w), longWord)] + " "
		for i := range max(1, len(w)-piece+1) {
			r.add(kindPieces, hashText(kindPieces, w[i:min(len(w), i+piece)]))
		}
	}
	return r.out[kindWords], r.out[kindPieces]
}

// plainNumbers makes every digit of long numbers a 0.
func plainNumbers(text string) string {
	out := []byte(text)
	for i := 0; i < len(text); {
		end := i
		for end < len(text) && text[end] >= '0' && text[end] <= '9' {
			end++
		}
		if end-i >= longNumber {
			copy(out[i:end], strings.Repeat("0", end-i))
		}
		i = max(end, i+1)
	}
	return string(out)
}

// sameFeatures holds what the reader gives against the definition.
func sameFeatures(t *testing.T, r *reader, text string) {
	t.Helper()
	words, pieces := plainFeatures(text)
	f := r.read(Document{Text: text})
	if !slices.Equal(f[kindWords], words) || !slices.Equal(f[kindPieces], pieces) {
		t.Fatalf("%q: %d words and %d pieces, want %d and %d", text, len(f[kindWords]), len(f[kindPieces]), len(words), len(pieces))
	}
}

func TestFeaturesAreThoseOfTheDefinition(t *testing.T) {
	r, random := &reader{}, rand.New(rand.NewPCG(21, 22))
	for _, text := range []string{"", " ", "a", "ab", "abc", "abcd x", "\v\f\r\n\t ab1234  5678", strings.Repeat("x", longWord+9), strings.Repeat("x", longWord), "x\u00a0y\u0085z", "\xff\xfe1234", "\u212a\u0130"} {
		sameFeatures(t, r, text)
	}
	for range 2000 {
		text := lazydfatest.RandomText(random, 40)
		if random.IntN(2) == 0 {
			text = strings.Map(func(c rune) rune {
				if c >= utf8.RuneSelf {
					return '9'
				}
				return c
			}, text)
		}
		sameFeatures(t, r, text)
	}
}

func TestReplacerIsThatOfStrings(t *testing.T) {
	random := rand.New(rand.NewPCG(23, 24))
	piece := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString([]string{"a", "b", "/", "ab", "\u00e9"}[random.IntN(5)])
		}
		return b.String()
	}
	for range 5000 {
		var names, marks, pairs []string
		for range random.IntN(5) {
			if n := piece(2 + random.IntN(3)); len(n) > 1 && !slices.Contains(names, n) {
				names, marks = append(names, n), append(marks, " zz ")
				pairs = append(pairs, n, " zz ")
			}
		}
		text := piece(random.IntN(20))
		want := strings.NewReplacer(pairs...).Replace(text)
		if got := newReplacer(names, marks).replace(text); got != want {
			t.Fatalf("%q in %q: %q, want %q", names, text, got, want)
		}
	}
}

func FuzzFeatures(f *testing.F) {
	f.Add("git log --all | head -12345")
	f.Add("\u00e9\xff 99999")
	r := &reader{}
	f.Fuzz(func(t *testing.T, text string) { sameFeatures(t, r, text) })
}

func BenchmarkFeatures(b *testing.B) {
	text := strings.Repeat("def split(text, by=','):  # as in RFC 4180\n    return [part.strip() for part in text.split(by)]\n", 25)
	r := &reader{}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		r.read(Document{Text: text})
	}
}
