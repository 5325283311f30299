package convnet

import "math"

// pass is what one row leaves on its way forward, for the way back.
type pass struct {
	words, asks, facts    []uint16 // as read, some of them unknown
	texts                 [2][]*taps
	two, three, ask       [filters]int // where each filter said most
	in, inDrop            [inputs]float32
	gated, gate           [dim]float32
	mid, midDrop          [hidden]float32
	out                   float32
	slopeIn               [inputs]float32
	slopeMid              [hidden]float32
	slopeGated, slopeGate [dim]float32
}

// learn adds a row's slopes to those of this step.
func (l *learner) learn(row *Row) {
	l.forward(row.Input.cut(), true)
	p := 1 / (1 + math.Exp(-float64(l.pass.out)))
	if row.Yes {
		p--
	}
	l.backward(float32(p) * row.Weight / batchSize)
}

// forward reads an input; in training some of it is left out.
func (l *learner) forward(in Input, training bool) {
	p := &l.pass
	share := func(s float32) float32 {
		if !training {
			return 0
		}
		return s
	}
	asks := in.Asks
	if l.random.Float32() < share(dropAsked) {
		asks = nil
	}
	p.words, p.asks, p.facts = l.dropped(p.words, in.Words, share(dropWords)), l.dropped(p.asks, asks, share(dropAsks)), l.dropped(p.facts, in.Facts, share(dropFacts))
	p.in = [inputs]float32{}
	for i, words := range [][]uint16{p.words, p.asks} {
		p.texts[i] = p.texts[i][:0]
		for _, w := range words {
			p.texts[i] = append(p.texts[i], l.tapsOf(w))
		}
	}
	whereTwo(p.texts[0], &l.layers.twoB, p.in[:filters], &p.two)
	whereThree(p.texts[0], (*taps).byThree, &l.layers.threeB, p.in[filters:pooled], &p.three)
	whereThree(p.texts[1], (*taps).byAsks, &l.layers.asksB, p.in[pooled+dim:pooled+dim+filters], &p.ask)
	says := l.sumFacts(p.facts, p.in[pooled:pooled+dim])

	p.gated, p.gate = [dim]float32{}, [dim]float32{}
	through(l.layers.gated[:], p.in[pooled+dim:pooled+dim+filters], p.gated[:])
	through(l.layers.gate[:], p.in[:pooled], p.gate[:])
	for i := range p.gate {
		p.gate[i] = tanh(p.gate[i])
		p.in[pooled+dim+filters+i] = p.gated[i] * p.gate[i]
	}
	var seen [inputs]float32
	l.dropOut(p.inDrop[:], share(dropInputs))
	for i, d := range p.inDrop {
		seen[i] = p.in[i] * d
	}
	p.mid = l.layers.inB
	through(l.layers.in[:], seen[:], p.mid[:])
	l.dropOut(p.midDrop[:], share(dropHidden))
	p.out = l.layers.outB[0] + says
	for i, d := range p.midDrop {
		p.mid[i] = max(0, p.mid[i]) * d
		p.out += p.mid[i] * l.layers.out[i]
	}
}

// dropOut draws what is left out, and how much the rest counts for it.
func (l *learner) dropOut(kept []float32, share float32) {
	for i := range kept {
		kept[i] = 1 / (1 - share)
		if l.random.Float32() < share {
			kept[i] = 0
		}
	}
}

// sumFacts is Net.readFacts, of a network in training.
func (l *learner) sumFacts(facts []uint16, sum []float32) float32 {
	var alone float32
	for _, f := range facts {
		for i, x := range l.facts.row(f) {
			sum[i] += x
		}
		alone += l.says.row(f)[0]
	}
	for i := range sum {
		sum[i] *= factScale(len(facts))
	}
	return alone * saysScale(len(facts))
}

// whereTwo is mostOfTwo, and tells where.
func whereTwo(text []*taps, bias *[filters]float32, most []float32, where *[filters]int) {
	for j := range most {
		best := float32(math.Inf(-1))
		for i, t := range text {
			v := t.two[0][j]
			if i+1 < len(text) {
				v += text[i+1].two[1][j]
			}
			if v > best {
				best, where[j] = v, i
			}
		}
		if len(text) > 0 {
			most[j] = max(0, best+bias[j])
		}
	}
}

// whereThree is mostOfThree, and tells where.
func whereThree(text []*taps, of func(*taps) *[3][filters]float32, bias *[filters]float32, most []float32, where *[filters]int) {
	if len(text) == 0 {
		return
	}
	least(most)
	before := &none
	for i, t := range text {
		here, after := of(t), &none
		if i+1 < len(text) {
			after = &of(text[i+1])[2]
		}
		for j := range most {
			if v := before[j] + here[1][j] + after[j]; v > most[j] {
				most[j], where[j] = v, i
			}
		}
		before = &here[0]
	}
	floor(most, bias)
}

// backward adds the slopes of the loss by all weights, given that by the log-odds.
func (l *learner) backward(slope float32) {
	p, w, g := &l.pass, &l.layers, &l.slopes
	g.outB[0] += slope
	for i, v := range p.mid {
		g.out[i] += slope * v
		p.slopeMid[i] = 0
		if v > 0 {
			p.slopeMid[i] = slope * w.out[i] * p.midDrop[i]
			g.inB[i] += p.slopeMid[i]
		}
	}
	for i, d := range p.inDrop {
		p.slopeIn[i] = 0
		if d != 0 {
			p.slopeIn[i] = back(w.in[i*hidden:(i+1)*hidden], g.in[i*hidden:(i+1)*hidden], p.in[i]*d, p.slopeMid[:]) * d
		}
	}
	call, facts, ask, both := p.slopeIn[:pooled], p.slopeIn[pooled:pooled+dim], p.slopeIn[pooled+dim:pooled+dim+filters], p.slopeIn[pooled+dim+filters:]
	for i, s := range both {
		p.slopeGated[i] = s * p.gate[i]
		p.slopeGate[i] = s * p.gated[i] * (1 - p.gate[i]*p.gate[i])
	}
	for i := range ask {
		ask[i] += back(w.gated[i*dim:(i+1)*dim], g.gated[i*dim:(i+1)*dim], p.in[pooled+dim+i], p.slopeGated[:])
	}
	for i := range call {
		call[i] += back(w.gate[i*dim:(i+1)*dim], g.gate[i*dim:(i+1)*dim], p.in[i], p.slopeGate[:])
	}
	l.backFacts(slope, facts)
	l.backFilters(p.words, call[:filters], p.in[:filters], &p.two, 0, 2, w.two[:], g.two[:], &g.twoB)
	l.backFilters(p.words, call[filters:], p.in[filters:pooled], &p.three, -1, 3, w.three[:], g.three[:], &g.threeB)
	l.backFilters(p.asks, ask, p.in[pooled+dim:pooled+dim+filters], &p.ask, -1, 3, w.asks[:], g.asks[:], &g.asksB)
}

// back gives the slope by one input of a matrix, of its weights and the slopes by its outputs, and adds those by the weights.
func back(weights, slopes []float32, in float32, outs []float32) (slope float32) {
	slopes = slopes[:len(outs)]
	for j, w := range weights[:len(outs)] {
		slopes[j] += in * outs[j]
		slope += w * outs[j]
	}
	return slope
}

// backFacts adds the slopes by the vectors of facts.
func (l *learner) backFacts(slope float32, sum []float32) {
	n := len(l.pass.facts)
	for _, f := range l.pass.facts {
		l.says.slope(f)[0] += slope * saysScale(n)
		by := l.facts.slope(f)
		for i, s := range sum {
			by[i] += s * factScale(n)
		}
	}
}

// backFilters adds the slopes by filters of n words, of which the first stands at from beside where each said most.
func (l *learner) backFilters(text []uint16, slopes, most []float32, where *[filters]int, from, n int, weights, by []float32, bias *[filters]float32) {
	for j, s := range slopes {
		if most[j] <= 0 || s == 0 {
			continue
		}
		bias[j] += s
		for place := range n {
			at := where[j] + from + place
			if at < 0 || at >= len(text) {
				continue
			}
			x, dx := l.words.row(text[at]), l.words.slope(text[at])
			for i := range x {
				k := (place*dim+i)*filters + j
				by[k] += s * x[i]
				dx[i] += s * weights[k]
			}
		}
	}
}
