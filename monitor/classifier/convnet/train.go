package convnet

import (
	"math"
	"math/rand/v2"
)

// Row is a labelled input. Weight is how much it counts, 1 for a row as any other.
type Row struct {
	Input
	Yes    bool
	Weight float32
}

// Settings of training, found like the network's sizes.
const (
	epochs    = 5
	batchSize = 64
	rate      = 2e-3 // of the first step; it falls along half a cosine to
	rateLeft  = 0.05 // of that
	decay     = 2e-5 // of a layer's weights, a step

	// What is left out at random, so that nothing rests on one word: shares of words, of words asked for, of whole
	// texts of these, of facts, and of what the filters and the hidden layer say.
	dropWords  = 0.1
	dropAsks   = 0.2
	dropAsked  = 0.15
	dropFacts  = 0.15
	dropInputs = 0.2
	dropHidden = 0.3
)

// Train makes a network. The same rows in the same order and the same seed give the same network.
func Train(rows []Row, seed uint64) *Net {
	l := newLearner(seed)
	steps := (len(rows) + batchSize - 1) / batchSize
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	for epoch := range epochs {
		l.random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for step := range steps {
			for _, i := range order[step*batchSize : min(len(order), (step+1)*batchSize)] {
				l.learn(&rows[i])
			}
			done := float64(epoch*steps+step) / float64(epochs*steps)
			l.step(rate * float32(rateLeft+(1-rateLeft)*(1+math.Cos(math.Pi*done))/2))
		}
	}
	return l.net()
}

// learner is a network in training.
type learner struct {
	random *rand.Rand
	steps  int

	layers, slopes layers
	adam           [2]layers // see moments
	words, facts   table
	says           table

	taps  [WordRows]*taps // of this step's words
	spare []*taps
	pass  pass
}

func newLearner(seed uint64) *learner {
	l := &learner{random: rand.New(rand.NewPCG(seed, 0)), //nolint:gosec // the same every time, on purpose
		words: newTable(WordRows, dim), facts: newTable(FactRows, dim), says: newTable(FactRows, 1)}
	l.words.scatter(l.random, 0.1)
	l.facts.scatter(l.random, 0.1)
	w := &l.layers
	for _, m := range []struct {
		weights []float32
		inputs  float64
	}{{w.two[:], 2 * dim}, {w.three[:], 3 * dim}, {w.asks[:], 3 * dim}, {w.gated[:], filters}, {w.gate[:], pooled}, {w.in[:], inputs}, {w.out[:], 100}} {
		for i := range m.weights {
			m.weights[i] = float32(l.random.NormFloat64() / math.Sqrt(m.inputs))
		}
	}
	return l
}

// dropped gives rows with a share of them unknown.
func (l *learner) dropped(to, rows []uint16, share float32) []uint16 {
	to = to[:0]
	for _, row := range rows {
		if l.random.Float32() < share {
			row = unknown
		}
		to = append(to, row)
	}
	return to
}

// tapsOf gives what the filters make of a word in this step.
func (l *learner) tapsOf(word uint16) *taps {
	t := l.taps[word]
	if t == nil {
		if n := len(l.spare); n > 0 {
			t, l.spare = l.spare[n-1], l.spare[:n-1]
		} else {
			t = &taps{}
		}
		t.fill(&l.layers, (*[dim]float32)(l.words.row(word)))
		l.taps[word] = t
		l.words.touch(word)
	}
	return t
}

// step moves all weights, and forgets the slopes.
func (l *learner) step(rate float32) {
	l.steps++
	to := moment{rate: rate, one: 1 - math.Pow(adamOne, float64(l.steps)), two: 1 - math.Pow(adamTwo, float64(l.steps))}
	one, two, slopes := l.adam[0].parts(), l.adam[1].parts(), l.slopes.parts()
	for i, weights := range l.layers.parts() {
		for j, w := range weights {
			slopes[i][j] += decay * w
		}
		to.move(weights, slopes[i], one[i], two[i])
	}
	for _, word := range l.words.touched {
		l.spare, l.taps[word] = append(l.spare, l.taps[word]), nil
	}
	for _, t := range []*table{&l.words, &l.facts, &l.says} {
		t.step(to)
	}
}

// net gives the network as far as it has learned.
func (l *learner) net() *Net {
	return &Net{layers: l.layers, words: l.words.small(), facts: l.facts.small(), says: l.says.small()}
}
