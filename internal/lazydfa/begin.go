package lazydfa

import "strings"

// Where a match begins, only package regexp says, which takes a hundred times as long a byte. But before most of a long text
// no match begins, and the automaton can tell: where its state is that of a search that starts there, nothing from before
// can still become a match.

// findText is the length in bytes of a text that is worth asking where to start.
const findText = 256

// Begin gives the start of a line of text before which no match begins: what package regexp finds from there on is what
// it finds in the whole. 0 where nothing better is known.
func (d *DFA) Begin(text string) int {
	d.Prepare()
	if d.prog == nil || d.anchored || d.edge || len(text) < findText {
		return 0
	}
	w := walk{d: d, text: text, cache: d.live.Load()}
	fresh, ok := d.fresh(w.cache, d.classes.kinds[d.classes.ascii['\n']])
	if !ok {
		return 0
	}
	w.table = *w.cache.table.Load()
	begin := 0
	l := lane{s: w.cache.start}
	for l.i < len(text) {
		l.end = len(text)
		if i := strings.IndexByte(text[l.i:], '\n'); i >= 0 {
			l.end = l.i + i + 1
		}
		if matched, ok := w.line(&l); matched || !ok {
			return begin
		}
		if l.s == fresh {
			begin = l.end
		}
	}
	return begin
}

// line walks a lane to its end.
func (w *walk) line(l *lane) (matched, ok bool) {
	for {
		l.i, l.s = w.d.known(w.table, w.text[:l.end], l.i, l.s)
		if l.i == l.end {
			return false, true
		}
		if matched, ok = w.step(l); matched || !ok {
			return matched, ok
		}
	}
}
