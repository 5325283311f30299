package rules

// Session is one rollout under a Set: it keeps the tags that sequences need and counts calls. Not
// safe for concurrent use: the calls of a rollout are serial. It holds nothing that matching the
// rollout's recorded events again, in order, would not bring back.
type Session struct {
	set   *Set
	plain bool
	calls int
	until map[string]int // tag -> last call that it holds for
	room  room
}

// Session starts a rollout.
func (s *Set) Session() *Session { return &Session{set: s, until: map[string]int{}} }

// PlainSession starts a rollout that is matched condition by condition, without prefilter and
// dispatch: the reference that Session is tested against. It gives the same hits, more slowly.
func (s *Set) PlainSession() *Session {
	p := s.Session()
	p.plain = true
	return p
}

// Match gives the hits of an event, gravest first, and sets the tags of rules that hit. An event
// without a result is a new call; with one it is the second phase of the call before, in which only
// rules on the result hit. A tag holds from the call that sets it, for as many later calls as the
// rule says; it counts even where the call is blocked, because the intent was there.
func (s *Session) Match(ev *Event) []Hit {
	hits, _ := s.match(ev)
	return hits
}

// Restore matches recorded events in order, to bring a session to where the record ends.
func (s *Session) Restore(events []*Event) {
	for _, ev := range events {
		if ev != nil {
			s.match(ev)
		}
	}
}

// match is Match that also gives what each rule hit by, for tests and explanations. Rules that only
// set a tag are in the matches and not in the hits.
func (s *Session) match(ev *Event) ([]Hit, map[*compiledRule][]match) {
	if ev.Result == nil {
		s.calls++
	}
	met := s.set.matches(ev, s.plain, &s.room)
	for s.tag(met) {
	}
	var hits []Hit
	for r, ms := range met {
		if !s.open(r.rule) {
			delete(met, r)
			continue
		}
		if r.rule.Set == nil || !r.rule.Set.Only {
			hits = append(hits, r.hits(ms, ev.Result != nil)...)
		}
	}
	sortHits(hits)
	return hits, met
}

// open says whether the tag that a rule waits for is on the rollout.
func (s *Session) open(r *Rule) bool {
	if r.After == "" {
		return true
	}
	until, ok := s.until[r.After]
	return ok && until >= s.calls
}

// tag sets the tags of the rules that were met and are open; true where one was set or prolonged,
// so that a chain within one call is followed. Every round prolongs a tag, so rounds are at most as
// many as rules.
func (s *Session) tag(met map[*compiledRule][]match) bool {
	changed := false
	for r := range met {
		set := r.rule.Set
		if set == nil || !s.open(r.rule) {
			continue
		}
		if until := s.calls + set.For; s.until[set.Tag] < until {
			s.until[set.Tag] = until
			changed = true
		}
	}
	return changed
}
