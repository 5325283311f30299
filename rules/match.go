package rules

import (
	"slices"
	"sort"
	"strings"
)

// view is one event under one set: fields are extracted and scanned at most once. One goroutine.
type view struct {
	set   *Set
	ev    *Event
	how   reading // plain: no prefilter, no dispatch: the reference that the fast way is tested against
	cells [numEntities][]cell
	memo  map[string]bits
	room  *room // tried by block: the turn, of one entity, that it was last tried in
}

// cell is one field of one entity.
type cell struct {
	texts    []string
	lits     bits
	got      bool
	searched bool
}

// room is what the views of one session use one after the other, so that a call makes no memory of its own.
type room struct {
	cells []cell
	used  int // of cells
	tried []int32
	turn  int32
	known map[asked]bool
	same  sameTexts
}

// newView makes a view of ev in a room that no other view uses at the time; nil: in one of its own.
func (s *Set) newView(ev *Event, plain bool, in *room) *view {
	if in == nil {
		in = &room{}
	}
	v := &view{set: s, ev: ev, how: reading{plain: plain}, room: in}
	total := 0
	for e := range numEntities {
		total += ev.count(e) * len(s.slots[e])
	}
	cells := in.clean(total)
	for e := range numEntities {
		n := ev.count(e) * len(s.slots[e])
		v.cells[e], cells = cells[:n:n], cells[n:]
	}
	if !plain {
		if in.tried == nil {
			in.tried, in.known, in.same = make([]int32, s.blocks), map[asked]bool{}, sameTexts{}
		}
		v.how.known = in.known
	}
	return v
}

// maxRoom bounds the cells that a session keeps between calls; most calls need a few hundred.
const maxRoom = 2048

// clean gives n empty cells.
func (r *room) clean(n int) []cell {
	if n > maxRoom {
		return make([]cell, n)
	}
	if n > len(r.cells) {
		r.cells = make([]cell, max(n, 2*len(r.cells)))
	}
	r.used = n
	return r.cells[:n]
}

// leave forgets the event, whose texts would stay in memory otherwise.
func (r *room) leave() {
	clear(r.cells[:r.used])
	r.used = 0
	if len(r.known) > maxRoom || len(r.same) > maxRoom {
		r.known, r.same = map[asked]bool{}, sameTexts{}
	}
	clear(r.known)
	clear(r.same)
}

// cell gives a field of the i-th entity.
func (v *view) cell(e entity, i, slot int) *cell {
	c := &v.cells[e][i*len(v.set.slots[e])+slot]
	if !c.got {
		c.texts, c.got = v.set.slots[e][slot].get(v.ev, i), true
		if !v.how.plain {
			c.texts = v.room.same.take(c.texts)
		}
	}
	return c
}

// searched gives a field and the literals that it holds.
func (v *view) searched(e entity, i, slot int) *cell {
	c := v.cell(e, i, slot)
	if !c.searched && v.set.slots[e][slot].search {
		c.lits = v.literals(c.texts)
	}
	c.searched = true
	return c
}

// literals gives the literals of texts. A long text is scanned once, whichever fields of the event
// it stands in: a here-document is a command's stdin, a file's content and its added lines, a script.
func (v *view) literals(texts []string) bits {
	var all bits
	for n, t := range texts {
		if len(t) < memoText {
			all = v.set.filter.scan(t, all)
			continue
		}
		lits := v.longLiterals(t)
		if n == 0 && len(texts) == 1 {
			return lits
		}
		all = all.union(lits)
	}
	return all
}

// longLiterals gives the literals of a long text, or of a little more.
func (v *view) longLiterals(t string) bits {
	if lits, ok := v.memo[t]; ok {
		return lits
	}
	if v.memo == nil {
		v.memo = map[string]bits{}
	}
	scanned := t
	if v.nearlyWhole(t) {
		scanned = v.ev.Call.Text
	}
	lits, ok := v.memo[scanned]
	if !ok {
		lits = v.set.filter.scan(scanned, nil)
		v.memo[scanned] = lits
	}
	v.memo[t] = lits
	return lits
}

// nearlyWhole says whether a text is nearly all of the call's, which is scanned in any case: a file that a
// here-document or a file tool writes is. It then counts as holding the literals of the rest too, which lets a few blocks
// more be tried.
func (v *view) nearlyWhole(t string) bool {
	whole := v.ev.Call.Text
	return len(t) >= laneText && len(t) > len(whole)*3/4 && strings.Contains(whole, t)
}

// holds says whether the i-th entity meets the condition, of a conceivable block, and the text that did.
func (v *view) holds(c *condition, e entity, i int) (found, bool) {
	if v.how.plain {
		return c.match(v.cell(e, i, c.slot).texts, nil, v.how)
	}
	cl := v.cell(e, i, c.slot)
	if c.filtered() {
		cl = v.searched(e, i, c.slot)
		if c.cost < searching && !c.possible(cl.lits) {
			return found{}, false
		}
	}
	return c.match(cl.texts, cl.lits, v.how)
}

// conceivable says whether the literals that the i-th entity holds let every one of some conditions hold. It is asked
// before the first of them is searched for: what rules a block out is often the literals of its last.
func (v *view) conceivable(conds []*condition, e entity, i int) bool {
	if v.how.plain {
		return true
	}
	for _, c := range conds {
		if !c.filtered() {
			continue
		}
		if !c.possible(v.searched(e, i, c.slot).lits) {
			return false
		}
	}
	return true
}

// decided is what a block's match rests on.
type decided struct {
	key  string
	what found
}

// meets says whether the i-th entity meets every condition of the block, and the key that says
// most: one that rests on resolved facts before one that searches before one that compares.
func (v *view) meets(b *block, i int) (decided, bool) {
	var d decided
	best := -1
	for n, c := range b.conds {
		first := c.cost >= searching && (n == 0 || b.conds[n-1].cost < searching)
		if first && !v.conceivable(b.conds[n:], b.ent, i) {
			return d, false
		}
		what, ok := v.holds(c, b.ent, i)
		if !ok {
			return d, false
		}
		rank := c.cost
		if c.resolved {
			rank += 100
		}
		if rank > best {
			best, d = rank, decided{c.key, what}
		}
	}
	return d, true
}

// excepted names the exception that exempts the i-th entity of a kind from the rule.
func (v *view) excepted(r *compiledRule, e entity, i int) (*exception, bool) {
	for _, x := range r.unless {
		if x.block.ent != e {
			continue
		}
		if _, ok := v.meets(x.block, i); ok {
			return x, true
		}
	}
	return nil, false
}

// match is a block met by an entity.
type match struct {
	block *block
	index int
	by    decided
}

// matches gives, for each rule of the set that hits, the blocks and entities it hits by. In the
// second phase (Event.Result is set) only blocks on the result start a hit.
func (s *Set) matches(ev *Event, plain bool, in *room) map[*compiledRule][]match {
	v := s.newView(ev, plain, in)
	defer v.room.leave()
	met := map[*compiledRule][]match{}
	for e := range numEntities {
		for i := range ev.count(e) {
			v.candidates(e, i, func(b *block) {
				if !b.rule.rule.suspects(ev) {
					return
				}
				if !plain && v.hopeless(b.rule, e, met[b.rule]) {
					return
				}
				if by, ok := v.meets(b, i); ok {
					if _, exempt := v.excepted(b.rule, e, i); !exempt {
						met[b.rule] = append(met[b.rule], match{b, i, by})
					}
				}
			})
		}
	}
	for r, ms := range met {
		// The order in which blocks were tried is the matcher's affair; what is reported is not.
		sort.SliceStable(ms, func(i, j int) bool {
			a, b := ms[i], ms[j]
			if a.block.alt != b.block.alt {
				return a.block.alt < b.block.alt
			}
			return a.index < b.index
		})
		if !r.complete(ms) || ev.Result != nil && !onResult(ms) {
			delete(met, r)
		}
	}
	return met
}

// suspects says whether the event reads enough like labelled hacks for the rule to hit.
func (r *Rule) suspects(ev *Event) bool {
	return r.Suspicion == 0 || ev.Call.Suspicion == 0 || 100*ev.Call.Suspicion >= float64(r.Suspicion)
}

// hopeless says whether a rule cannot hit whatever the entities of kind e give: a block that it needs has no entity in
// this event, or was met by none of those that come before e. It spares the search of a call's whole text where the
// rule is about files, and the call touches none.
func (v *view) hopeless(r *compiledRule, e entity, so []match) bool {
	for _, o := range r.all {
		if o.ent == e || o.ent > e && v.ev.count(o.ent) > 0 {
			continue // not decided yet
		}
		if !slices.ContainsFunc(so, func(m match) bool { return m.block == o }) {
			return true
		}
	}
	return false
}

// candidates calls f with every block that the i-th entity could meet.
func (v *view) candidates(e entity, i int, f func(*block)) {
	if v.how.plain {
		for _, r := range v.set.rules {
			for _, b := range r.any {
				if b.ent == e {
					f(b)
				}
			}
			for _, b := range r.all {
				if b.ent == e {
					f(b)
				}
			}
		}
		return
	}
	v.room.turn++
	v.dispatched(&v.set.common[e], e, i, f)
	v.dispatched(&v.set.index[e], e, i, f)
}

// dispatched calls f with the blocks of an index that the i-th entity could meet.
func (v *view) dispatched(d *dispatch, e entity, i int, f func(*block)) {
	try := func(bs []*block) {
		for _, b := range bs {
			if v.room.tried[b.n] != v.room.turn {
				v.room.tried[b.n] = v.room.turn
				f(b)
			}
		}
	}
	for _, x := range d.equals {
		for _, t := range v.cell(e, i, x.slot).texts {
			try(x.by[t])
		}
	}
	for _, x := range d.under {
		for _, t := range v.cell(e, i, x.slot).texts {
			eachFolder(t, func(dir string) { try(x.by[dir]) })
		}
	}
	for n := range d.literal {
		x := &d.literal[n]
		x.each(v.searched(e, i, x.slot).lits, try)
	}
	for _, x := range d.present {
		if len(v.cell(e, i, x.slot).texts) > 0 {
			try(x.blocks)
		}
	}
	try(d.rest)
}

// complete says whether the matches fulfil the rule: one alternative, and every block of all.
func (r *compiledRule) complete(ms []match) bool {
	seen := map[*block]bool{}
	for _, m := range ms {
		seen[m.block] = true
	}
	one := len(r.any) == 0
	for _, b := range r.any {
		one = one || seen[b]
	}
	for _, b := range r.all {
		if !seen[b] {
			return false
		}
	}
	return one
}

// onResult says whether some match is by a block on the result.
func onResult(ms []match) bool {
	for _, m := range ms {
		if m.block.ent == entResult {
			return true
		}
	}
	return false
}
