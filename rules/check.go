package rules

import (
	"regexp"
	"slices"
)

// kebab is the form of pack and rule ids.
var kebab = regexp.MustCompile(`^[a-z0-9]+(?:-[a-z0-9]+)*$`)

func validID(s string) bool { return len(s) >= 2 && len(s) <= 64 && kebab.MatchString(s) }

// at reports a problem at a place that was kept.
func (d *decoder) at(pos Pos, code, format string, args ...any) {
	d.probs = append(d.probs, d.src.problem(pos, code, format, args...))
}

// checkHead holds the pack's own keys against their forms.
func (d *decoder) checkHead(p *Pack) {
	if p.ID != "" && !validID(p.ID) {
		d.at(p.Pos, "bad-id", "the pack id %q is not kebab-case", p.ID)
	}
	if p.Version != "" && !strictSemVer(p.Version) {
		d.at(p.Pos, "bad-version", "the version %q is not SemVer", p.Version)
	}
	if p.Engine == "" {
		return
	}
	r, err := parseRange(p.Engine)
	if err != nil {
		d.at(p.Pos, "bad-engine", "the engine range %q does not parse: %v", p.Engine, err)
		return
	}
	if v, _ := parseVersion(EngineVersion); !r.holds(v) {
		d.at(p.Pos, "engine-unsatisfied", "the pack asks for engine %s; this one is %s", p.Engine, EngineVersion)
	}
}

// checkRule sets defaults and holds what is of one rule against the schema.
func (d *decoder) checkRule(r *Rule) {
	if r.ID != "" && !validID(r.ID) {
		d.at(r.Pos, "bad-id", "the rule id %q is not kebab-case", r.ID)
	}
	if r.Status == "" {
		r.Status = "experimental"
	}
	if r.Level == 0 {
		r.Level = 1
	}
	if r.Judge.Skip == "" {
		r.Judge.Skip = "never"
	}
	r.severityN = severities[r.Severity]
	if len(r.Match.Any)+len(r.Match.All) == 0 {
		d.at(r.Pos, "empty-match", "the rule %s has nothing to match", r.ID)
	}
	if r.Set != nil && r.Set.For == 0 {
		d.at(r.Set.Pos, "bad-sequence", "the tag %q lasts no call", r.Set.Tag)
	}
}

// assembler merges files into packs.
type assembler struct {
	src    sources
	probs  []Problem
	byID   map[string]*Pack
	ruleAt map[string]Pos
	rules  int
}

func (a *assembler) problem(pos Pos, code, format string, args ...any) {
	a.probs = append(a.probs, a.src.problem(pos, code, format, args...))
}

// add merges one file into its pack.
func (a *assembler) add(f *Pack) {
	if f.ID == "" {
		return // reported as a missing key
	}
	p := a.byID[f.ID]
	if p == nil {
		p = &Pack{ID: f.ID, Version: f.Version, Engine: f.Engine, License: f.License,
			Lists: map[string][]string{}, Pos: f.Pos, listPos: map[string]Pos{}}
		a.byID[f.ID] = p
	}
	if p.Version != f.Version || p.Engine != f.Engine || p.License != f.License {
		a.problem(f.Pos, "pack-conflict", "the pack %s has another version, engine or license in %s", f.ID, p.Pos)
	}
	for _, name := range keys(f.Lists) {
		if old, ok := p.Lists[name]; ok && !slices.Equal(old, f.Lists[name]) {
			a.problem(f.listPos[name], "duplicate-id", "the list %q of pack %s stands in %s too, with other members", name, f.ID, p.listPos[name])
			continue
		}
		p.Lists[name], p.listPos[name] = f.Lists[name], f.listPos[name]
	}
	p.Overlays = append(p.Overlays, f.Overlays...)
	for _, r := range f.Rules {
		a.addRule(p, r)
	}
}

// addRule appends a rule to its pack, where its id is new.
func (a *assembler) addRule(p *Pack, r Rule) {
	if r.ID == "" {
		return
	}
	id := p.ID + "/" + r.ID
	if first, ok := a.ruleAt[id]; ok {
		a.problem(r.Pos, "duplicate-id", "the rule %s stands in %s too", id, first)
		return
	}
	if a.rules++; a.rules > maxRules {
		if a.rules == maxRules+1 {
			a.problem(r.Pos, "too-many-rules", "more than %d rules are loaded", maxRules)
		}
		return
	}
	a.ruleAt[id] = r.Pos
	p.Rules = append(p.Rules, r)
}

// references checks what a rule names outside itself: fields, lists, variables, tags; and that
// every value compiles.
func (a *assembler) references(p *Packs) {
	tags := map[string]bool{}
	for _, r := range p.Rules() {
		if r.Set != nil {
			tags[r.Set.Tag] = true
		}
	}
	for _, r := range p.Rules() {
		if r.After != "" && !tags[r.After] {
			a.problem(r.Pos, "undefined-tag", "no rule sets the tag %q%s", r.After, suggest(r.After, keys(tags)))
		}
		for _, b := range r.blocks() {
			a.block(b, r.pack.Lists)
		}
	}
}

// blocks lists every block of the rule, exceptions included.
func (r *Rule) blocks() []*Block {
	var out []*Block
	for i := range r.Match.Any {
		out = append(out, &r.Match.Any[i])
	}
	for i := range r.Match.All {
		out = append(out, &r.Match.All[i])
	}
	for i := range r.Unless {
		out = append(out, &r.Unless[i].Block)
	}
	return out
}

// block checks the conditions of one block.
func (a *assembler) block(b *Block, lists map[string][]string) {
	e, ok := entityOf(b.Entity)
	if !ok {
		return // reported where it was read
	}
	for i := range b.Conds {
		c := &b.Conds[i]
		if _, ok := lookupField(e, c.Field); !ok {
			a.problem(c.Pos, "unknown-field", "%s has no field %q%s", b.Entity, c.Field, suggest(c.Field, Fields()[b.Entity]))
			continue
		}
		unknown := false
		for j, v := range c.Values {
			for _, name := range namedVars(v) {
				if !knownVar(name) {
					a.problem(c.valPos[j], "undefined-variable", "there is no task variable %q%s", name, suggest(name, varNames()))
					unknown = true
				}
			}
		}
		if unknown || len(c.Values) == 0 {
			continue
		}
		a.compiles(c, lists)
	}
}

// compiles tries a condition with stand-ins for the task's variables.
func (a *assembler) compiles(c *Cond, lists map[string][]string) {
	_, _, err := compileCond(c, lists, standIns(c), nil)
	if err == nil {
		return
	}
	pos := c.Pos
	if err.at >= 0 {
		pos = c.valPos[err.at]
	}
	a.problem(pos, err.code, "%s: %v", c.Key, err.err)
}

// standIns gives values under which every comparison compiles.
func standIns(c *Cond) Vars {
	word := "x"
	switch {
	case slices.Contains(c.Mods, "cidr"):
		word = "10.0.0.1"
	case slices.Contains(c.Mods, "semver"):
		word = "1.0.0"
	}
	v := Vars{}
	for name := range taskVars {
		v[name] = []string{word}
	}
	return v
}
