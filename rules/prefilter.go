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
	atoms  map[string]atom    // of those, by expression
	needs  map[*Cond][]*need  // by value, of the conditions that name a variable: what no value of it changes
	entity map[*Cond]string   // of those
	names  map[*Cond][]string // of those, the variables
	filter *filter

	active []*Rule
	fixed  map[*Rule]*compiledRule // of the active rules, those that name no variable
	index  [numEntities]dispatch   // of their blocks
	blocks int                     // theirs that can start a hit

	variants variants
}

// share compiles what names no variable.
func share(p *Packs) (*shared, error) {
	s := &shared{digest: p.Digest(), conds: map[*Cond]*condition{}, atoms: map[string]atom{}, needs: map[*Cond][]*need{}, entity: map[*Cond]string{}, names: map[*Cond][]string{}}
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
	return s, s.fix(p)
}

// fix compiles and files the active rules that name no variable.
func (s *shared) fix(p *Packs) error {
	set := &Set{slots: s.slots, filter: s.filter}
	c := &compiler{set: set, shared: s}
	s.fixed = map[*Rule]*compiledRule{}
	for _, r := range p.Rules() {
		if !r.Active() {
			continue
		}
		s.active = append(s.active, r)
		if s.open(r) {
			continue
		}
		cr, err := c.rule(r)
		if err != nil {
			return fmt.Errorf("rule %s: %w", r.FullID(), err)
		}
		s.fixed[r] = cr
		set.dispatch(cr)
	}
	for e := range set.index {
		set.index[e].seal()
	}
	s.index, s.blocks = set.index, set.blocks
	return nil
}

// open says whether a condition of the rule names a variable.
func (s *shared) open(r *Rule) bool {
	for _, b := range r.blocks() {
		for i := range b.Conds {
			if _, ok := s.conds[&b.Conds[i]]; !ok {
				return true
			}
		}
	}
	return false
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
		s.needs[c], s.entity[c], s.names[c] = openNeeds(c, r.pack.Lists), entityNames[e], namedBy(c, r.pack.Lists)
		return nil
	}
	out, _, err := compileCond(c, r.pack.Lists, nil, nil)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", c.Pos, c.Key, err.err)
	}
	out.ent, out.slot, out.resolved = e, n, resolvedKey(e, c)
	out.derive()
	s.intern(out)
	s.conds[c] = out
	return nil
}

// intern gives an expression that other conditions have too their atom: what it learned of texts serves all,
// and a text that stands in several fields is read once.
func (s *shared) intern(c *condition) {
	for i := range c.groups {
		for j := range c.groups[i].atoms {
			a := &c.groups[i].atoms[j]
			if a.auto == nil {
				continue
			}
			if known, ok := s.atoms[a.auto.Expr()]; ok {
				*a = known
			} else {
				s.atoms[a.auto.Expr()] = *a
			}
		}
	}
}

// variable says whether a condition depends on the task: by a variable in a value or a member of a
// list, or because a relative path is taken below workdir.
func variable(c *Cond, lists map[string][]string) bool {
	under := slices.Contains(c.Mods, "under")
	return slices.ContainsFunc(valuesOf(c, lists), func(v string) bool {
		return strings.Contains(v, "${task.") || under && !strings.HasPrefix(v, "/")
	})
}

// openNeeds gives what a text that meets each value of a condition holds, whatever the task's
// variables are: they stand for any text.
func openNeeds(c *Cond, lists map[string][]string) []*need {
	op, list, _, cerr := comparison(c.Mods)
	if cerr != nil {
		return nil
	}
	values := c.Values
	if list {
		if values, _, cerr = fromLists(c, lists); cerr != nil {
			return nil
		}
	}
	out := make([]*need, len(values))
	for i, v := range values {
		out[i] = openNeed(op, v)
	}
	return out
}

// openNeed is needOf for a value with variables. In an expression they stand quoted, so that each is
// like .* there; where what is before one would quote it again, nothing is known.
func openNeed(op, value string) *need {
	switch op {
	case "contains", "startswith", "endswith":
		var longest string
		for _, part := range varRef.Split(value, -1) {
			if len(part) > len(longest) {
				longest = part
			}
		}
		return needOf(op, longest)
	case "re":
		if strings.Contains(value, `\Q`) || strings.Contains(value, `\${`) {
			return nil
		}
		return needOf(op, varRef.ReplaceAllLiteralString(value, `(?s:.*)`))
	}
	return nil
}

// prefilter gives the literals that the shared conditions need their ids, and makes the automaton
// that finds them all in one pass over a text. See literal.go for why it is sound.
func (s *shared) prefilter() {
	var to numbering
	for _, c := range s.conds {
		for i := range c.groups {
			c.groups[i].number(&to)
			s.mark(c.ent, c.slot, c.groups[i].needs)
		}
	}
	for c, needs := range s.needs {
		to.number(needs)
		if e, ok := entityOf(s.entity[c]); ok {
			s.mark(e, s.slotOf[e][c.Field], needs)
		}
	}
	s.filter = to.filter()
}

// mark notes that the texts of a slot are worth searching.
func (s *shared) mark(e entity, slot int, needs []*need) {
	for _, n := range needs {
		s.slots[e][slot].search = s.slots[e][slot].search || n != nil
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
	to.number(g.needs)
	g.seal()
	g.file()
}

// seal notes that the needs' literals have their ids.
func (g *group) seal() {
	g.numbered, g.any = true, nil
	if len(g.needs) > 0 && !slices.Contains(g.needs, nil) {
		g.any = &need{subs: g.needs}
		g.any.pack()
	}
}

func (to *numbering) number(needs []*need) {
	for _, n := range needs {
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
		n.pack()
	}
}

// filter makes the numbered literals' finder; nil where there are none.
func (to *numbering) filter() *filter {
	if len(to.literals) == 0 {
		return nil
	}
	f := &filter{finder: newFinder(to.literals)}
	for _, id := range to.odd {
		f.odd = f.odd.with(id, f.finder.words)
	}
	return f
}

// filter says which literals a text holds.
type filter struct {
	finder *finder
	odd    bits // literals that a text with U+212A or U+017F may match in another spelling
}

// scan adds the literals of a text to found.
func (f *filter) scan(text string, found bits) bits {
	found, ascii := f.finder.scan(text, found)
	if !ascii && f.odd != nil && (strings.Contains(text, "\u212a") || strings.Contains(text, "\u017f")) {
		found = found.union(f.odd)
	}
	return found
}

// possible says whether texts that hold the literals found could meet every group.
func (c *condition) possible(found bits) bool {
	for i := range c.groups {
		if !c.groups[i].possible(found) {
			return false
		}
	}
	return true
}

// possible says whether texts that hold the literals found could meet the group.
func (g *group) possible(found bits) bool {
	if !g.numbered || len(g.equals) > 0 {
		return true
	}
	if g.any == nil {
		return len(g.needs) > 0 // some value needs nothing
	}
	return !(len(g.some) > 0 && !meets(g.some, found)) && g.any.holds(found)
}
