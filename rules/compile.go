package rules

import (
	"fmt"
	"slices"
	"sort"
	"sync"
)

// Set is packs compiled for one task: variables expanded, expressions compiled. What names no
// variable is shared by the sets of the same Packs. Immutable; safe for concurrent use. Compile once for each task, then a Session a rollout.
type Set struct {
	digest string
	rules  []*compiledRule
	unable []Inapplicable
	slots  [numEntities][]slot
	common *[numEntities]dispatch // of the rules that name no variable, shared
	index  [numEntities]dispatch  // of the others
	filter *filter                // nil where no condition needs a literal
	blocks int                    // that can start a hit

	prepared sync.Once
}

// slot is a field that some condition reads: extracted at most once for each entity.
type slot struct {
	name   string
	get    extract
	search bool // some condition on it needs a literal
}

// compiledRule is a rule under the set's variables.
type compiledRule struct {
	rule   *Rule
	any    []*block // alternatives
	all    []*block // every one of them
	unless []*exception
}

// block is a compiled block.
type block struct {
	ent      entity
	conds    []*condition
	resolved bool
	alt      int // index of the alternative in the rule, over any and then all
	n        int // index among the set's blocks that can start a hit
	rule     *compiledRule
}

// exception is a compiled exception.
type exception struct {
	name, reason string
	block        *block
}

// Inapplicable is a rule, an alternative or an exception that cannot work for a task, because the
// task does not define a variable.
type Inapplicable struct {
	Rule      string   `json:"rule"`
	What      string   `json:"what"` // "rule", "alternative N" (from 1), "block N", "exception NAME"
	Variables []string `json:"variables"`
}

// Compile makes the set of the active rules for a task's variables. The error names the first
// condition that does not compile under them.
func Compile(p *Packs, vars Vars) (*Set, error) {
	if err := p.share(); err != nil {
		return nil, err
	}
	s := &Set{digest: p.shared.digest, slots: p.shared.slots, filter: p.shared.filter, common: &p.shared.index, blocks: p.shared.blocks}
	c := &compiler{set: s, vars: vars, shared: p.shared}
	for _, r := range p.shared.active {
		if done, ok := p.shared.fixed[r]; ok {
			s.rules = append(s.rules, done)
			continue
		}
		cr, err := c.rule(r)
		if err != nil {
			return nil, fmt.Errorf("rule %s: %w", r.FullID(), err)
		}
		if cr != nil {
			s.rules = append(s.rules, cr)
			s.dispatch(cr)
		}
	}
	for e := range s.index {
		s.index[e].seal()
	}
	sort.SliceStable(s.unable, func(i, j int) bool { return s.unable[i].Rule < s.unable[j].Rule })
	return s, nil
}

// Digest pins the packs that the set was compiled from; the task's variables are not part of it.
func (s *Set) Digest() string { return s.digest }

// Len is the number of rules that can hit.
func (s *Set) Len() int { return len(s.rules) }

// Inapplicable lists what cannot work for the task, by rule.
func (s *Set) Inapplicable() []Inapplicable { return s.unable }

// compiler builds a Set.
type compiler struct {
	set    *Set
	vars   Vars
	shared *shared
}

// rule compiles a rule, or what of it can work; nil where nothing can.
func (c *compiler) rule(r *Rule) (*compiledRule, error) {
	cr := &compiledRule{rule: r}
	note := func(what string, missing []string) {
		slices.Sort(missing)
		c.set.unable = append(c.set.unable, Inapplicable{r.FullID(), what, slices.Compact(missing)})
	}
	var lost []string
	for i := range r.Match.Any {
		b, missing, err := c.block(&r.Match.Any[i], r, cr, i)
		switch {
		case err != nil:
			return nil, err
		case b == nil:
			lost = append(lost, missing...)
			note(fmt.Sprintf("alternative %d", i+1), missing)
		default:
			cr.any = append(cr.any, b)
		}
	}
	if len(r.Match.Any) > 0 && len(cr.any) == 0 {
		note("rule", lost)
		return nil, nil
	}
	for i := range r.Match.All {
		b, missing, err := c.block(&r.Match.All[i], r, cr, len(r.Match.Any)+i)
		switch {
		case err != nil:
			return nil, err
		case b == nil:
			note(fmt.Sprintf("block %d", i+1), missing)
			note("rule", missing)
			return nil, nil
		}
		cr.all = append(cr.all, b)
	}
	for i := range r.Unless {
		x := &r.Unless[i]
		b, missing, err := c.block(&x.Block, r, cr, -1)
		switch {
		case err != nil:
			return nil, err
		case b == nil:
			note("exception "+x.Name, missing) // it exempts nothing: the rule goes on hitting
		default:
			cr.unless = append(cr.unless, &exception{x.Name, x.Reason, b})
		}
	}
	return cr, nil
}

// block compiles a block; nil with the missing variables where it cannot work.
func (c *compiler) block(b *Block, r *Rule, cr *compiledRule, alt int) (*block, []string, error) {
	e, ok := entityOf(b.Entity)
	if !ok {
		return nil, nil, fmt.Errorf("%s: no entity %q", b.Pos, b.Entity)
	}
	out := &block{ent: e, alt: alt, rule: cr}
	var missing []string
	for i := range b.Conds {
		cond, miss, err := c.cond(e, &b.Conds[i], r)
		if err != nil {
			return nil, nil, err
		}
		if miss != nil {
			missing = append(missing, miss...)
			continue
		}
		out.resolved = out.resolved || cond.resolved
		out.conds = append(out.conds, cond)
	}
	if missing != nil {
		return nil, missing, nil
	}
	sort.SliceStable(out.conds, func(i, j int) bool { return out.conds[i].cost < out.conds[j].cost })
	return out, nil, nil
}

// cond gives a condition: the shared one, or one for the values of the task's variables.
func (c *compiler) cond(e entity, cond *Cond, r *Rule) (*condition, []string, error) {
	if done, ok := c.shared.conds[cond]; ok {
		return done, nil, nil
	}
	v, err := c.shared.variant(e, cond, r, c.vars)
	return v.cond, v.missing, err
}

// Prepare builds the automata that the set's expressions are read by. It is done when a text first meets one
// otherwise, which makes the first calls of a process slow. Once for all sets of the same packs but for what
// variables change; safe beside matching.
func (s *Set) Prepare() { s.prepared.Do(s.prepare) }

func (s *Set) prepare() {
	for _, r := range s.rules {
		blocks := slices.Concat(r.any, r.all)
		for _, x := range r.unless {
			blocks = append(blocks, x.block)
		}
		for _, b := range blocks {
			for _, c := range b.conds {
				c.prepare()
			}
		}
	}
}

func (c *condition) prepare() {
	for _, g := range c.groups {
		for _, a := range g.atoms {
			if a.auto != nil {
				a.auto.Prepare()
			}
		}
	}
}
