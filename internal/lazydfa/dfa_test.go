package lazydfa

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"testing"

	"proctor/internal/lazydfa/lazydfatest"
)

// sameAsRegexp holds the automaton of expr against package regexp on a text.
func sameAsRegexp(t *testing.T, re *regexp.Regexp, d *DFA, text string) {
	t.Helper()
	want := re.MatchString(text)
	if got, ok := d.Match(text); ok && got != want {
		t.Errorf("%q on %q: %t, regexp says %t", re, text, got, want)
	}
}

func TestDFAAgreesWithRegexp(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	known := 0
	for range 1500 {
		expr := lazydfatest.RandomExpr(r, 1+r.IntN(4))
		if r.IntN(4) == 0 {
			expr = []string{"(?m)^", "^", `\A`, `(?s)`, `\B`}[r.IntN(5)] + expr + []string{"$", `\z`, `\b`, "(?m:$)", ""}[r.IntN(5)]
		}
		re, err := regexp.Compile(expr)
		if err != nil {
			t.Fatal(err)
		}
		d := New(expr)
		for range 30 {
			text := lazydfatest.RandomText(r, 10)
			sameAsRegexp(t, re, d, text)
			if _, ok := d.Match(text); ok {
				known++
			}
		}
	}
	if known < 40000 {
		t.Errorf("the automata know %d of 45000 answers", known)
	}
}

func FuzzDFA(f *testing.F) {
	f.Add(`(?i)\bk+s\b`, "a \u212a\u017f b")
	f.Add(`(?m)^a.*b$`, "x\na\xffb\ny")
	f.Add(`\Bfoo|[^\n]{3,}\z`, "foo\n\n")
	f.Add("[\ufffd-\U00010000]x", "\xffx")
	f.Add(`(a|ab)(c|bcd)(d*)$`, "abcd\n")
	f.Add(``, "")
	f.Fuzz(func(t *testing.T, expr, text string) {
		if len(expr) > 200 {
			return
		}
		re, err := regexp.Compile(expr)
		if err != nil {
			return
		}
		d := New(expr)
		for _, x := range []string{text, text, text + "\n" + text, ""} {
			sameAsRegexp(t, re, d, x)
		}
	})
}

// A text that makes ever new states is given up in bounded memory, and the answer stays right.
func TestDFAIsBounded(t *testing.T) {
	expr := `(?:a|b)*a(?:a|b){14}c`
	re, d := regexp.MustCompile(expr), New(expr)
	r := rand.New(rand.NewPCG(7, 8))
	var b strings.Builder
	for range 1 << 15 {
		b.WriteByte("ab"[r.IntN(2)])
	}
	if _, ok := d.Match(b.String()); ok {
		t.Error("2^15 states fit")
	}
	if n := d.live.Load().bytes; n > maxStateBytes+4096 {
		t.Errorf("%d bytes of states", n)
	}
	for _, tail := range []string{"", "c"} {
		if text := b.String()[:2000] + tail; MustCompile(expr).MatchString(text) != re.MatchString(text) {
			t.Errorf("wrong answer with tail %q", tail)
		}
	}
}

func TestDFAGivesUpOnWideClasses(t *testing.T) {
	for _, expr := range []string{`\p{L}+\P{Lu}\p{Greek}[^\p{Mn}]`, strings.Repeat(`[a-z]x`, 4000)} {
		if _, ok := New(expr).Match("abc"); ok {
			re := regexp.MustCompile(expr)
			sameAsRegexp(t, re, New(expr), "aB\u03b1\u0301")
		}
	}
}

func TestDFAIsSafeForConcurrentUse(t *testing.T) {
	expr := `(?i)\b(?:note|memo)\W{0,4}(?:to\s+)?(?:\w+\s+){0,2}(?:judge|monitor)\b`
	re, d := regexp.MustCompile(expr), New(expr)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(9, uint64(w)))
			words := strings.Fields("note memo to the dear judge monitor x \u00e9 judges NOTE")
			for range 2000 {
				var text []string
				for range r.IntN(8) {
					text = append(text, words[r.IntN(len(words))])
				}
				s := strings.Join(text, " ")
				if got, ok := d.Match(s); ok && got != re.MatchString(s) {
					t.Errorf("%q: %t", s, got)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkDFA(b *testing.B) {
	expr := `(?i)\b(note|notice|message|memo|reminder)\W{0,4}(to|for)?\s*(the\s+)?(\w+\s+){0,2}(reviewer|judge|monitor|grader)\b`
	text := strings.Repeat("def split(text): # a note on what it returns\n    return text.split(',')\n", 100)
	re, d := regexp.MustCompile(expr), New(expr)
	b.Run("dfa", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			d.Match(text)
		}
	})
	b.Run("regexp", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			re.MatchString(text)
		}
	})
}
