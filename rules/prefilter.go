package rules

import (
	"fmt"
	"slices"
	"strings"
)

// shared is what the sets of the same packs have in common: the fields that conditions read, the
// conditions that name no variable, and the prefilter over their literals. A server has a set for
// each task; without sharing, 500 rules would cost it 13 ms and megabytes for each.
type shared struct {
	digest string
	slots  [numEntities][]slot
	slotOf [numEntities]map[string]int
	conds  map[*Cond]*condition
}

// share compiles what names no variable.
func share(p *Packs) (*shared, error) {
	s := &shared{digest: p.Digest(), conds: map[*Cond]*condition{}}
	for e := range s.slotOf {
		s.slotOf[e] = map[string]int{}
	}
	for _, r := range p.Rules() {
		for _, b := range r.blocks() {
			e, ok := entityOf(b.Entity)
			if !ok {
				return nil, fmt.Errorf("rule %s: %s: no entity %q", r.FullID(), b.Pos, b.Entity)
			}
			for i := range b.Conds {
				if err := s.add(e, &b.Conds[i], r); err != nil {
					return nil, fmt.Errorf("rule %s: %w", r.FullID(), err)
				}
			}
		}
	}
	s.prefilter()
	return s, nil
}

// add gives a condition's field its slot, and compiles the condition where it names no variable.
func (s *shared) add(e entity, c *Cond, r *Rule) error {
	n, ok := s.slotOf[e][c.Field]
	if !ok {
		get, found := lookupField(e, c.Field)
		if !found {
			return fmt.Errorf("%s: %s has no field %q", c.Pos, entityNames[e], c.Field)
		}
		n = len(s.slots[e])
		s.slotOf[e][c.Field] = n
		s.slots[e] = append(s.slots[e], slot{name: c.Field, get: get})
	}
	if variable(c, r.pack.Lists) {
		return nil
	}
	out, _, err := compileCond(c, r.pack.Lists, nil)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", c.Pos, c.Key, err.err)
	}
	out.ent, out.slot, out.resolved = e, n, resolvedKey(e, c)
	s.conds[c] = out
	return nil
}

// variable says whether a condition depends on the task: by a variable in a value or a member of a
// list, or because a relative path is taken below workdir.
func variable(c *Cond, lists map[string][]string) bool {
	values := c.Values
	if slices.Contains(c.Mods, "list") {
		values = nil
		for _, name := range c.Values {
			values = append(values, lists[name]...)
		}
	}
	under := slices.Contains(c.Mods, "under")
	return slices.ContainsFunc(values, func(v string) bool {
		return strings.Contains(v, "${task.") || under && !strings.HasPrefix(v, "/")
	})
}

// prefilter gives every slot an automaton over the literals that the shared conditions need, and
// the conditions the ids of theirs. See literal.go for why it is sound.
func (s *shared) prefilter() {
	for e := range numEntities {
		ids := make([]map[string]int, len(s.slots[e]))
		for _, cond := range s.conds {
			if cond.ent != e {
				continue
			}
			for i := range cond.groups {
				cond.groups[i].number(&ids[cond.slot])
			}
		}
		for n, m := range ids {
			if len(m) == 0 {
				continue
			}
			literals := make([]string, len(m))
			for text, id := range m {
				literals[id] = text
			}
			s.slots[e][n].ac = newAutomaton(literals)
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
