package rules

import "slices"

// prefilter gives every slot an automaton over the literals that its conditions need, and the
// conditions the ids of theirs. See literal.go for why it is sound.
func (c *compiler) prefilter() {
	ids := [numEntities][]map[string]int{}
	for e := range numEntities {
		ids[e] = make([]map[string]int, len(c.set.slots[e]))
	}
	for _, r := range c.set.rules {
		for _, b := range r.blocks() {
			for _, cond := range b.conds {
				for i := range cond.groups {
					cond.groups[i].number(&ids[b.ent][cond.slot])
				}
			}
		}
	}
	for e := range numEntities {
		for n, m := range ids[e] {
			if len(m) == 0 {
				continue
			}
			literals := make([]string, len(m))
			for text, id := range m {
				literals[id] = text
			}
			c.set.slots[e][n].ac = newAutomaton(literals)
		}
	}
}

// number gives the group's literals their ids; a group with an atom that has none is always tried.
func (g *group) number(ids *map[string]int) {
	if len(g.equals) > 0 || len(g.atoms) == 0 {
		return
	}
	for _, set := range g.lits {
		if set == nil {
			return
		}
	}
	for _, set := range g.lits {
		for _, l := range set {
			if *ids == nil {
				*ids = map[string]int{}
			}
			id, ok := (*ids)[l.text]
			if !ok {
				id = len(*ids)
				(*ids)[l.text] = id
			}
			g.need = append(g.need, id)
			g.fold = g.fold || l.fold
		}
	}
}

// possible says whether texts that hold the literals found could meet the group.
func (g *group) possible(found bits, ascii bool) bool {
	if g.need == nil || g.fold && !ascii {
		return true
	}
	return slices.ContainsFunc(g.need, found.has)
}

// dispatch finds the blocks that a command's program could meet without trying the others.
type dispatch struct {
	slot int                 // of the field program
	by   map[string][]*block // blocks that need the program to equal one of some names
	rest []*block            // all others
}

// dispatch sorts the blocks of every rule that can start a hit.
func (s *Set) dispatch() {
	for _, r := range s.rules {
		for _, b := range append(slices.Clone(r.any), r.all...) {
			d := &s.index[b.ent]
			names := b.programs(s)
			if names == nil {
				d.rest = append(d.rest, b)
				continue
			}
			if d.by == nil {
				d.by = map[string][]*block{}
			}
			for name := range names {
				d.by[name] = append(d.by[name], b)
			}
		}
	}
	for e := range numEntities {
		s.index[e].slot = slices.IndexFunc(s.slots[e], func(sl slot) bool { return sl.name == "program" })
	}
}

// programs gives the names of which the entity's program has to equal one; nil for any.
func (b *block) programs(s *Set) map[string]struct{} {
	for _, c := range b.conds {
		if s.slots[b.ent][c.slot].name == "program" && c.op == "equals" && len(c.groups) == 1 {
			return c.groups[0].equals
		}
	}
	return nil
}
