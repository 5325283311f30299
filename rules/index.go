package rules

import (
	mathbits "math/bits"
	"slices"
	"strings"
)

// The index: which blocks an entity could meet at all.
//
// A block holds where all its conditions do, so one of them, its key, is enough to rule it out. Every
// block is filed under its most telling condition: a value that a field has to equal, a folder that a
// path has to lie under, a literal that a text has to hold. An entity is then tried only on the blocks that its own
// values, folders and literals are filed under, and on the few without a key; 500 rules cost little more than 50.

// dispatch finds the blocks of one kind of entity.
type dispatch struct {
	equals  []byText
	under   []byText
	literal []byLiteral
	present []byPresence
	rest    []*block
}

// byText files blocks by a text of a field.
type byText struct {
	slot int
	by   map[string][]*block
}

// byLiteral files blocks by the id of a literal of a field.
type byLiteral struct {
	slot int
	mask bits             // the ids in by
	by   map[int][]*block // until sealed

	below  []int32    // by word of mask, how many ids are in the words before; once sealed
	sorted [][]*block // what by held, in the order of the ids; once sealed
}

// seal puts the blocks into the order of their literals' ids: a text of a file's length holds hundreds, and each would
// cost a search in a map. Nothing is filed after it.
func (d *dispatch) seal() {
	for i := range d.literal {
		x := &d.literal[i]
		for _, w := range x.mask {
			x.below = append(x.below, int32(len(x.sorted)))
			for ; w != 0; w &= w - 1 {
				x.sorted = append(x.sorted, x.by[(len(x.below)-1)<<6+mathbits.TrailingZeros64(w)])
			}
		}
		x.by = nil
	}
}

// each calls f with the blocks of every literal found.
func (x *byLiteral) each(found bits, f func([]*block)) {
	for i, w := range found {
		mask := x.mask[i]
		for w &= mask; w != 0; w &= w - 1 {
			f(x.sorted[int(x.below[i])+mathbits.OnesCount64(mask&(w&-w-1))])
		}
	}
}

// byPresence files blocks by a field that has to have a text.
type byPresence struct {
	slot   int
	blocks []*block
}

// weak are fields that have one of a few values on every entity: a comparison with one rules out little.
var weak = map[string]bool{"op": true, "test": true, "in_tree": true, "hidden": true, "new": true, "there": true, "copy": true,
	"grader": true, "opaque": true, "own": true, "relation": true, "manager": true, "lang": true, "tool": true}

// dispatch files the blocks of a rule that can start a hit.
func (s *Set) dispatch(r *compiledRule) {
	for _, b := range append(slices.Clone(r.any), r.all...) {
		b.n = s.blocks
		s.blocks++
		s.file(b)
	}
}

// file files a block under its most telling condition.
func (s *Set) file(b *block) {
	d := &s.index[b.ent]
	var best key
	for _, c := range b.conds {
		best = better(best, s.presence(c))
		for i := range c.groups {
			best = better(best, s.keyOf(c, &c.groups[i]))
		}
	}
	switch {
	case best.worth == 0:
		d.rest = append(d.rest, b)
	case best.present:
		d.present = filePresent(d.present, best, b)
	case best.ids != nil:
		d.literal = s.fileLiterals(d.literal, best, b)
	case best.under:
		d.under = fileTexts(d.under, best, b)
	default:
		d.equals = fileTexts(d.equals, best, b)
	}
}

// filePresent files a block under the field of its key.
func filePresent(in []byPresence, k key, b *block) []byPresence {
	for i := range in {
		if in[i].slot == k.slot {
			in[i].blocks = append(in[i].blocks, b)
			return in
		}
	}
	return append(in, byPresence{k.slot, []*block{b}})
}

// fileLiterals files a block under each literal of its key.
func (s *Set) fileLiterals(in []byLiteral, k key, b *block) []byLiteral {
	at := slices.IndexFunc(in, func(x byLiteral) bool { return x.slot == k.slot })
	if at < 0 {
		at = len(in)
		in = append(in, byLiteral{slot: k.slot, by: map[int][]*block{}})
	}
	for _, id := range k.ids {
		in[at].mask = in[at].mask.with(id, s.filter.finder.words)
		in[at].by[id] = append(in[at].by[id], b)
	}
	return in
}

// fileTexts files a block under each text of its key.
func fileTexts(in []byText, k key, b *block) []byText {
	at := slices.IndexFunc(in, func(x byText) bool { return x.slot == k.slot })
	if at < 0 {
		at = len(in)
		in = append(in, byText{k.slot, map[string][]*block{}})
	}
	for _, t := range k.texts {
		in[at].by[t] = append(in[at].by[t], b)
	}
	return in
}

// key is what a block is filed under; a worth of 0 is none.
type key struct {
	worth int
	slot  int
	texts []string
	under bool
	ids   []int

	present bool // the field has to have some text
}

func better(a, b key) key {
	if b.worth > a.worth {
		return b
	}
	return a
}

// presence is the key of a condition that only a field with some text can meet. Fields that are
// lists of what was found are empty on most entities; others seldom are.
func (s *Set) presence(c *condition) key {
	if c.exists != nil && !*c.exists {
		return key{}
	}
	k := key{worth: 2, slot: c.slot, present: true}
	if seldom[s.slots[c.ent][c.slot].name] {
		k.worth = 55
	}
	return k
}

// seldom are fields that most entities do not have.
var seldom = map[string]bool{"hidden": true, "covers": true, "copies": true, "net.host": true, "net.url": true, "net.foreign": true,
	"net.denied": true, "net.upstream": true, "git.verb": true, "git.refs": true, "git.foreign": true, "git.unknown": true, "git.own": true,
	"prints": true, "stdin": true, "removed": true, "before": true, "canaries": true, "witness": true, "notes": true}

// keyOf weighs one group of a condition.
func (s *Set) keyOf(c *condition, g *group) key {
	switch {
	case len(g.equals) > 0:
		k := key{worth: 60, slot: c.slot, texts: keys(g.equals)}
		if weak[s.slots[c.ent][c.slot].name] {
			k.worth = 1
		}
		return k
	case g.dirs != nil:
		return key{worth: 50, slot: c.slot, texts: g.dirs, under: true}
	case !g.numbered:
		return key{}
	}
	return key{worth: g.worth, slot: c.slot, ids: g.ids}
}

// file notes what the group can be filed under: literals of which every text that meets it holds
// one. The longer and the fewer, the more they tell.
func (g *group) file() {
	least := maxLiteral
	var ids []int
	for _, n := range g.needs {
		clause := n.clause()
		if clause == nil {
			return
		}
		least = min(least, shortest(clause))
		for _, l := range clause {
			ids = append(ids, l.id)
		}
	}
	slices.Sort(ids)
	if g.ids = slices.Compact(ids); len(ids) > 0 {
		g.worth = max(1, 15*least-len(g.ids)/4)
		g.some = packIDs(g.ids)
	}
}

// packIDs puts ids, in ascending order, into words.
func packIDs(ids []int) []wordMask {
	var out []wordMask
	for _, id := range ids {
		if n := len(out); n == 0 || out[n-1].word != id>>6 {
			out = append(out, wordMask{word: id >> 6})
		}
		out[len(out)-1].mask |= 1 << (id & 63)
	}
	return out
}

// meets says whether one of some packed ids is among those found.
func meets(some []wordMask, found bits) bool {
	return found != nil && slices.ContainsFunc(some, func(w wordMask) bool { return found[w.word]&w.mask != 0 })
}

// eachFolder calls f with the clean form of a path and every folder above it.
func eachFolder(p string, f func(string)) {
	p = cleanPath(p)
	for p != "" {
		f(p)
		i := strings.LastIndexByte(p, '/')
		if i == 0 && p != "/" {
			f("/")
		}
		p = p[:max(i, 0)]
	}
}
