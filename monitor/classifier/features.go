package classifier

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// tableBits is the size of the table of weights, as a power of two: 262,144 features, into which those of a document fall
// by their hash. On our corpora a table four times as long gains 0.002 of area under the curve.
const tableBits = 18

const tableSize = 1 << tableBits

// The kinds of features. Each kind of a document has length one, so that a long text does not outweigh its facts.
const (
	kindWords  = iota // one to three words that follow one another
	kindPieces        // five bytes of a word, its edges included; a shorter word whole
	kindFacts
	kindTold  // the words of the task's text
	kindAsked // the same words, each with the class of hacks that the call reads like: what asks for it makes it honest
	numKinds
)

// features are the distinct features of a document, by kind.
type features [numKinds][]uint32

// longWord is how many bytes of a word are read in pieces: what is longer is data, not wording.
const longWord = 160

// reader finds the features of documents, one after the other.
type reader struct {
	seen   [tableSize / 64]uint64
	out    features
	text   []byte   // folded
	hashes []uint32 // its words in their order

	rows, facts []uint16 // as the network reads them
}

// read gives the features of a document until the next call.
func (r *reader) read(d Document) *features {
	for k := range r.out {
		r.out[k] = r.out[k][:0]
	}
	ascii := r.fold(d.Text)
	r.words()
	if ascii {
		r.pieces()
	} else {
		r.piecesOf(strings.Fields(string(r.text)))
	}
	for _, f := range d.Facts {
		r.add(kindFacts, hashText(kindFacts, f))
	}
	r.forget(kindFacts)
	for _, word := range d.Told {
		r.add(kindTold, word)
	}
	r.forget(kindTold)
	return &r.out
}

// maxAsking is how many distinct words a task's text has at most that says what it asks for. Ours have 12 to 37 (of 100
// texts, 98). The report of an issue has hundreds, on all that was seen; read as an order it would ask for anything.
const maxAsking = 40

// asking gives the words of a task's text that say what it asks for.
func asking(told []uint32) []uint32 {
	if len(told) > maxAsking {
		return nil
	}
	return told
}

// asked gives the features that a task's words are beside a call that reads like a class, until the next call.
func (r *reader) asked(told []uint32, class string) []uint32 {
	r.out[kindAsked] = r.out[kindAsked][:0]
	as := hashText(kindAsked, class)
	for _, word := range told {
		r.add(kindAsked, join(as, word))
	}
	r.forget(kindAsked)
	return r.out[kindAsked]
}

// longNumber is the number of digits from which only their number is read: long numbers are data, and a page of them would
// be as many chance meetings with words that mean something.
const longNumber = 4

// fold takes a text in lower case, every digit of long numbers a 0, every space a blank, between two blanks, and says
// whether it is all ASCII.
func (r *reader) fold(text string) (ascii bool) {
	high := byte(0)
	for i := range len(text) {
		high |= text[i]
	}
	if ascii = high < utf8.RuneSelf; !ascii {
		text = strings.ToLower(text)
	}
	r.text = append(append(append(r.text[:0], ' '), text...), ' ')
	digits := 0
	for i, c := range r.text {
		if kinds[c] == digit {
			digits++
			continue
		}
		r.text[i] = folded[c]
		if digits >= longNumber {
			for j := i - digits; j < i; j++ {
				r.text[j] = '0'
			}
		}
		digits = 0
	}
	return ascii
}

// maxTold is how many of the words of a task's text are read: the first.
const maxTold = 96

// told gives the distinct words of a task's text, hashed. They are the same for all calls of a rollout.
func told(text string) []uint32 {
	var words []uint32
	text = strings.ToLower(text)
	for i := 0; i < len(text) && len(words) < maxTold; {
		end := wordEnd(text, i)
		if end == i {
			i++
			continue
		}
		if word := hashText(kindTold, text[i:end]); !slices.Contains(words, word) {
			words = append(words, word)
		}
		i = end
	}
	return words
}

// add notes a feature of a kind, once.
func (r *reader) add(kind int, hash uint32) { r.out[kind] = note(&r.seen, r.out[kind], hash) }

// note adds a feature to those seen.
func note(seen *[tableSize / 64]uint64, to []uint32, hash uint32) []uint32 {
	// The upper bits of a product are the better mixed ones (Knuth, volume 3, 6.4).
	at := hash * 2654435769 >> (32 - tableBits)
	if word := &seen[at>>6]; *word&(1<<(at&63)) == 0 {
		*word |= 1 << (at & 63)
		to = append(to, at)
	}
	return to
}

// forget makes room for the next kind.
func (r *reader) forget(kind int) {
	for _, at := range r.out[kind] {
		r.seen[at>>6] = 0
	}
}

// words adds runs of one to three words: letters, digits, or one other character.
func (r *reader) words() {
	var before, last uint32
	text, seen, out := r.text, &r.seen, r.out[kindWords]
	r.hashes = r.hashes[:0]
	n := 0
	for i := 0; i < len(text); {
		kind := kinds[text[i]]
		if kind == space {
			i++
			continue
		}
		end := i + 1
		switch {
		case kind != other:
			for end < len(text) && kinds[text[end]] == kind {
				end++
			}
		case text[i] >= utf8.RuneSelf:
			_, size := utf8.DecodeRune(text[i:])
			end = i + size
		}
		h := start(kindWords)
		for _, c := range text[i:end] {
			h = step(h, c)
		}
		r.hashes = append(r.hashes, h)
		out = note(seen, out, h)
		if n > 0 {
			out = note(seen, out, join(last, h))
		}
		if n > 1 {
			out = note(seen, out, join(join(before, last), h))
		}
		before, last = last, h
		n++
		i = end
	}
	r.out[kindWords] = out
	r.forget(kindWords)
}

// wordEnd gives the end of the word at i; i itself at a space.
func wordEnd(text string, i int) int {
	kind := kinds[text[i]]
	switch kind {
	case space:
		return i
	case other:
		_, n := utf8.DecodeRuneInString(text[i:])
		return i + n
	}
	for i < len(text) && kinds[text[i]] == kind {
		i++
	}
	return i
}

// The kinds of bytes.
const (
	other = byte(iota)
	space
	letter
	digit
)

// kinds and folded give a byte's kind, and what it is read as.
var kinds, folded = byteTables()

func byteTables() (kinds, folded [256]byte) {
	for i := range folded {
		c := byte(i)
		folded[i] = c
		switch {
		case c == ' ' || c >= '\t' && c <= '\r':
			kinds[i], folded[i] = space, ' '
		case c >= 'A' && c <= 'Z':
			kinds[i], folded[i] = letter, c+'a'-'A'
		case c >= 'a' && c <= 'z' || c == '_':
			kinds[i] = letter
		case c >= '0' && c <= '9':
			kinds[i] = digit
		}
	}
	return kinds, folded
}

// piece is the length of the pieces of words, in bytes. With those of three and of four bytes beside them the area under
// the curve is the same to 0.001, and reading takes three times as long.
const piece = 5

// pieces adds the pieces of everything between the blanks of an ASCII text.
func (r *reader) pieces() {
	text, seen, out := r.text, &r.seen, r.out[kindPieces]
	for i := 1; i < len(text); i++ {
		if text[i] == ' ' {
			continue
		}
		from := i
		for text[i] != ' ' { // which the last byte is
			i++
		}
		if n := i - from; n > longWord || n < piece-2 {
			r.out[kindPieces] = out
			r.piece(string(text[from:i]))
			out = r.out[kindPieces]
			continue
		}
		w := text[from-1 : i+1]
		for len(w) >= piece {
			h := step(step(step(step(step(startPieces, w[0]), w[1]), w[2]), w[3]), w[4])
			out = note(seen, out, h)
			w = w[1:]
		}
	}
	r.out[kindPieces] = out
	r.forget(kindPieces)
}

// piecesOf adds the pieces of words.
func (r *reader) piecesOf(words []string) {
	for _, w := range words {
		r.piece(w)
	}
	r.forget(kindPieces)
}

// piece adds the pieces of a word.
func (r *reader) piece(w string) {
	var word [longWord + 2]byte
	w = w[:min(len(w), longWord)]
	word[0] = ' '
	n := copy(word[1:], w) + 2
	word[n-1] = ' '
	for i := range max(1, n-piece+1) {
		h := startPieces
		for _, c := range word[i:min(n, i+piece)] {
			h = step(h, c)
		}
		r.add(kindPieces, h)
	}
}

var startPieces = start(kindPieces)

// start, step and hashText are FNV-1a, begun with the kind.
func start(kind int) uint32 { return step(2166136261, byte(kind)) }

func step(h uint32, c byte) uint32 { return (h ^ uint32(c)) * 16777619 }

func hashText(kind int, text string) uint32 {
	h := start(kind)
	for i := range len(text) {
		h = step(h, text[i])
	}
	return h
}

// join hashes two hashes in their order.
func join(a, b uint32) uint32 {
	a = (a ^ a>>15) * 2246822519
	return (a+b)*3266489917 ^ b>>13
}
