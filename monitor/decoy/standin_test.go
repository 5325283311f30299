package decoy

import (
	"context"
	"testing"

	"proctor/rules"
)

// What would keep a stand-in for later calls to show is not run with one.
func TestStandInLeavesNothingBehind(t *testing.T) {
	for _, text := range []string{
		"f() { cat .eval/x.json; }; f",
		"alias c='cat .eval/x.json'; eval c",
		"set -x; p=.eval/x.json; cat $p",
		"cat <<E > later.sh; sh later.sh\ncat .eval/x.json\nE",
		"set -x; echo hi > .eval/x.json; cat .eval/x.json",
		"a=(.eval/x.json b); cat ${a[0]}",
	} {
		dir := scratch(t)
		plant(t, dir, false)
		m := New(Options{Vars: rules.Vars{"hidden_paths": {dir + "/.eval"}}, Run: localRun})
		req := blocked(eventOf(t, text, dir, dir+"/.eval"), rules.HiddenArtifact, func(c rules.Command) bool { return len(c.Hidden) > 0 })
		if other, _, ok := m.standIn(context.Background(), req, m.targets(req)); ok {
			t.Errorf("%q is run as %q", text, other)
		}
	}
}

// Only what leads to the protected path is replaced.
func TestSpellings(t *testing.T) {
	for text, want := range map[string]int{
		"cat .eval/x": 1, "cat ./.eval /w/.eval/y": 2, "cat my.eval .evaluate a/.eval": 0, "cat '/w/.eval'": 1, "cd /w; ls ../w/.eval": 1, "echo x.eval/": 0,
	} {
		if got := len(spellings(text, "/w/.eval", []string{"/w"})); got != want {
			t.Errorf("%q: %d spellings, want %d", text, got, want)
		}
	}
}
