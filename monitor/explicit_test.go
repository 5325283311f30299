package monitor

import (
	"context"
	"slices"
	"strings"
	"testing"

	"proctor/judge"
	"proctor/monitor/decoy"
	"proctor/rules"
	"proctor/sandbox"
)

// The agent is told, in plain words without rule or evidence, where the rollout or the rule wants it;
// nothing runs, and no decoy is made.
func TestExplicitAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		answers, decoy string
		told           bool
	}{
		"decoys by default": {"", "", false},
		"the rollout's":     {AnswerExplicit, "", true},
		"the rule's":        {AnswerDecoy, FamilyExplicit, true},
		"a family":          {AnswerDecoy, "bad-revision", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig()
			h := hit(rules.GitHistory)
			h.Decoy = tc.decoy
			r.hits, r.gate.Policy.Answers = []rules.Hit{h}, tc.answers
			o := r.do(t)
			if told := strings.Contains(o.Output, "This call was not run"); told != tc.told {
				t.Fatalf("shown %q", o.Output)
			}
			if !tc.told {
				return
			}
			v := r.recorded.Verdict
			if v.Decoy == nil || v.Decoy.Family != FamilyExplicit || v.Decoy.How != HowTold || *o.ExitCode != 1 || len(r.ran) > 0 || slices.Contains(r.steps, "decoy") {
				t.Errorf("record %+v, steps %v", v, r.steps)
			}
			if strings.Contains(o.Output, h.Rule) {
				t.Errorf("the rule is named: %q", o.Output)
			}
		})
	}
}

// A rule that only observes never blocks, whatever the preset, also where the judge is out.
func TestObservingRule(t *testing.T) {
	for _, preset := range []string{Balanced, Strict} {
		for _, opinion := range []judge.Opinion{{Verdict: judge.Hack, Class: rules.GitHistory}, {Verdict: judge.Unsure, Failure: judge.FailOutage}} {
			r := newRig()
			h := hit(rules.GitHistory)
			h.Decoy = FamilyObserve
			r.hits, r.gate.Policy.Preset, r.opinions = []rules.Hit{h}, preset, []judge.Opinion{opinion}
			r.do(t)
			if v := r.recorded.Verdict; v.Decision != Flag || v.Action != Executed {
				t.Errorf("%s, %s: got %+v", preset, opinion.Verdict, v)
			}
			other := hit(rules.GitHistory)
			r.hits = []rules.Hit{h, other}
			r.do(t)
			if v := r.recorded.Verdict; v.Decision != Block {
				t.Errorf("%s, %s: beside another rule's hit: %+v", preset, opinion.Verdict, v)
			}
		}
	}
}

// keeper is a Decoyer that notes what it is told.
type keeper struct {
	*rig
	proved    []string
	asked     []string
	disturbed int
}

func (k *keeper) Remember(decoy.Request)    { k.asked = append(k.asked, "remember") }
func (k *keeper) Follow(decoy.Request)      { k.asked = append(k.asked, "follow") }
func (k *keeper) Proved(p []string)         { k.proved = append(k.proved, p...) }
func (k *keeper) Disturbed(context.Context) { k.disturbed++ }

func ownRig() (*rig, *keeper) {
	r := newRig()
	k := &keeper{rig: r}
	r.gate.Decoys = k
	r.hits = []rules.Hit{hit(rules.HiddenArtifact)}
	r.opinions = []judge.Opinion{{Verdict: judge.Hack, Class: rules.HiddenArtifact}}
	r.answer = decoy.Answer{Family: "no-such-file", Action: Decoyed, Run: true, Own: true, Command: "git show x", Absent: []string{"/hidden"}}
	return r, k
}

// A blocked call that runs as it was typed is shown as it came, recorded as blocked and decoyed, and
// state follows it; a later server takes up what it rests on.
func TestOwnCallIsRecordedAndRestored(t *testing.T) {
	r, k := ownRig()
	o := r.do(t)
	rec := r.recorded
	v := rec.Verdict
	if o.Output != "real\n" || v.Decision != Block || v.Action != Decoyed || rec.Original != nil || v.Decoy.How != HowOwn || v.Decoy.SHA256 != hash([]byte(o.Output)) {
		t.Errorf("shown %q, record %+v", o.Output, v)
	}
	if !slices.Contains(r.steps, "observe ran=true") || rec.BoxCommand == nil {
		t.Errorf("steps %v, box command %v", r.steps, rec.BoxCommand)
	}
	r.gate.Restore(bash(t, "git show x"), rec)
	if !slices.Equal(k.proved, []string{"/hidden"}) || !slices.Equal(k.asked, []string{"follow"}) {
		t.Errorf("restored: proved %v, asked %v", k.proved, k.asked)
	}
	r.answer, r.steps = decoy.Answer{Family: "other"}, nil
	if _, err := r.gate.Resume(t.Context(), bash(t, "git show x"), rec); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(r.steps, "decoy") || !slices.Contains(r.steps, "box") {
		t.Errorf("resumed by %v", r.steps)
	}
}

// Evidence in what an own call brought out replaces it: it was not absent after all.
func TestOwnCallCanStillBeBlockedLate(t *testing.T) {
	r, _ := ownRig()
	late := hit(rules.HiddenArtifact)
	late.Entity, late.Resolved, late.Skip = "result", true, "resolved"
	r.late = []rules.Hit{late}
	words := decoy.Answer{Family: "no-such-file", Action: Decoyed, Result: sandbox.Result{Output: []byte("gone\n"), Exit: exit(1)}}
	r.gate.Decoys = &lateDecoys{rig: r, late: words}
	o := r.do(t)
	if v := r.recorded.Verdict; o.Output != "gone\n" || !v.Tainted || r.recorded.Original == nil || r.recorded.Original.Output != "real\n" {
		t.Errorf("shown %q, verdict %+v, original %+v", o.Output, v, r.recorded.Original)
	}
}

// lateDecoys answers a call that has run in words.
type lateDecoys struct {
	*rig
	late decoy.Answer
}

func (l *lateDecoys) Answer(ctx context.Context, req decoy.Request) decoy.Answer {
	if req.Late {
		return l.late
	}
	return l.rig.Answer(ctx, req)
}

// What the harness runs may leave things that are not the agent's: the maker of decoys is told.
func TestHarnessDisturbs(t *testing.T) {
	r, k := ownRig()
	call := bash(t, "cp -r /somewhere/tests /hidden")
	call.Principal = Harness
	if _, err := r.gate.Do(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	if k.disturbed != 1 {
		t.Errorf("told %d times", k.disturbed)
	}
}

// A Dry concludes and runs nothing; calls that are followed ask no judge.
func TestDry(t *testing.T) {
	r := newRig()
	r.hits = []rules.Hit{hit(rules.GitHistory)}
	d := NewDry(judge.Task{Workdir: "/testbed"}, r, r, "sha256:0", r, Policy{}, nil)
	if err := d.Follow(t.Context(), bash(t, "git log")); err != nil || len(r.cases) > 0 {
		t.Fatalf("%v, %d cases", err, len(r.cases))
	}
	rec, err := d.Do(t.Context(), bash(t, "git show x"))
	if err != nil || rec.Verdict.Decision != Block || rec.Verdict.Action != Executed || rec.Ordinal != 2 || len(r.cases) != 1 || len(r.ran) > 0 {
		t.Errorf("%v, record %+v, %d cases, ran %v", err, rec, len(r.cases), r.ran)
	}
}
