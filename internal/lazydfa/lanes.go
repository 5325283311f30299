package lazydfa

import (
	"sync/atomic"
	"unicode/utf8"
)

// Long texts are read in lanes.
//
// Why: a step of the automaton waits for the cell that the step before it loaded, so that the processor idles for most
// of it. Four walks through one table, each through its part of the text, hide that wait from each other.
//
// How: every lane but the first starts as if nothing of the text before its part were of interest. A match that it sees
// is one; that it sees none says nothing about those that begin before its part. So when all have come through, the
// state that the first ended in is walked on into the part of the second, beside the state that the second started in,
// until both are the same: from there on the second has walked for both. That is a line, most often, for few expressions
// look further. And so on for the third and the fourth.
//
// Guarantee: the answer of the one walk. Where an expression remembers for longer ((?s:.*) does, after what stands before
// it), parts are walked twice; an automaton for which that happens again and again goes back to one lane.

const (
	lanes     = 4
	laneText  = 384 // bytes of a text that is worth them
	laneSlack = 64  // bytes to look through for where a part can begin

	// An automaton's account of what lanes cost it: a text whose parts were walked twice for more than a quarter takes
	// from it, another adds to it, up to the most that it can have.
	laneCredit, laneLoss = 64, 8
)

// lane is one walk: where it is, where it ends, in which state it began and is.
type lane struct {
	i, end   int
	start, s uint32
}

// inLanes is Match of a long text; ok is false where one lane has to say it.
func (d *DFA) inLanes(text string) (matched, ok bool) {
	cache := d.live.Load()
	w := walk{d: d, text: text, cache: cache, table: *cache.table.Load()}
	if !w.part() {
		return false, false
	}
	if matched, ok = w.all(); matched || !ok {
		return matched, ok
	}
	return w.join()
}

// worthLanes says whether the text is read in lanes.
func (d *DFA) worthLanes(text string) bool {
	return len(text) >= laneText && !d.anchored && d.credit.Load() >= 0
}

// walk is the reading of one text in lanes, in one generation of states.
type walk struct {
	d     *DFA
	text  string
	cache *stateCache
	table []uint32
	lane  [lanes]lane
}

// part gives each lane its part of the text, which begins after a byte that is a rune.
func (w *walk) part() bool {
	w.lane[0] = lane{start: w.cache.start, s: w.cache.start}
	for k := 1; k < lanes; k++ {
		at := len(w.text) * k / lanes
		for most := at + laneSlack; w.text[at-1] >= utf8.RuneSelf; at++ {
			if at == most {
				return false
			}
		}
		s, ok := w.d.fresh(w.cache, w.d.classes.kinds[w.d.classes.ascii[w.text[at-1]]])
		if !ok {
			return false
		}
		w.lane[k-1].end = at
		w.lane[k] = lane{i: at, start: s, s: s}
	}
	w.lane[lanes-1].end = len(w.text)
	w.table = *w.cache.table.Load() // the fresh states may have made it longer
	return true
}

// fresh gives the state of a search that starts after a rune of a kind; not ok where the cache is full.
func (d *DFA) fresh(c *stateCache, before runeKind) (s uint32, ok bool) {
	if s = c.fresh[before].Load(); s != 0 {
		return s, true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.bytes > maxStateBytes {
		return 0, false
	}
	s = d.state(c, nil, before)
	c.fresh[before].Store(s)
	return s, true
}

// all walks every lane to its end.
func (w *walk) all() (matched, ok bool) {
	for {
		w.together()
		left := false
		for k := range w.lane {
			l := &w.lane[k]
			if l.i == l.end {
				continue
			}
			if matched, ok = w.step(l); matched || !ok {
				return matched, ok
			}
			left = left || l.i < l.end
		}
		if !left {
			return false, true
		}
	}
}

// together walks the lanes side by side, until one is at its end, at a byte that is no ASCII or at a cell that is no
// state's. Then each that is not is one step before what comes next.
func (w *walk) together() {
	a, b, c, e := &w.lane[0], &w.lane[1], &w.lane[2], &w.lane[3]
	n := min(a.end-a.i, b.end-b.i, c.end-c.i, e.end-e.i)
	ta := w.text[a.i:][:n]
	tb, tc, te := w.text[b.i:][:len(ta)], w.text[c.i:][:len(ta)], w.text[e.i:][:len(ta)] // no check of j below
	sa, sb, sc, se := a.s, b.s, c.s, e.s
	table, ascii := w.table, &w.d.classes.ascii
	j := 0
	for ; j < len(ta); j++ {
		na := atomic.LoadUint32(&table[sa+uint32(ascii[ta[j]])])
		nb := atomic.LoadUint32(&table[sb+uint32(ascii[tb[j]])])
		nc := atomic.LoadUint32(&table[sc+uint32(ascii[tc[j]])])
		ne := atomic.LoadUint32(&table[se+uint32(ascii[te[j]])])
		if min(na, nb, nc, ne) <= cellDead {
			break
		}
		sa, sb, sc, se = na, nb, nc, ne
	}
	a.s, b.s, c.s, e.s = sa, sb, sc, se
	a.i, b.i, c.i, e.i = a.i+j, b.i+j, c.i+j, e.i+j
}

// step walks a lane that is not at its end one rune on.
func (w *walk) step(l *lane) (matched, ok bool) {
	class, n := w.d.classAt(w.text, l.i)
	next, ok := w.next(l.s, class)
	if !ok || next == cellMatch {
		return ok, ok
	}
	l.i, l.s = l.i+n, next
	return false, true
}

// next gives the cell of a state that exists; not ok where the cache is full.
func (w *walk) next(s, class uint32) (next uint32, ok bool) {
	if next = atomic.LoadUint32(&w.table[s+class]); next == cellUnknown {
		next, w.table, ok = w.d.follow(w.cache, s, class)
		return next, ok
	}
	return next, true
}

// join walks what matches that began in an earlier part still need of a later one, and then the text's end.
func (w *walk) join() (matched, ok bool) {
	again := 0
	s := w.lane[0].s
	for k := 1; k < lanes; k++ {
		whole, own := lane{i: w.lane[k-1].end, end: w.lane[k].end, s: s}, w.lane[k].start
		from := whole.i
		for whole.s != own && whole.i < whole.end {
			class, _ := w.d.classAt(w.text, whole.i)
			if own, ok = w.next(own, class); !ok {
				return false, false
			}
			if matched, ok = w.step(&whole); matched || !ok {
				return matched, ok
			}
		}
		again += whole.i - from
		if s = whole.s; s == own {
			s = w.lane[k].s
		}
	}
	w.d.account(again, len(w.text))
	next, ok := w.next(s, uint32(w.d.classes.n))
	return next == cellMatch, ok
}

// account notes how much of a text was walked twice.
func (d *DFA) account(again, of int) {
	switch c := d.credit.Load(); {
	case again > of/4:
		d.credit.Store(c - laneLoss)
	case c < laneCredit:
		d.credit.Store(c + 1)
	}
}
