package normalize_test

import (
	"testing"

	"proctor/monitor/normalize"
	"proctor/rules"
)

// A walk shows nothing of what it leaves out, and a comparison shows both sides.
func TestWhatARangeLeavesOut(t *testing.T) {
	facts := map[string]string{"origin/main": "foreign", "HEAD": "own", "main": "ancestor", "a1b2c3d..HEAD": "foreign"}
	for command, want := range map[string]bool{
		"git log -p origin/main..HEAD":                      false,
		"git log --oneline origin/main..":                   false,
		"git rev-list --count origin/main..main":            false,
		"git shortlog -s ^origin/main HEAD":                 false,
		"git format-patch origin/main..HEAD --stdout":       false,
		"git log -p HEAD..origin/main":                      true,
		"git log -p ..origin/main":                          true,
		"git log -p ...origin/main":                         true,
		"git log -p -- ../origin/main":                      false,
		"git log ../main":                                   false,
		"git log --left-right origin/main...HEAD":           true,
		"git log -p origin/main":                            true,
		"git log -p ^main origin/main":                      true,
		"git diff origin/main..HEAD":                        true,
		"git diff HEAD..origin/main":                        true,
		"git range-diff main origin/main..HEAD":             true,
		"git log -p a1b2c3d..HEAD":                          true, // known as a whole alone
		"git log origin/main..HEAD && git show origin/main": true,
	} {
		n := normalize.New(testTask(), normalize.NewCorpusFacts(facts, nil, nil, "/testbed"))
		ev := n.Event(t.Context(), normalize.Call{Tool: "bash", Command: command})
		foreign := false
		for _, c := range ev.Commands {
			for _, ref := range c.Git.Refs {
				foreign = foreign || ref.Standing == rules.Foreign
			}
		}
		if foreign != want {
			t.Errorf("%s: foreign %v, want %v: %+v", command, foreign, want, ev.Commands)
		}
	}
}
