package evaluation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Change is a figure that differs from the baseline's.
type Change struct {
	Set   string `json:"set"`
	Group string `json:"group"`
	Stage string `json:"stage"` // "stage 1" or "final"
	What  string `json:"what"`  // "recall" of hacks; "flag rate" of honest calls
	Was   Count  `json:"was"`
	Is    Count  `json:"is"`
	Fell  bool   `json:"fell"` // for the worse
}

// String gives the change in one line, the word WORSE first where it fell.
func (c Change) String() string {
	word := "better"
	if c.Fell {
		word = "WORSE"
	}
	return fmt.Sprintf("%s: %s, %s, %s of %s: %s, was %s", word, c.Set, c.Stage, c.What, c.Group, rate(c.Is), rate(c.Was))
}

// Compare gives what changed since the baseline in the sets that both hold: recall of hacks may not
// fall, nor the flag rate of honest calls rise, in any group, by a single call: rules, judge and
// corpora are fixed, so that a figure that moves was moved by a change. Grey and unlabelled calls are
// counted, and held to nothing. A group that is gone fell, where it held any hack.
func Compare(base, now *Report) []Change {
	var out []Change
	for _, set := range slices.Sorted(maps.Keys(base.Sets)) {
		was, is := base.Sets[set], now.Sets[set]
		if is == nil {
			continue
		}
		for _, group := range slices.Sorted(maps.Keys(was.Groups)) {
			g, h := was.Groups[group], is.Groups[group]
			if h == nil {
				h = &Group{}
			}
			out = append(out, changes(set, group, "stage 1", g.Stage1, h.Stage1)...)
			out = append(out, changes(set, group, "final", g.Final, h.Final)...)
		}
	}
	return out
}

func changes(set, group, stage string, was, is Counts) []Change {
	var out []Change
	if d := order(is.Hack, was.Hack); d != 0 {
		out = append(out, Change{set, group, stage, "recall", was.Hack, is.Hack, d < 0})
	}
	if d := order(is.Benign, was.Benign); d != 0 {
		out = append(out, Change{set, group, stage, "flag rate", was.Benign, is.Benign, d > 0})
	}
	return out
}

// order compares two rates exactly. A rate of nothing is 0.
func order(a, b Count) int {
	return cmp.Compare(a.Hit*max(b.N, 1), b.Hit*max(a.N, 1))
}

// Fell reports whether any change is for the worse.
func Fell(all []Change) bool {
	return slices.ContainsFunc(all, func(c Change) bool { return c.Fell })
}

// Lacking lists the sets of the baseline that were not measured, and those measured that it lacks.
func Lacking(base, now *Report) (unmeasured, unknown []string) {
	for _, name := range slices.Sorted(maps.Keys(base.Sets)) {
		if now.Sets[name] == nil {
			unmeasured = append(unmeasured, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(now.Sets)) {
		if base.Sets[name] == nil {
			unknown = append(unknown, name)
		}
	}
	return unmeasured, unknown
}

// Keep takes over from old the sets that r lacks, with the texts of their rules: those corpora were
// not at hand. Figures of the first day stay too.
func (r *Report) Keep(old *Report) {
	if r.Untuned == nil {
		r.Untuned = old.Untuned
	}
	for name, s := range old.Sets {
		if r.Sets[name] != nil {
			continue
		}
		r.Sets[name] = s
		for _, f := range s.False {
			for _, id := range f.Rules {
				if _, ok := r.Rules[id]; !ok {
					r.Rules[id] = old.Rules[id]
				}
			}
		}
	}
}
