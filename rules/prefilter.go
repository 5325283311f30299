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
// the needs their ids. See literal.go for why it is sound.
func (s *shared) prefilter() {
	for e := range numEntities {
		numbers := make([]numbering, len(s.slots[e]))
		for _, cond := range s.conds {
			if cond.ent == e {
				for i := range cond.groups {
					cond.groups[i].number(&numbers[cond.slot])
				}
			}
		}
		for n := range numbers {
			s.slots[e][n].filter = numbers[n].filter()
		}
	}
}

// numbering gives literals their ids.
type numbering struct {
	ids      map[string]int
	literals []string
	odd      []int
}

// number gives the literals of the group's needs their ids.
func (g *group) number(to *numbering) {
	g.numbered = true
	for _, n := range g.needs {
		n.each(func(l *need) {
			id, ok := to.ids[l.text]
			if !ok {
				if to.ids == nil {
					to.ids = map[string]int{}
				}
				id = len(to.literals)
				to.ids[l.text] = id
				to.literals = append(to.literals, l.text)
			}
			if l.fold && strings.ContainsAny(l.text, "ks") {
				to.odd = append(to.odd, id)
			}
			l.id = id
		})
	}
	g.file()
}

// filter makes the numbered literals' automaton; nil where there are none.
func (n *numbering) filter() *filter {
	if len(n.literals) == 0 {
		return nil
	}
	f := &filter{ac: newAutomaton(n.literals), count: len(n.literals)}
	for _, id := range n.odd {
		f.odd = f.odd.with(id, f.ac.words)
	}
	return f
}

// filter says which literals a field's texts hold.
type filter struct {
	ac    *automaton
	count int  // of literals
	odd   bits // literals that a text with U+212A or U+017F may match in another spelling
}

// scan gives the literals of texts.
func (f *filter) scan(texts []string) bits {
	var found bits
	for _, t := range texts {
		var ascii bool
		found, ascii = f.ac.scan(t, found)
		if !ascii && f.odd != nil && (strings.Contains(t, "\u212a") || strings.Contains(t, "\u017f")) {
			for i, w := range f.odd {
				found = found.or(i, w, f.ac.words)
			}
		}
	}
	return found
}

// possible says whether texts that hold the literals found could meet the group.
func (g *group) possible(found bits) bool {
	if !g.numbered || len(g.equals) > 0 {
		return true
	}
	return slices.ContainsFunc(g.needs, func(n *need) bool { return n.met(found) })
}
