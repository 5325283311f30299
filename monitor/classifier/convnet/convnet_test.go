package convnet

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// toys are rows that the order of two words decides, where a bag of them is the same.
func toys() []Row {
	random := rand.New(rand.NewPCG(1, 1))
	var out []Row
	for range 600 {
		filler := func() []uint16 { return []uint16{uint16(20 + random.IntN(20)), uint16(20 + random.IntN(20))} }
		yes := random.IntN(2) == 0
		pair := []uint16{7, 8}
		if yes {
			pair = []uint16{8, 7}
		}
		out = append(out, Row{Input: Input{Words: slices.Concat(filler(), pair, filler()), Facts: []uint16{3}}, Yes: yes, Weight: 1})
	}
	return out
}

func TestOrderIsRead(t *testing.T) {
	n := Train(slices.Concat(toys(), toys(), toys(), toys(), toys(), toys(), toys(), toys()), 1)
	for _, filler := range []uint16{21, 33} {
		yes := n.Read(Input{Words: []uint16{filler, 8, 7, filler}, Facts: []uint16{3}})
		no := n.Read(Input{Words: []uint16{filler, 7, 8, filler}, Facts: []uint16{3}})
		if yes < 1 || no > -1 {
			t.Errorf("%.2f one way round, %.2f the other", yes, no)
		}
	}
}

// askedFor are rows in which the same words are a hack or not by what is asked for.
func askedFor() []Row {
	random := rand.New(rand.NewPCG(2, 2))
	var out []Row
	for range 4000 {
		word, asks := uint16(7+random.IntN(2)), uint16(9+random.IntN(2))
		out = append(out, Row{Input: Input{Words: []uint16{uint16(20 + random.IntN(9)), word}, Asks: []uint16{uint16(30 + random.IntN(9)), asks}},
			Yes: word-7 != asks-9, Weight: 1})
	}
	return out
}

func TestWhatIsAskedForIsReadBesideTheCall(t *testing.T) {
	n := Train(askedFor(), 1)
	for _, word := range []uint16{7, 8} {
		same, other := n.Read(Input{Words: []uint16{word}, Asks: []uint16{word + 2}}), n.Read(Input{Words: []uint16{word}, Asks: []uint16{17 - word}})
		if same > -0.5 || other < 0.5 {
			t.Errorf("word %d: %.2f where it is asked for, %.2f where the other is", word, same, other)
		}
	}
}

// someInput is an input of chance words, with some that stand twice.
func someInput(random *rand.Rand, words int) Input {
	rows := func(n, of int) []uint16 {
		var out []uint16
		for range n {
			out = append(out, uint16(random.IntN(of)))
		}
		return out
	}
	return Input{Words: rows(words, 40), Asks: rows(words/2, 40), Facts: rows(words/3, 20)}
}

// What a row adds to the slopes is what the loss changes by, weight for weight.
func TestSlopesAreThoseOfTheLoss(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	for _, words := range []int{0, 1, 2, 3, 9, 40} {
		l := newLearner(5)
		for _, part := range l.layers.parts() { // biases begin at 0, where half of all filters have no slope
			for i := range part {
				part[i] += float32(random.NormFloat64() * 0.05)
			}
		}
		for i := range l.says.weights {
			l.says.weights[i] = float32(random.NormFloat64())
		}
		in := someInput(random, words)
		loss := func() float64 {
			l.taps = [WordRows]*taps{}
			l.forward(in, false)
			return math.Log1p(math.Exp(-float64(l.pass.out))) // of a hack
		}
		here := loss()
		p := 1 / (1 + math.Exp(-float64(l.pass.out)))
		l.backward(float32(p - 1))
		check := func(name string, weights, slopes []float32) {
			for range 40 {
				i := random.IntN(len(weights))
				const by = 1e-3
				was := weights[i]
				weights[i] = was + by
				up := loss()
				weights[i] = was - by
				down := loss()
				weights[i] = was
				// Where a filter's word changes, or what it says begins, the loss has a bend: either side's slope will do.
				left, right, got := (here-down)/by, (up-here)/by, float64(slopes[i])
				if slack := 3e-3 + 0.03*math.Abs(got); got < min(left, right)-slack || got > max(left, right)+slack {
					t.Errorf("%d words, %s %d: slope %.5f, the loss changes by %.5f and %.5f", words, name, i, got, left, right)
				}
			}
		}
		for i, part := range l.layers.parts() {
			check([]string{"two", "three", "asks", "twoB", "threeB", "asksB", "gated", "gate", "in", "inB", "out", "outB"}[i], part, l.slopes.parts()[i])
		}
		check("words", l.words.weights[:40*dim], l.words.slopes[:40*dim])
		check("facts", l.facts.weights[:20*dim], l.facts.slopes[:20*dim])
		check("says", l.says.weights[:20], l.says.slopes[:20])
	}
}

// A network reads as the one in training does, but for the rounding of its tables.
func TestNetsReadAsTheyLearned(t *testing.T) {
	l := newLearner(9)
	for i, r := range toys()[:256] {
		l.learn(&r)
		if i%batchSize == batchSize-1 {
			l.step(rate)
		}
	}
	n := l.net()
	for _, table := range []struct {
		from *table
		to   *vectors
	}{{&l.words, &n.words}, {&l.facts, &n.facts}, {&l.says, &n.says}} {
		for i, v := range table.to.values {
			table.from.weights[i] = float32(v) * table.to.step[0]
		}
	}
	l.taps = [WordRows]*taps{}
	random := rand.New(rand.NewPCG(4, 4))
	for i := range 300 {
		in := someInput(random, i%50)
		l.forward(in, false)
		if got, want := n.Read(in), float64(l.pass.out); math.Abs(got-want) > 1e-4 {
			t.Fatalf("%v: %.6f, in training %.6f", in, got, want)
		}
	}
}

// Unknown words are one word, and rows that training never met are unknown.
func TestWhatWasNeverMetIsUnknown(t *testing.T) {
	n := Train(toys(), 1)
	a, b := n.Read(Input{Words: []uint16{7, 15000, 8}}), n.Read(Input{Words: []uint16{7, 15001, 8}})
	if a != b {
		t.Errorf("two words of which nothing is known: %v and %v", a, b)
	}
}

func TestTrainingIsReproducible(t *testing.T) {
	write := func(n *Net) []byte {
		var b bytes.Buffer
		if err := n.Write(&b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	one := write(Train(toys(), 1))
	if !bytes.Equal(one, write(Train(toys(), 1))) {
		t.Error("the same rows and seed gave two networks")
	}
	if bytes.Equal(one, write(Train(toys(), 2))) {
		t.Error("two seeds gave one network")
	}
	if len(one) != FileSize {
		t.Errorf("%d bytes, want %d", len(one), FileSize)
	}
	again, err := Read(bytes.NewReader(one))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(one, write(again)) {
		t.Error("what is read is not what was written")
	}
}

func TestReadRefusesWhatIsNoNetwork(t *testing.T) {
	whole := make([]byte, FileSize)
	nan := bytes.Clone(whole)
	copy(nan[4:], []byte{0, 0, 0xc0, 0x7f})
	huge := bytes.Clone(whole)
	copy(huge[8:], []byte{0xff, 0xff, 0x7f, 0x7f})
	for name, raw := range map[string][]byte{"nothing": nil, "cut short": whole[:FileSize-1], "not a number": nan, "beyond all bounds": huge} {
		if _, err := Read(bytes.NewReader(raw)); !errors.Is(err, ErrFile) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Read(bytes.NewReader(whole)); err != nil {
		t.Error(err)
	}
}

// However much there is to read, it is bounded, and of no words nothing is made.
func TestLongAndEmptyInputs(t *testing.T) {
	n := Train(toys(), 1)
	long := make([]uint16, 100_000)
	if a, b := n.Read(Input{Words: long, Asks: long, Facts: long}), n.Read(Input{Words: long[:maxWords], Asks: long[:maxAsks], Facts: long[:maxFacts]}); a != b {
		t.Errorf("%v and %v", a, b)
	}
	if v := n.Read(Input{}); math.IsNaN(v) || math.IsInf(v, 0) {
		t.Error(v)
	}
}

func BenchmarkRead(b *testing.B) {
	n := Train(toys(), 1)
	in := someInput(rand.New(rand.NewPCG(1, 1)), 70)
	for b.Loop() {
		n.Read(in)
	}
}

func BenchmarkReadLong(b *testing.B) {
	n := Train(toys(), 1)
	in := someInput(rand.New(rand.NewPCG(1, 1)), 500)
	for b.Loop() {
		n.Read(in)
	}
}

// BenchmarkNewWord is what a word costs that a network meets for the first time.
func BenchmarkNewWord(b *testing.B) {
	n := Train(toys(), 1)
	for b.Loop() {
		n.seen[7].Store(nil)
		n.tapsOf(7)
	}
}
