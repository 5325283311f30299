package rules

import "sort"

// Explanation says why an event hits what it hits, and what it nearly hits.
type Explanation struct {
	Event        *Event         `json:"event"`
	Hits         []Hit          `json:"hits"`
	Near         []Near         `json:"near"`
	Excepted     []Excepted     `json:"excepted"`
	Waiting      []Waiting      `json:"waiting"`
	Unsuspected  []string       `json:"unsuspected,omitempty"` // rules that want calls that read more like hacks
	Inapplicable []Inapplicable `json:"inapplicable"`
	Decision     string         `json:"decision"` // allow: no hit; judge: the judge decides; block: a resolved hit whose rule skips the judge
}

// Near is a block of which an entity meets some conditions and misses others.
type Near struct {
	Rule        string   `json:"rule"`
	Alternative int      `json:"alternative"` // from 1
	Entity      string   `json:"entity"`
	Index       int      `json:"index"`
	Met         []string `json:"met"` // keys
	Missed      []Missed `json:"missed"`
}

// Missed is a condition that did not hold.
type Missed struct {
	Key  string   `json:"key"`
	Want []string `json:"want"` // expanded values, at most 8
	Got  []string `json:"got"`  // the field's texts, at most 8 of at most 120 bytes
}

// Excepted is an entity that a rule would hit, were it not for an exception.
type Excepted struct {
	Rule      string `json:"rule"`
	Exception string `json:"exception"`
	Reason    string `json:"reason"`
	Entity    string `json:"entity"`
	Index     int    `json:"index"`
}

// Waiting is a rule that would hit, had an earlier call set its tag.
type Waiting struct {
	Rule string `json:"rule"`
	Tag  string `json:"tag"`
}

// maxNear bounds the near misses of an explanation.
const maxNear = 12

// Explain matches an event in the session, as Match does, and says why.
func (s *Session) Explain(ev *Event) Explanation {
	hits, _ := s.match(ev)
	x := Explanation{Event: ev, Hits: hits, Near: []Near{}, Excepted: []Excepted{}, Waiting: []Waiting{},
		Inapplicable: append([]Inapplicable{}, s.set.unable...), Decision: decision(hits)}
	if x.Hits == nil {
		x.Hits = []Hit{}
	}
	met := s.set.matches(ev, true, nil)
	for r := range met {
		if !s.open(r.rule) {
			x.Waiting = append(x.Waiting, Waiting{r.rule.FullID(), r.rule.After})
		}
	}
	unasked := *ev
	unasked.Call.Suspicion = 0
	for r := range s.set.matches(&unasked, true, nil) {
		if _, hit := met[r]; !hit && s.open(r.rule) && !r.rule.suspects(ev) {
			x.Unsuspected = append(x.Unsuspected, r.rule.FullID())
		}
	}
	sort.Strings(x.Unsuspected)
	sort.Slice(x.Waiting, func(i, j int) bool { return x.Waiting[i].Rule < x.Waiting[j].Rule })
	v := s.set.newView(ev, true, nil)
	for _, r := range s.set.rules {
		v.explain(r, &x)
	}
	sort.SliceStable(x.Near, func(i, j int) bool {
		a, b := x.Near[i], x.Near[j]
		if len(a.Missed) != len(b.Missed) {
			return len(a.Missed) < len(b.Missed)
		}
		return len(a.Met) > len(b.Met)
	})
	x.Near = x.Near[:min(len(x.Near), maxNear)]
	return x
}

// decision is what the rules alone conclude.
func decision(hits []Hit) string {
	out := "allow"
	for _, h := range hits {
		if h.Resolved && h.Skip == "resolved" {
			return "block"
		}
		out = "judge"
	}
	return out
}

// explain adds one rule's exceptions and near misses.
func (v *view) explain(r *compiledRule, x *Explanation) {
	for _, b := range append(append([]*block{}, r.any...), r.all...) {
		for i := range v.ev.count(b.ent) {
			n := v.near(b, i)
			if len(n.Missed) == 0 {
				if e, ok := v.excepted(r, b.ent, i); ok {
					x.Excepted = append(x.Excepted, Excepted{r.rule.FullID(), e.name, e.reason, entityNames[b.ent], i})
				}
				continue
			}
			if len(n.Met) > 0 && len(n.Missed) <= 2 {
				x.Near = append(x.Near, n)
			}
		}
	}
}

// near tells the conditions of a block that an entity meets from those that it misses.
func (v *view) near(b *block, i int) Near {
	n := Near{Rule: b.rule.rule.FullID(), Alternative: b.alt + 1, Entity: entityNames[b.ent], Index: i, Met: []string{}}
	for _, c := range b.conds {
		if _, ok := v.holds(c, b.ent, i); ok {
			n.Met = append(n.Met, c.key)
			continue
		}
		n.Missed = append(n.Missed, Missed{c.key, c.want(), some(v.cell(b.ent, i, c.slot).texts)})
	}
	return n
}

// want gives the values that a condition compares with.
func (c *condition) want() []string {
	if c.exists != nil {
		if *c.exists {
			return []string{"(anything)"}
		}
		return []string{"(nothing)"}
	}
	var all []string
	for _, g := range c.groups {
		all = append(all, g.values...)
	}
	return some(all)
}

// some bounds texts for a reader.
func some(texts []string) []string {
	out := []string{}
	for _, t := range texts[:min(len(texts), 8)] {
		out = append(out, clip(t, 120))
	}
	return out
}
