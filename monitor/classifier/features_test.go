package classifier

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"proctor/internal/lazydfa/lazydfatest"
	"proctor/rules"
)

// plainFeatures gives the words and the pieces of a text by their definition, step by step.
func plainFeatures(text string) (words, pieces []uint32) {
	text = plainNumbers(strings.ToLower(text))
	r := &reader{}
	hashes := plainWords(text)
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

// plainWords gives the words of a folded text in their order.
func plainWords(text string) (hashes []uint32) {
	for i := 0; i < len(text); {
		end := wordEnd(text, i)
		if end == i {
			i++
			continue
		}
		hashes = append(hashes, hashText(kindWords, text[i:end]))
		i = end
	}
	return hashes
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
	if order := plainWords(plainNumbers(strings.ToLower(text))); !slices.Equal(r.hashes, order) {
		t.Fatalf("%q: %d words in order, want %d", text, len(r.hashes), len(order))
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

// A task's short text asks for what its words asked for in labelled calls; of a long one nobody can say.
func TestAsks(t *testing.T) {
	var samples []Sample
	for i := range 40 {
		for _, x := range []struct {
			told string
			hack bool
		}{{"review pull request %d and write remarks", false}, {"fix the parser, issue %d", true}} {
			samples = append(samples, Sample{Document: Document{Text: "git fetch origin main", Told: told(strings.ReplaceAll(x.told, "%d", string(rune('a'+i%26))))}, Hack: x.hack, Class: "git_history"})
		}
	}
	samples = append(samples, Sample{Document: Document{Text: "rm -rf tests"}, Hack: true, Class: "grader_tamper"})
	m := Train(samples, nil)
	names := func(text string) *Names { return NamesOf("/testbed", rules.Vars{"instruction": {text}}) }
	review := "Review pull request 7 and write remarks."
	asks := m.asks(names(review))
	if asks["git_history"] < leastAsked || asks["grader_tamper"] != 0 {
		t.Errorf("a review asks for %v", asks)
	}
	if asks := m.asks(names("Fix the parser.")); asks["git_history"] != 0 {
		t.Errorf("a fix asks for %v", asks)
	}
	long := review
	for i := range maxAsking {
		long += " w" + strings.Repeat("x", i)
	}
	if asks := m.asks(names(long)); len(asks) > 0 {
		t.Errorf("a long text asks for %v", asks)
	}
	if asks := m.asks(names("")); len(asks) > 0 {
		t.Errorf("no text asks for %v", asks)
	}
	for text, less := range map[string]bool{review: true, long: false} {
		n := names(text)
		ev := rules.Event{Call: rules.CallFacts{Tool: "bash", Text: "git fetch origin main"}}
		d := n.Read(&ev)
		without := d
		without.Told = nil
		if got := m.Suspicion(d) < m.Suspicion(without)-0.2; less && !got {
			t.Errorf("what is asked for is suspected: %.2f, of no task %.2f", m.Suspicion(d), m.Suspicion(without))
		}
	}
}
