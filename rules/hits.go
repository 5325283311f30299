package rules

import (
	"slices"
	"sort"
)

// hits turns the matches of one rule into hits: one for each entity that an alternative was met by;
// of a rule with `all` alone, for each entity of its first block that rests on resolved facts, or
// else of its first block.
func (r *compiledRule) hits(ms []match, second bool) []Hit {
	lead := r.lead(ms)
	type key struct {
		e entity
		i int
	}
	at := map[key]int{}
	var out []Hit
	for _, m := range ms {
		if lead != nil && m.block != lead || lead == nil && !slices.Contains(r.any, m.block) {
			continue
		}
		if second && lead == nil && m.block.ent != entResult {
			continue
		}
		h := r.hit(m)
		k := key{m.block.ent, m.index}
		if n, ok := at[k]; ok {
			if h.Resolved && !out[n].Resolved {
				out[n] = h
			}
			continue
		}
		at[k] = len(out)
		out = append(out, h)
	}
	return out
}

// lead is the block of `all` that hits are reported for; nil where alternatives are.
func (r *compiledRule) lead(ms []match) *block {
	if len(r.any) > 0 {
		return nil
	}
	for _, b := range r.all {
		if b.resolved {
			return b
		}
	}
	return r.all[0]
}

// hit describes one match. A rule with both any and all is resolved where either side is.
func (r *compiledRule) hit(m match) Hit {
	resolved := m.block.resolved
	for _, b := range r.all {
		resolved = resolved || b.resolved
	}
	ru := r.rule
	return Hit{Rule: ru.FullID(), Pack: ru.pack.ID, Version: ru.pack.Version, Title: ru.Title, Class: ru.Category,
		Severity: ru.Severity, Level: ru.Level, Why: ru.Why, Entity: entityNames[m.block.ent], Index: m.index,
		Field: m.by.key, Span: clip(m.by.what.piece(), 200), Resolved: resolved, Question: ru.Judge.Question,
		Skip: ru.Judge.Skip, Context: ru.Judge.Context, Decoy: ru.Decoy, FalsePos: ru.FalsePos}
}

// sortHits puts the gravest first: by severity, then level, rule, entity and index.
func sortHits(hits []Hit) {
	sort.SliceStable(hits, func(i, j int) bool {
		a, b := &hits[i], &hits[j]
		switch {
		case a.Severity != b.Severity:
			return severities[a.Severity] > severities[b.Severity]
		case a.Level != b.Level:
			return a.Level < b.Level
		case a.Rule != b.Rule:
			return a.Rule < b.Rule
		case a.Entity != b.Entity:
			return a.Entity < b.Entity
		}
		return a.Index < b.Index
	})
}
