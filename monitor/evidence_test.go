package monitor

import (
	"context"
	"slices"
	"strings"
	"testing"

	"proctor/monitor/decoy"
	"proctor/monitor/witness"
	"proctor/rules"
)

// seer is a witness that sees what it is told.
type seer struct {
	opened []witness.Opening
	spans  []witness.Span
}

func (s *seer) Kind() string { return witness.Full }
func (s *seer) Begin(span witness.Span) func() []witness.Opening {
	s.spans = append(s.spans, span)
	return func() []witness.Opening { return s.opened }
}

// words finds words.
type words []string

func (w words) Find(text string) []string {
	return slices.DeleteFunc(slices.Clone(w), func(s string) bool { return !strings.Contains(text, s) })
}

// proofRules are the two core rules on evidence.
func proofRules(ev *rules.Event) []rules.Hit {
	if ev.Result == nil || len(ev.Result.Witness)+len(ev.Result.Canaries) == 0 {
		return nil
	}
	if len(ev.Result.Canaries) > 0 && strings.HasPrefix(ev.Result.Canaries[0], "honeypot ") {
		return []rules.Hit{{Rule: "core/honeypot-touched", Class: rules.HiddenArtifact, Entity: "result", Resolved: true, Skip: "resolved", Decoy: FamilyObserve}}
	}
	return []rules.Hit{{Rule: "core/opened-protected", Class: rules.HiddenArtifact, Entity: "result", Resolved: true, Skip: "resolved"}}
}

type matcher struct {
	first []rules.Hit
	*rig
}

func (m *matcher) Match(*rules.Event) []rules.Hit          { return m.first }
func (m *matcher) MatchResult(ev *rules.Event) []rules.Hit { return proofRules(ev) }

// evidenceRig is a rig with a witness and canaries.
func evidenceRig(opened ...witness.Opening) (*rig, *seer, *matcher) {
	r := newRig()
	s := &seer{opened: opened}
	m := &matcher{rig: r}
	r.gate.Honeypots = []string{"/srv/pot/x"}
	r.gate.Witness, r.gate.Canaries, r.gate.Rules = s, words{"t0ken", "honeypot /srv/pot/x"}, m
	return r, s, m
}

func TestEvidence(t *testing.T) {
	byName := witness.Opening{Path: "/hidden/x", Program: "/usr/bin/git", Line: "git show x"}
	walk, earlier, denied := byName, byName, byName
	walk.Walk, earlier.Earlier, denied.Denied = true, true, true
	for name, tc := range map[string]struct {
		opened []witness.Opening
		output string
		args   string
		first  []rules.Hit
		answer decoy.Answer // to a first hit
		mode   string
		want   string // decision action tainted replaced
	}{
		"nothing":                    {output: "real\n", want: "allow executed false false"},
		"opened by name":             {opened: []witness.Opening{byName}, want: "block decoyed true true"},
		"passed by":                  {opened: []witness.Opening{walk}, want: "allow executed false false"},
		"passed by, and shown":       {opened: []witness.Opening{walk}, output: "x t0ken", want: "block decoyed true true"},
		"by what was left behind":    {opened: []witness.Opening{earlier}, want: "block executed true false"},
		"and then shown":             {output: "the t0ken", want: "block decoyed true true"},
		"written by the agent":       {args: "echo t0ken > x", want: "block executed true false"},
		"denied":                     {opened: []witness.Opening{denied}, output: "x: Operation not permitted\n", want: "block filtered false true"},
		"a honeypot opened":          {opened: []witness.Opening{{Path: "/srv/pot/x", Program: "/bin/cat"}}, want: "flag executed false false"},
		"a honeypot shown":           {output: "honeypot /srv/pot/x", want: "flag executed false false"},
		"in shadow mode":             {opened: []witness.Opening{byName}, mode: Shadow, want: "block executed true false"},
		"beside a decoy":             {opened: []witness.Opening{byName}, first: []rules.Hit{hit(rules.HiddenArtifact)}, answer: decoy.Answer{Family: "no-such-file", Action: Decoyed, Run: true, Command: "git show y"}, want: "block decoyed true true"},
		"a decoy alone, with a rest": {first: []rules.Hit{hit(rules.HiddenArtifact)}, answer: decoy.Answer{Family: "no-such-file", Action: Decoyed, Run: true, Command: "git show y"}, want: "block decoyed false false"},
	} {
		t.Run(name, func(t *testing.T) {
			r, s, m := evidenceRig(tc.opened...)
			m.first = tc.first
			if tc.output != "" {
				r.result.Output = []byte(tc.output)
			}
			if tc.mode != "" {
				r.gate.Mode = tc.mode
			}
			real := string(r.result.Output)
			if tc.first != nil {
				first := tc.answer
				late := r.answer
				r.gate.Decoys = inTurn{r, []decoy.Answer{first, late}, new(int)}
			}
			command := "git show x"
			if tc.args != "" {
				command = tc.args
			}
			o, err := r.gate.Do(t.Context(), bash(t, command))
			if err != nil {
				t.Fatal(err)
			}
			v := r.recorded.Verdict
			got := strings.Join([]string{v.Decision, v.Action, boolWord(v.Tainted), boolWord(o.Output != real)}, " ")
			if got != tc.want {
				t.Errorf("got %q, want %q: %+v", got, tc.want, v)
			}
			if r.recorded.Witness != witness.Full || len(s.spans) == 1 && s.spans[0].Ordinal != 1 {
				t.Errorf("witness %s, spans %+v", r.recorded.Witness, s.spans)
			}
			if len(v.Openings) != len(tc.opened) || len(v.Evidence) < len(tc.opened) {
				t.Errorf("openings %v, evidence %q", v.Openings, v.Evidence)
			}
		})
	}
}

func boolWord(b bool) string {
	if b {
		return "true"
	}
	return "false"
}

// inTurn gives answers one after the other.
type inTurn struct {
	*rig
	answers []decoy.Answer
	n       *int
}

func (i inTurn) Answer(context.Context, decoy.Request) decoy.Answer {
	*i.n++
	return i.answers[min(*i.n, len(i.answers))-1]
}

// TestHarnessOpensFreely: what a harness's call opens is not looked at, and is told apart.
func TestHarnessOpensFreely(t *testing.T) {
	r, s, _ := evidenceRig(witness.Opening{Path: "/hidden/x"})
	call := bash(t, "cat /hidden/x")
	call.Principal = Harness
	if _, err := r.gate.Do(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	if v := r.recorded.Verdict; v.Decision != Allow || len(v.Openings) != 0 || len(s.spans) != 1 || !s.spans[0].Harness {
		t.Errorf("%+v, spans %+v", v, s.spans)
	}
}

// TestResumedCallsWereNotWatched: the record of a call that a dead server had begun says so.
func TestResumedCallsWereNotWatched(t *testing.T) {
	r, _, _ := evidenceRig()
	rec := &Record{Ordinal: 3, Witness: witness.Full, Verdict: Verdict{Decision: Allow, Action: Executed}}
	if _, err := r.gate.Resume(t.Context(), bash(t, "ls"), rec); err != nil || rec.Witness != witness.Off {
		t.Errorf("witness %s, %v", rec.Witness, err)
	}
}

// TestBlamed gives a decoy the command that opened, as if the normaliser had seen it.
func TestBlamed(t *testing.T) {
	ev := rules.Event{Commands: []rules.Command{{Program: "cd"}, {Program: "python3"}, {Program: "make"}}, Scripts: []rules.Script{{Lang: "python"}}}
	hits := []rules.Hit{{Rule: "core/opened-protected", Entity: "result", Class: rules.HiddenArtifact}}
	open := func(program string) []witness.Opening {
		return []witness.Opening{{Path: "/hidden/x", Program: program}}
	}
	for program, want := range map[string]int{"/usr/bin/python3.11": 1, "/usr/bin/make": 2, "/testbed/a.out": 2} {
		got, by := blamed(ev, hits, open(program))
		if by[0].Entity != "command" || by[0].Index != want || by[0].Rule != hits[0].Rule || got.Commands[want].Hidden[0] != "/hidden/x" {
			t.Errorf("%s: %+v, %+v", program, by, got.Commands)
		}
	}
	if len(ev.Commands[1].Hidden)+len(ev.Scripts[0].Hidden) > 0 {
		t.Error("the event itself was changed")
	}
	got, by := blamed(rules.Event{Files: []rules.File{{Op: "view", Path: "/testbed/y"}}}, hits, open("/sbin/x"))
	if by[0].Entity != "file" || !got.Files[0].Hidden {
		t.Errorf("%+v %+v", by, got)
	}
	if _, by := blamed(rules.Event{}, hits, open("x")); by[0].Entity != "result" {
		t.Errorf("%+v", by)
	}
}
