package rules

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// met reads a formula plainly: what holds is held against.
func (n *need) met(found bits) bool {
	switch {
	case n == nil:
		return true
	case n.subs == nil:
		return found.has(n.id)
	case n.all:
		return !slices.ContainsFunc(n.subs, func(s *need) bool { return !s.met(found) })
	}
	return slices.ContainsFunc(n.subs, func(s *need) bool { return s.met(found) })
}

// A packed formula says what the formula read plainly says, for whatever literals are found.
func TestPackedNeedsAgree(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 3))
		n := randomNeed(rng, 3)
		n.pack()
		for range 20 {
			var found bits
			for range rng.IntN(40) {
				found = found.with(rng.IntN(200), 4)
			}
			if got, want := n.holds(found), n.met(found); got != want {
				t.Fatalf("seed %d: packed %v, plain %v", seed, got, want)
			}
		}
	}
	var none *need
	if !none.holds(nil) {
		t.Error("who needs nothing is met")
	}
}

// A group is possible where one of its values is, a value that needs nothing included.
func TestGroupIsPossible(t *testing.T) {
	leaf := func(id int) *need { return &need{id: id} }
	with := func(ids ...int) (b bits) {
		for _, id := range ids {
			b = b.with(id, 2)
		}
		return b
	}
	for name, tc := range map[string]struct {
		needs []*need
		found bits
		want  bool
	}{
		"no values":         {nil, with(1), false},
		"nothing found":     {[]*need{leaf(1), leaf(2)}, nil, false},
		"another found":     {[]*need{leaf(1), leaf(70)}, with(3), false},
		"one found":         {[]*need{leaf(1), leaf(70)}, with(70), true},
		"one needs nothing": {[]*need{leaf(1), nil}, nil, true},
	} {
		g := group{needs: tc.needs}
		g.seal()
		if got := g.possible(tc.found); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func randomNeed(rng *rand.Rand, depth int) *need {
	if depth == 0 || rng.IntN(3) == 0 {
		return &need{id: rng.IntN(200)}
	}
	n := &need{all: rng.IntN(2) == 0}
	for range 1 + rng.IntN(8) {
		n.subs = append(n.subs, randomNeed(rng, depth-1))
	}
	return n
}

// A literal is in a text where the text in ASCII lower case holds it, wherever the byte that is looked for first stands.
func TestLiteralIsIn(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	alphabet := []string{"a", "A", "e", "Q", "q", "-", " ", "j", "J", "1", "é"}
	random := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString(alphabet[r.IntN(len(alphabet))])
		}
		return b.String()
	}
	in := 0
	for range 20000 {
		raw := random(1 + r.IntN(4))
		text := random(r.IntN(12))
		l := literal{text: lowerASCII(raw), raw: raw, fold: r.IntN(4) > 0}
		want := strings.Contains(text, raw)
		if l.fold {
			want = strings.Contains(lowerASCII(text), l.text)
		}
		if got := l.in(text); got != want {
			t.Fatalf("%+v in %q: %t", l, text, got)
		}
		if want {
			in++
		}
	}
	if in < 1000 {
		t.Errorf("only %d literals are in their texts", in)
	}
}
