package rules

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// maxVariants bounds how many forms of one condition are kept: a set of tasks has a few dozen projects,
// and a form is at most an automaton of maxStateBytes.
const maxVariants = 64

// variants keeps the conditions that name variables, compiled, by the values of those variables. Tasks
// of the same project have most of them in common; what a text taught one task's automaton, the others'
// know. Safe for concurrent use.
type variants struct {
	mu   sync.Mutex
	made map[*Cond]map[string]variant
}

// variant is a condition under some values; nil with the missing variables where it cannot work.
type variant struct {
	cond    *condition
	missing []string
}

// variant gives a condition that names variables under those of a task.
func (s *shared) variant(e entity, c *Cond, r *Rule, vars Vars) (variant, error) {
	key := variantKey(s.names[c], vars)
	s.variants.mu.Lock()
	done, ok := s.variants.made[c][key]
	s.variants.mu.Unlock()
	if ok {
		return done, nil
	}
	out, missing, err := compileCond(c, r.pack.Lists, vars, s.needs[c])
	if err != nil {
		return variant{}, fmt.Errorf("%s: %s: %w", c.Pos, c.Key, err.err)
	}
	if missing == nil {
		out.ent, out.slot, out.resolved = e, s.slotOf[e][c.Field], resolvedKey(e, c)
	}
	return s.variants.keep(c, key, variant{out, missing}), nil
}

// keep keeps a variant; where another has been kept since, it gives that one.
func (v *variants) keep(c *Cond, key string, made variant) variant {
	v.mu.Lock()
	defer v.mu.Unlock()
	if done, ok := v.made[c][key]; ok {
		return done
	}
	if v.made == nil {
		v.made = map[*Cond]map[string]variant{}
	}
	if v.made[c] == nil || len(v.made[c]) >= maxVariants {
		v.made[c] = map[string]variant{}
	}
	v.made[c][key] = made
	return made
}

// variantKey tells the values of the variables that a condition depends on.
func variantKey(names []string, vars Vars) string {
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "%q", vars.values(name))
	}
	return b.String()
}

// namedBy lists the variables that a condition depends on, sorted.
func namedBy(c *Cond, lists map[string][]string) []string {
	var names []string
	if slices.Contains(c.Mods, "under") {
		names = append(names, "workdir")
	}
	for _, v := range valuesOf(c, lists) {
		names = append(names, namedVars(v)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Relevant gives those of a task's variables that some rule depends on. Tasks of which these are alike can share
// a Set.
func (p *Packs) Relevant(vars Vars) Vars {
	if err := p.share(); err != nil {
		return vars // Compile will say the same
	}
	out := Vars{}
	for _, names := range p.shared.names {
		for _, name := range names {
			if v, ok := vars[name]; ok {
				out[name] = v
			} else if v := vars.values(name); len(v) > 0 {
				out[name] = v
			}
		}
	}
	return out
}

// share makes what the sets of the packs have in common, once.
func (p *Packs) share() error {
	p.once.Do(func() { p.shared, p.broken = share(p) })
	return p.broken
}

// valuesOf gives a condition's values, names of lists replaced by their members.
func valuesOf(c *Cond, lists map[string][]string) []string {
	if !slices.Contains(c.Mods, "list") {
		return c.Values
	}
	var values []string
	for _, name := range c.Values {
		values = append(values, lists[name]...)
	}
	return values
}
