package convnet

import (
	"math"
	"math/rand/v2"
)

// table is rows of numbers in training, of which a step touches few.
type table struct {
	width          int
	weights        []float32
	slopes         []float32
	one, two       []float32 // see moment
	touched        []uint16  // in this step
	isTouched, met []bool    // in this step; ever
}

func newTable(rows, width int) table {
	n := rows * width
	return table{width: width, weights: make([]float32, n), slopes: make([]float32, n), one: make([]float32, n), two: make([]float32, n),
		isTouched: make([]bool, rows), met: make([]bool, rows)}
}

func (t *table) scatter(random *rand.Rand, width float64) {
	for i := range t.weights {
		t.weights[i] = float32(random.NormFloat64() * width)
	}
}

func (t *table) row(at uint16) []float32 { return t.weights[int(at)*t.width : (int(at)+1)*t.width] }

// slope gives a row's slopes, to be added to.
func (t *table) slope(at uint16) []float32 {
	t.touch(at)
	return t.slopes[int(at)*t.width : (int(at)+1)*t.width]
}

func (t *table) touch(at uint16) {
	if !t.isTouched[at] {
		t.isTouched[at], t.met[at] = true, true
		t.touched = append(t.touched, at)
	}
}

// step moves what was touched.
func (t *table) step(to moment) {
	for _, at := range t.touched {
		from, end := int(at)*t.width, (int(at)+1)*t.width
		to.move(t.weights[from:end], t.slopes[from:end], t.one[from:end], t.two[from:end])
		t.isTouched[at] = false
	}
	t.touched = t.touched[:0]
}

// small rounds a table to steps of one byte. Rows that were never met are as the unknown one.
func (t *table) small() vectors {
	most := float32(0)
	for at, met := range t.met {
		if met {
			for _, w := range t.row(uint16(at)) { //nolint:gosec // rows are below 1 << 14
				most = max(most, w, -w)
			}
		}
	}
	out := vectors{step: [1]float32{max(most, 1e-6) / 127}, values: make([]int8, len(t.weights))}
	for at, met := range t.met {
		from := t.row(unknown)
		if met {
			from = t.row(uint16(at)) //nolint:gosec // as above
		} else if !t.met[unknown] {
			continue
		}
		for i, w := range from {
			out.values[at*t.width+i] = int8(math.Round(float64(w / out.step[0])))
		}
	}
	return out
}

// moment is a step by Adam (Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015): its rate, and how
// much of the moments has come together.
type moment struct {
	rate     float32
	one, two float64
}

// Adam's constants, as its authors propose them.
const (
	adamOne   = 0.9
	adamTwo   = 0.999
	adamLeast = 1e-8
)

// move moves weights against their slopes, which it forgets.
func (m moment) move(weights, slopes, one, two []float32) {
	a, b := float32(1/m.one), float32(1/m.two)
	for i, g := range slopes {
		one[i] = adamOne*one[i] + (1-adamOne)*g
		two[i] = adamTwo*two[i] + (1-adamTwo)*g*g
		weights[i] -= m.rate * one[i] * a / (float32(math.Sqrt(float64(two[i]*b))) + adamLeast)
		slopes[i] = 0
	}
}
