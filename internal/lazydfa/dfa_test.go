package lazydfa

import (
	"math/rand/v2"
	"regexp"
	"slices"
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
	if len(text) < laneText || d.prog == nil || d.anchored {
		return
	}
	if got, ok := d.inOne(text); ok && got != want {
		t.Errorf("%q on %q in one lane: %t, regexp says %t", re, text, got, want)
	}
}

// What regexp finds from where a match can begin is what it finds in the whole.
func TestBegin(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	later := 0
	for range 600 {
		expr := lazydfatest.RandomExpr(r, 1+r.IntN(4))
		if r.IntN(3) == 0 {
			expr = []string{"(?m)^", `\B`, `(?:\A|x)`, `^`, `\b`, `(?s)a.*`}[r.IntN(6)] + expr + []string{"$", `\z`, `\b`, "(?m:$)", ""}[r.IntN(5)]
		}
		re := regexp.MustCompile(expr)
		d := New(expr)
		for range 10 {
			var b strings.Builder
			for n := findText + r.IntN(findText); b.Len() < n; {
				b.WriteString([]string{"then", "ux v", "\n", "z\n", "\xff\n", lazydfatest.RandomText(r, 6)}[r.IntN(6)])
			}
			text := b.String()
			begin := d.Begin(text)
			if begin > 0 {
				later++
			}
			got, want := re.FindStringSubmatchIndex(text[begin:]), re.FindStringSubmatchIndex(text)
			for i := range got {
				if got[i] >= 0 {
					got[i] += begin
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%q in %q: from %d %v, want %v", expr, text, begin, got, want)
			}
		}
	}
	if later < 600 {
		t.Errorf("of 6000 texts %d are known to hold no match at their start", later)
	}
}

// Texts with bytes that are no runes, whole ones of several bytes, and the same again and again, where parts begin.
func TestLanesAgreeWithRegexp(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	read, matched := 0, 0
	for range 500 {
		expr := lazydfatest.RandomExpr(r, 1+r.IntN(5))
		switch r.IntN(4) {
		case 0: // remembers for longer than a part
			expr = lazydfatest.RandomExpr(r, 2) + []string{`(?s:.*)`, `[^\n]*`, `\b[\s\S]{5,60}\b`}[r.IntN(3)] + expr
		case 1:
			expr = []string{"(?m)^", `\B`, `(?:\A|x)`}[r.IntN(3)] + expr + []string{"$", `\z`, `\b`, "(?m:$)"}[r.IntN(4)]
		}
		re := regexp.MustCompile(expr)
		d := New(expr)
		for range 8 {
			var b strings.Builder
			for n := laneText + r.IntN(2*laneText); b.Len() < n; {
				switch r.IntN(12) {
				case 0:
					b.WriteString("\xff\u00e9\u212a\xe2\x84")
				case 1:
					b.WriteString(strings.Repeat("\u00e9", r.IntN(60)))
				default:
					b.WriteString(lazydfatest.RandomText(r, 10))
				}
			}
			text := b.String()
			sameAsRegexp(t, re, d, text)
			if d.prog == nil || !d.worthLanes(text) {
				continue
			}
			if got, ok := d.inLanes(text); ok {
				read++
				if got {
					matched++
				}
			}
		}
	}
	if read < 2500 || matched < 300 || read-matched < 300 {
		t.Errorf("lanes know %d of 4000 answers, of which %d are matches", read, matched)
	}
}

// An expression that remembers what stood anywhere before goes back to one lane.
func TestLanesAreGivenUp(t *testing.T) {
	for expr, want := range map[string]bool{`(?s)a.*b.*c`: false, `a[^\n]*b`: true} {
		d := New(expr)
		text := "an a\n" + strings.Repeat("then lines without one\n", 100)
		for range 100 {
			if matched, ok := d.Match(text); matched || !ok {
				t.Fatalf("%q: %t, %t", expr, matched, ok)
			}
		}
		if got := d.worthLanes(text); got != want {
			t.Errorf("%q: lanes %t after a hundred texts", expr, got)
		}
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
		for _, x := range []string{text, text, text + "\n" + text, "", strings.Repeat(text, laneText/(len(text)+1)+2)} {
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
	b.Run("one", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			d.inOne(text)
		}
	})
	b.Run("regexp", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			re.MatchString(text)
		}
	})
}
