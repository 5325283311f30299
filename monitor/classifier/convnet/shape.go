package convnet

// The network's sizes, found by leaving out one fifth of our corpora after the other: twice the dimensions or filters
// rank a hack above an honest call no more often (0.1 % of pairs), and without the facts, or without filters, the gain over
// the bag of words is a third of it.
const (
	WordRows = 1 << 14 // rows of vectors of words, into which these fall by their hash
	FactRows = 1 << 13

	dim     = 32 // of a vector
	filters = 32 // of each width
	hidden  = 96

	pooled = 2 * filters // of the call: filters of two words and of three
	inputs = pooled + dim + filters + dim
)

// unknown is the row of words that training has not seen.
const unknown = 0

// Bounds of an input. What is beyond is not read.
const (
	maxWords = 2800 // of a call: what is read of it has no more bytes
	maxAsks  = 48
	maxFacts = 64
)

// Input is what a network reads: rows of words in their order, and of facts. All are below WordRows and FactRows.
type Input struct {
	Words []uint16 // of the call
	Asks  []uint16 // of what the task asks for; none where that is not known
	Facts []uint16
}

// cut gives the part of an input that is read.
func (in Input) cut() Input {
	return Input{Words: head(in.Words, maxWords), Asks: head(in.Asks, maxAsks), Facts: head(in.Facts, maxFacts)}
}

func head(rows []uint16, n int) []uint16 { return rows[:min(n, len(rows))] }

// layers are what lies behind the vectors. Each matrix is held row by row, one row for each of its inputs.
type layers struct {
	two                 [2 * dim * filters]float32 // filters of two words
	three               [3 * dim * filters]float32
	asks                [3 * dim * filters]float32 // filters of three words of what is asked for
	twoB, threeB, asksB [filters]float32
	gated               [filters * dim]float32 // of what is asked for
	gate                [pooled * dim]float32  // of the call
	in                  [inputs * hidden]float32
	inB                 [hidden]float32
	out                 [hidden]float32
	outB                [1]float32
}

// parts gives all of a network's layers, in the order of a file.
func (l *layers) parts() [][]float32 {
	return [][]float32{l.two[:], l.three[:], l.asks[:], l.twoB[:], l.threeB[:], l.asksB[:], l.gated[:], l.gate[:], l.in[:], l.inB[:], l.out[:], l.outB[:]}
}
