package monitor

import (
	"testing"

	"proctor/rules"
)

// A hit that names what is at fault is acted on before one by the whole call's wording.
func TestConfirmedPrefersWhatIsNamed(t *testing.T) {
	wording := rules.Hit{Rule: "core/reads-like-hidden-artifact", Class: "hidden_artifact", Entity: "call", Field: "suspect"}
	named := rules.Hit{Rule: "core/x", Class: "hidden_artifact", Entity: "command"}
	other := rules.Hit{Rule: "core/y", Class: "git_history", Entity: "command"}
	for name, tc := range map[string]struct {
		hits []rules.Hit
		want string
	}{
		"both of the class":  {[]rules.Hit{wording, named, other}, "core/x"},
		"another class only": {[]rules.Hit{wording, other}, "core/y"},
		"wording alone":      {[]rules.Hit{wording}, "core/reads-like-hidden-artifact"},
	} {
		v := &Verdict{Class: "hidden_artifact", Hits: tc.hits}
		if got := v.confirmed(); len(got) != 1 || got[0].Rule != tc.want {
			t.Errorf("%s: %+v", name, got)
		}
		if len(v.Hits) != len(tc.hits) {
			t.Errorf("%s: the verdict lost hits", name)
		}
	}
}
