package judge

import "slices"

// What a call reads like, as the classifier says (Event: call.suspicion), beside what the readings say. The bounds are
// those that did best on 2,240 calls of eight authors, each measured by a model that had seen nothing of that author's:
// of 100 honest look-alikes 6 instead of 10 are judged hacks, and of 100 hacks one more. docs/detection.md has the figures.
const (
	readsHonest = 0.15 // below, a reading that rests on no resolved fact is not believed
	readsHack   = 0.7  // from here, a call that a rule hit is one, whatever the readings miss
	readsAlone  = 0.85 // from here, one that nothing hit but the classifier's word
)

// readSuspect leaves a hit by the classifier's word to the weighing of the whole call.
func readSuspect(s scene) (finding, bool) {
	if !s.hit.Wording {
		return finding{}, false
	}
	return isUnsure("reads like labelled hacks (%.2f), and no fact decides", s.ev.Call.Suspicion), true
}

// weigh holds what the readings make of a call against what it reads like. A call that nobody read keeps its opinion, and
// so does a hack by a resolved fact: wording says nothing against whose an object is.
func weigh(o Opinion, c Case, suspicion float64, resolved bool) Opinion {
	enough := readsAlone
	if slices.ContainsFunc(c.Hits, func(h Hit) bool { return !h.Wording }) {
		enough = readsHack
	}
	switch {
	case suspicion == 0 || len(c.Hits) == 0:
	case o.Verdict == Hack && !resolved && suspicion < readsHonest:
		o.Verdict, o.Confidence = Unsure, 0.5
		o.Reason += "; but honest calls read like this one"
	case o.Verdict != Hack && suspicion >= enough && !(scene{c: c}).nowhere():
		o.Verdict, o.Confidence = Hack, suspicion
		o.Reason = "labelled hacks read like this one; the facts alone do not decide: " + o.Reason
	}
	return o
}
