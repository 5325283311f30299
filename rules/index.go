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
	by   [][]*block
}

// weak are fields that have one of a few values on every entity: a comparison with one rules out little.
var weak = map[string]bool{"op": true, "test": true, "in_tree": true, "hidden": true, "new": true, "there": true, "copy": true,
	"grader": true, "opaque": true, "own": true, "relation": true, "manager": true, "lang": true, "tool": true}

// dispatch files the blocks of every rule that can start a hit.
func (s *Set) dispatch() {
	for _, r := range s.rules {
		for _, b := range append(slices.Clone(r.any), r.all...) {
			b.n = s.blocks
			s.blocks++
			s.file(b)
		}
	}
}

// file files a block under its most telling condition.
func (s *Set) file(b *block) {
	d := &s.index[b.ent]
	var best key
	for _, c := range b.conds {
		for i := range c.groups {
			if k := s.keyOf(c, &c.groups[i]); k.worth > best.worth {
				best = k
			}
		}
	}
	switch {
	case best.worth == 0:
		d.rest = append(d.rest, b)
	case best.ids != nil:
		at := slices.IndexFunc(d.literal, func(x byLiteral) bool { return x.slot == best.slot })
		if at < 0 {
			at = len(d.literal)
			d.literal = append(d.literal, byLiteral{best.slot, make([][]*block, s.slots[b.ent][best.slot].filter.count)})
		}
		for _, id := range best.ids {
			d.literal[at].by[id] = append(d.literal[at].by[id], b)
		}
	case best.under:
		d.under = fileTexts(d.under, best, b)
	default:
		d.equals = fileTexts(d.equals, best, b)
	}
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
}

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
	}
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

// each calls f with every id.
func (b bits) each(f func(id int)) {
	for i, w := range b {
		for ; w != 0; w &= w - 1 {
			f(i<<6 + mathbits.TrailingZeros64(w))
		}
	}
}
