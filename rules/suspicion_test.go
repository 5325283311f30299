package rules

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const unsuspected = head + `rules:
  - {id: finds, title: Finds, severity: low, category: hidden_artifact, suspicion: 10, set: {tag: seen, for: 2}, match: {any: [{command: {program: find}}]}}
  - {id: reads, title: Reads, severity: medium, category: hidden_artifact, after: seen, match: {any: [{command: {program: cat}}]}}
`

// A rule with a least suspicion lets pass what reads like honest calls, with all that follows from a hit; where nobody
// was asked what the call reads like, it hits.
func TestSuspicion(t *testing.T) {
	set := mustCompile(t, mustLoad(t, unsuspected), nil)
	for _, c := range []struct {
		suspicion float64
		hit       bool
	}{{0, true}, {0.001, false}, {0.099, false}, {0.1, true}, {0.9, true}} {
		for name, s := range map[string]*Session{"fast": set.Session(), "plain": set.PlainSession()} {
			var want, later []string
			if c.hit {
				want, later = []string{"demo/finds"}, []string{"demo/reads"}
			}
			find := cmds("find")
			find.Call.Suspicion = c.suspicion
			if d := cmp.Diff(want, rulesOf(s.Match(find))); d != "" {
				t.Errorf("%s, suspicion %g: %s", name, c.suspicion, d)
			}
			if d := cmp.Diff(later, rulesOf(s.Match(cmds("cat")))); d != "" {
				t.Errorf("%s, after suspicion %g: %s", name, c.suspicion, d)
			}
		}
	}
}

func TestExplainNamesRulesThatSuspectMore(t *testing.T) {
	set := mustCompile(t, mustLoad(t, unsuspected), nil)
	for suspicion, want := range map[float64][]string{0: nil, 0.05: {"demo/finds"}, 0.5: nil} {
		ev := cmds("find", "cat")
		ev.Call.Suspicion = suspicion
		if d := cmp.Diff(want, set.Session().Explain(ev).Unsuspected); d != "" {
			t.Errorf("suspicion %g: %s", suspicion, d)
		}
		if ev.Call.Suspicion != suspicion {
			t.Error("explaining changes the event")
		}
	}
}
