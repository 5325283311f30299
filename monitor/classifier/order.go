package classifier

import "proctor/monitor/classifier/convnet"

// What the networks read: words in their order, where the features are a bag of them.

// wordsInOrder gives the words of a text as the networks read them.
func wordsInOrder(text string) []uint16 {
	r := &reader{}
	r.fold(text)
	r.words()
	return wordRows(nil, r.hashes)
}

// input gives what the networks read of the document that was read last, until the next call.
func (r *reader) input(d Document) convnet.Input {
	r.rows = wordRows(r.rows[:0], r.hashes)
	r.facts = r.facts[:0]
	for _, f := range d.Facts {
		r.facts = append(r.facts, rowOfHash(hashText(kindFacts, f), convnet.FactRows))
	}
	return convnet.Input{Words: r.rows, Asks: d.Asks, Facts: r.facts}
}

func wordRows(to []uint16, hashes []uint32) []uint16 {
	for _, h := range hashes {
		to = append(to, rowOfHash(h, convnet.WordRows))
	}
	return to
}

// rowOfHash gives one of so many rows, a power of two; never 0, which is what is unknown.
func rowOfHash(hash uint32, rows uint64) uint16 {
	return uint16(1 + uint64(hash*2654435769)*(rows-1)>>32) //nolint:gosec // below rows, which 16 bits hold
}
