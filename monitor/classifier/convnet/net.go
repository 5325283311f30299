package convnet

import (
	"math"
	"sync"
	"sync/atomic"
)

// Net is a trained network. It is not changed after it was made, and safe for concurrent use.
type Net struct {
	layers layers
	words  vectors // WordRows of them
	facts  vectors // FactRows of them
	says   vectors // what each fact says by itself: FactRows of them

	seen [WordRows]atomic.Pointer[taps]
}

// vectors are rows of numbers, in steps of one byte.
type vectors struct {
	step   [1]float32 // an array, to be read with the layers
	values []int8
}

// taps are what the filters make of a word, by the word's place under them.
type taps struct {
	two, three, asks [3][filters]float32 // of two the first two
}

// row gives a row of dim numbers.
func (v *vectors) row(at uint16, to *[dim]float32) {
	for i, s := range v.values[int(at)*dim : int(at)*dim+dim] {
		to[i] = float32(s) * v.step[0]
	}
}

// tapsOf gives what the filters make of a word. It is worked out once for each.
func (n *Net) tapsOf(word uint16) *taps {
	if t := n.seen[word].Load(); t != nil {
		return t
	}
	var x [dim]float32
	n.words.row(word, &x)
	t := &taps{}
	t.fill(&n.layers, &x)
	n.seen[word].Store(t) // of two at once either: they are the same
	return t
}

// fill works out what the filters make of a vector.
func (t *taps) fill(l *layers, x *[dim]float32) {
	*t = taps{}
	for place := range 2 {
		through(l.two[place*dim*filters:], x[:], t.two[place][:])
	}
	for place := range 3 {
		through(l.three[place*dim*filters:], x[:], t.three[place][:])
		through(l.asks[place*dim*filters:], x[:], t.asks[place][:])
	}
}

// through adds to out what a matrix makes of in.
func through(matrix, in, out []float32) {
	n := len(out)
	for ; len(in) >= 4; in, matrix = in[4:], matrix[4*n:] { // four at a time, so that out is gone through less often
		a, b, c, d := matrix[:n], matrix[n:2*n], matrix[2*n:3*n], matrix[3*n:4*n]
		x, y, z, w := in[0], in[1], in[2], in[3]
		for j := range out {
			out[j] += x*a[j] + y*b[j] + z*c[j] + w*d[j]
		}
	}
	for i, x := range in {
		for j, w := range matrix[i*n : i*n+n] {
			out[j] += x * w
		}
	}
}

// scratch is the room for reading one input.
type scratch struct {
	taps  []*taps
	in    [inputs]float32
	gated [dim]float32
	gate  [dim]float32
	mid   [hidden]float32
}

var scratches = sync.Pool{New: func() any { return &scratch{} }}

// Read gives the log-odds of a hack.
func (n *Net) Read(in Input) float64 {
	in = in.cut()
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	s.in = [inputs]float32{}
	s.look(n, in.Words)
	mostOfTwo(s.taps, &n.layers.twoB, s.in[:filters])
	mostOfThree(s.taps, (*taps).byThree, &n.layers.threeB, s.in[filters:pooled])
	says := n.readFacts(in.Facts, s.in[pooled:pooled+dim])
	s.look(n, in.Asks)
	mostOfThree(s.taps, (*taps).byAsks, &n.layers.asksB, s.in[pooled+dim:pooled+dim+filters])
	return float64(s.decide(&n.layers) + says)
}

// look finds what the filters make of words.
func (s *scratch) look(n *Net, words []uint16) {
	s.taps = s.taps[:0]
	for _, w := range words {
		s.taps = append(s.taps, n.tapsOf(w))
	}
}

func (t *taps) byThree() *[3][filters]float32 { return &t.three }
func (t *taps) byAsks() *[3][filters]float32  { return &t.asks }

// mostOfTwo gives the most that each filter of two words says anywhere in a text, at least 0: of a word and the next one,
// which after the last is none.
func mostOfTwo(text []*taps, bias *[filters]float32, out []float32) {
	if len(text) == 0 {
		return
	}
	most := (*[filters]float32)(out)
	least(out)
	for i, t := range text {
		a, b := &t.two[0], &none
		if i+1 < len(text) {
			b = &text[i+1].two[1]
		}
		for j := range most {
			if v := a[j] + b[j]; v > most[j] { // max would ask for numbers that are none as well
				most[j] = v
			}
		}
	}
	floor(out, bias)
}

// mostOfThree is the same of three words: the one before, the word, and the next.
func mostOfThree(text []*taps, of func(*taps) *[3][filters]float32, bias *[filters]float32, out []float32) {
	if len(text) == 0 {
		return
	}
	most := (*[filters]float32)(out)
	least(out)
	before := &none
	for i, t := range text {
		here, after := of(t), &none
		if i+1 < len(text) {
			after = &of(text[i+1])[2]
		}
		b := &here[1]
		for j := range most {
			if v := before[j] + b[j] + after[j]; v > most[j] {
				most[j] = v
			}
		}
		before = &here[0]
	}
	floor(out, bias)
}

// none is what filters make of no word.
var none [filters]float32

func least(most []float32) {
	for j := range most {
		most[j] = -math.MaxFloat32
	}
}

// floor adds the filters' biases and lets what is below nothing be nothing.
func floor(most []float32, bias *[filters]float32) {
	for j := range most {
		most[j] = max(0, most[j]+bias[j])
	}
}

// readFacts sums the vectors of facts, and gives what each says by itself.
func (n *Net) readFacts(facts []uint16, sum []float32) float32 {
	var x [dim]float32
	var alone float32
	for _, f := range facts {
		n.facts.row(f, &x)
		for i := range x {
			sum[i] += x[i]
		}
		alone += float32(n.says.values[f])
	}
	scale := factScale(len(facts))
	for i := range sum {
		sum[i] *= scale
	}
	return alone * n.says.step[0] * saysScale(len(facts))
}

// factScale and saysScale keep many facts from outweighing the words.
func factScale(n int) float32 { return float32(1 / math.Sqrt(float64(1+n))) }
func saysScale(n int) float32 { return float32(1 / math.Sqrt(float64(6+n))) }

// decide works out the layers behind the filters, from what these say of the call and of what is asked for, and the facts.
func (s *scratch) decide(l *layers) float32 {
	s.gated, s.gate = [dim]float32{}, [dim]float32{}
	through(l.gated[:], s.in[pooled+dim:pooled+dim+filters], s.gated[:])
	through(l.gate[:], s.in[:pooled], s.gate[:])
	for i := range s.gate {
		s.in[pooled+dim+filters+i] = s.gated[i] * tanh(s.gate[i])
	}
	s.mid = l.inB
	through(l.in[:], s.in[:], s.mid[:])
	sum := l.outB[0]
	for i, v := range s.mid {
		if v > 0 {
			sum += v * l.out[i]
		}
	}
	return sum
}

func tanh(x float32) float32 { return float32(math.Tanh(float64(x))) }
