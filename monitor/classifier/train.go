package classifier

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"proctor/monitor/classifier/convnet"
)

// Sample is a labelled call.
type Sample struct {
	Document
	Hack   bool
	Class  string  // of a hack, or of those that an honest call could be taken for; "" where that is not known
	Weight float64 // how much it counts; 0 is 1
}

// Settings of training, found by leaving out one file of our corpora after the other.
const (
	passes      = 24
	rate        = 0.1
	decay       = 2e-4
	quarterStep = 32 // steps of a weight in one unit of log-odds
)

// row is a sample's features, and how much each counts.
type row struct {
	at     []uint32
	value  []float32
	yes    bool
	weight float64
}

// rowOf reads a sample. shift drops the lower bits of features.
func rowOf(r *reader, s *Sample, shift uint) row {
	out := row{yes: s.Hack, weight: cmp.Or(s.Weight, 1)}
	for k, kind := range r.read(s.Document) {
		out.add(k, kind, shift)
	}
	return out
}

// add adds the features of a kind.
func (w *row) add(kind int, features []uint32, shift uint) {
	v := float32(scale(kind, len(features)))
	for _, at := range features {
		w.at, w.value = append(w.at, at>>shift), append(w.value, v)
	}
}

// Train makes a model. The same samples in the same order give the same model.
func Train(samples []Sample, files map[string]FileRow) *Model {
	m := &Model{Header: Header{Step: 1. / quarterStep, Files: files, Rows: len(samples)}, classes: map[string][]int8{}}
	m.learnClasses(samples)
	r := &reader{}
	var rows []row
	for i := range samples {
		s := &samples[i]
		x := rowOf(r, s, 0)
		if words := asking(s.Told); len(words) > 0 {
			class := s.Class
			if class == "" {
				class = m.Class(s.Document)
			}
			x.add(kindAsked, r.asked(words, class), 0)
		}
		rows = append(rows, x)
	}
	weights, bias := fit(rows, tableSize)
	m.weights, m.Header.Bias = m.steps(weights), bias
	m.nets = trainNets(samples)
	return m
}

// netEveryday is how many times as much as for the bag of words rows of little weight count for the networks.
const netEveryday = 12

// trainNets makes the networks, side by side. Each begins elsewhere, and errs elsewhere.
func trainNets(samples []Sample) []*convnet.Net {
	r := &reader{}
	var rows []convnet.Row
	for i := range samples {
		s := &samples[i]
		r.read(s.Document)
		in := r.input(s.Document)
		in.Words, in.Facts = slices.Clone(in.Words), slices.Clone(in.Facts)
		rows = append(rows, convnet.Row{Input: in, Yes: s.Hack, Weight: float32(min(1, netEveryday*cmp.Or(s.Weight, 1)))})
	}
	nets := make([]*convnet.Net, numNets)
	var all sync.WaitGroup
	for i := range nets {
		all.Go(func() { nets[i] = convnet.Train(rows, uint64(i)) })
	}
	all.Wait()
	return nets
}

// learnClasses finds what hacks of each class read like.
func (m *Model) learnClasses(samples []Sample) {
	r := &reader{}
	var hacks []row
	var of []string
	for i := range samples {
		if s := &samples[i]; s.Hack {
			m.Header.Hacks++
			hacks, of = append(hacks, rowOf(r, s, tableBits-classBits)), append(of, s.Class)
		}
	}
	m.Header.Classes = slices.Compact(slices.Sorted(slices.Values(of)))
	for _, class := range m.Header.Classes {
		for i := range hacks {
			hacks[i].yes = of[i] == class
		}
		weights, bias := fit(hacks, 1<<classBits)
		m.classes[class], m.Header.Offsets = m.steps(weights), append(m.Header.Offsets, bias)
	}
}

// steps rounds weights.
func (m *Model) steps(weights []float32) []int8 {
	out := make([]int8, len(weights))
	for i, w := range weights {
		out[i] = int8(max(-127, min(127, math.Round(float64(w/m.Header.Step)))))
	}
	return out
}

// fit finds the weights of a logistic regression by steps whose size follows each weight's own past (Duchi, Hazan and
// Singer, "Adaptive subgradient methods", JMLR 12, 2011).
func fit(rows []row, size int) (weights []float32, bias float32) {
	weights = make([]float32, size)
	past := make([]float32, size)
	var pastBias float32
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same every time, on purpose
	for range passes {
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, i := range order {
			x := &rows[i]
			sum := bias
			for j, at := range x.at {
				sum += weights[at] * x.value[j]
			}
			want := 0.0
			if x.yes {
				want = 1
			}
			g := float32((1/(1+math.Exp(-float64(sum))) - want) * x.weight)
			for j, at := range x.at {
				slope := g*x.value[j] + decay*weights[at]
				past[at] += slope * slope
				weights[at] -= rate * slope / (1e-4 + sqrt(past[at]))
			}
			pastBias += g * g
			bias -= rate * g / (1e-4 + sqrt(pastBias))
		}
	}
	return weights, bias
}

func sqrt(x float32) float32 { return float32(math.Sqrt(float64(x))) }
