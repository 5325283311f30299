package rules

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOverlays(t *testing.T) {
	tomorrow := time.Now().AddDate(0, 0, 1).Format(time.DateOnly)
	base := mustLoad(t, with("    owner: us", "    owner: us\n    tags: [noisy]"))
	for name, c := range map[string]struct {
		overlay string
		check   func(r *Rule) bool
	}{
		"disable by id":   {`{target: demo/good-rule, disable: true, reason: x}`, func(r *Rule) bool { return !r.Active() }},
		"disable by tag":  {`{target: "tag:noisy", disable: true, reason: x}`, func(r *Rule) bool { return !r.Active() }},
		"disable by pack": {`{target: "pack:demo", disable: true, reason: x}`, func(r *Rule) bool { return !r.Active() }},
		"set": {`{target: demo/good-rule, reason: x, expires: ` + tomorrow + `, set: {severity: low, level: 3, owner: them, status: stable, decoy: d, judge: {question: "Q?"}}}`,
			func(r *Rule) bool {
				return r.Severity == "low" && r.Level == 3 && r.Owner == "them" && r.Status == "stable" && r.Decoy == "d" && r.Judge == JudgeHint{Question: "Q?", Skip: "never"}
			}},
		"append": {`{target: demo/good-rule, reason: x, append: {tags: [more], false_positives: [fp], any: [{command: {program: hg}}], unless: [{name: n, reason: r, command: {args: -x}}]}}`,
			func(r *Rule) bool {
				return len(r.Tags) == 2 && len(r.FalsePos) == 2 && len(r.Match.Any) == 2 && len(r.Unless) == 1
			}},
	} {
		t.Run(name, func(t *testing.T) {
			over, probs := load("pack: ours\nversion: 1.0.0\noverlays: [" + c.overlay + "]\n")
			if d := cmp.Diff([]string{"overlay-target"}, codesOf(probs)); d != "" && name != "disable by id" {
				t.Errorf("alone: %s", d)
			}
			merged, probs := Merge(base, over)
			if len(Errors(probs)) > 0 {
				t.Fatal(probs)
			}
			r, ok := merged.Rule("demo/good-rule")
			if !ok || !c.check(r) || len(r.Overlays()) != 1 {
				t.Errorf("got %+v", r)
			}
			if r, _ := base.Rule("demo/good-rule"); len(r.Overlays()) > 0 || !r.Active() || len(r.Match.Any) != 1 {
				t.Error("merging changed the packs that it was given")
			}
			again, _ := Merge(merged)
			if r, _ := again.Rule("demo/good-rule"); !c.check(r) || len(r.Overlays()) != 1 {
				t.Errorf("merging twice applies twice: %+v", r)
			}
		})
	}
}

func TestOverlayChangesWhatHits(t *testing.T) {
	p := mustLoad(t, with("", "")+"overlays:\n  - {target: demo/good-rule, reason: hg too, append: {any: [{command: {program: hg}}]}}\n"+
		"  - {target: demo/good-rule, reason: mirrors, append: {unless: [{name: mirror, reason: ours, command: {args: mirror}}]}}\n")
	s := mustCompile(t, p, nil).Session()
	if got := s.Match(cmds("hg")); len(got) != 1 {
		t.Errorf("got %v", got)
	}
	if got := s.Match(&Event{Commands: []Command{{Program: "git", Args: []string{"--all", "mirror"}}}}); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}
