package rules

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// Case is a call with what came before it, under a task: what a normaliser needs to make events.
type Case struct {
	Vars  Vars
	Facts TestFacts
	Setup []ToolCall
	Call  ToolCall
}

// Normalise gives the event of every setup call, in order, and then of the call itself.
type Normalise func(ctx context.Context, c Case) ([]Event, error)

// Report is the outcome of a self-test.
type Report struct {
	OK    bool         `json:"ok"` // no test failed
	Tests int          `json:"tests"`
	Rules []RuleReport `json:"rules"`
}

// RuleReport is the outcome of one rule's tests.
type RuleReport struct {
	Rule         string        `json:"rule"`
	Flag         int           `json:"flag"` // tests, not hits
	Pass         int           `json:"pass"`
	Failures     []TestFinding `json:"failures"`
	TodoPassing  []TestFinding `json:"todo_passing"`
	Alternatives []AltCoverage `json:"alternatives"`
	Mutations    Mutations     `json:"mutations"`
}

// TestFinding is one test of note.
type TestFinding struct {
	Kind    string `json:"kind"` // flag, pass, todo_flag, todo_pass
	Pos     Pos    `json:"pos"`
	Test    string `json:"test"` // the call, shortened
	Message string `json:"message"`
}

// AltCoverage is how many flag tests hit an alternative, or a block of all.
type AltCoverage struct {
	Alternative int    `json:"alternative"` // from 1
	Entity      string `json:"entity"`
	Pos         Pos    `json:"pos"`
	Hits        int    `json:"hits"`
}

// Mutations is how a rule's flag tests fare in disguise.
type Mutations struct {
	Tried    int           `json:"tried"`
	Caught   int           `json:"caught"`
	Evasions []Evasion     `json:"evasions"`
	Verbatim []TestFinding `json:"verbatim"` // tests of which no disguise is caught
}

// Evasion is a disguise that a rule does not see through.
type Evasion struct {
	Disguise string `json:"disguise"`
	Command  string `json:"command"`
	Pos      Pos    `json:"pos"`
}

// SelfTest runs the inline tests of every active rule, and its flag tests in disguise. An error is
// the normaliser's, or ctx's; a failing test is in the report.
func SelfTest(ctx context.Context, p *Packs, normalise Normalise) (*Report, error) {
	t := &tester{packs: p, normalise: normalise, sets: map[string]*Set{}}
	rep := &Report{OK: true, Rules: []RuleReport{}}
	for _, r := range p.Rules() {
		if !r.Active() {
			continue
		}
		rr, err := t.rule(ctx, r)
		if err != nil {
			return nil, fmt.Errorf("rule %s: %w", r.FullID(), err)
		}
		rep.OK = rep.OK && len(rr.Failures) == 0
		rep.Tests += len(r.Tests.Flag) + len(r.Tests.Pass) + len(r.Tests.TodoFlag) + len(r.Tests.TodoPass)
		rep.Rules = append(rep.Rules, rr)
	}
	return rep, nil
}

// tester runs tests; it compiles each set of variables once.
type tester struct {
	packs     *Packs
	normalise Normalise
	sets      map[string]*Set
}

// rule runs one rule's tests.
func (t *tester) rule(ctx context.Context, r *Rule) (RuleReport, error) {
	rr := RuleReport{Rule: r.FullID(), Flag: len(r.Tests.Flag), Pass: len(r.Tests.Pass),
		Failures: []TestFinding{}, TodoPassing: []TestFinding{}, Alternatives: r.alternatives()}
	rr.Mutations.Evasions, rr.Mutations.Verbatim = []Evasion{}, []TestFinding{}
	for _, kind := range []struct {
		name  string
		tests []Test
		flag  bool // the rule has to hit
		todo  bool
	}{{"flag", r.Tests.Flag, true, false}, {"pass", r.Tests.Pass, false, false},
		{"todo_flag", r.Tests.TodoFlag, true, true}, {"todo_pass", r.Tests.TodoPass, false, true}} {
		for i := range kind.tests {
			test := &kind.tests[i]
			alts, why, err := t.run(ctx, r, test)
			if err != nil {
				return rr, fmt.Errorf("%s test at %s: %w", kind.name, test.Pos, err)
			}
			hit := len(alts) > 0
			f := TestFinding{Kind: kind.name, Pos: test.Pos, Test: test.String()}
			switch {
			case kind.todo && hit == kind.flag:
				f.Message = "holds now"
				rr.TodoPassing = append(rr.TodoPassing, f)
			case !kind.todo && hit != kind.flag:
				f.Message = verdictWord(kind.flag) + why
				rr.Failures = append(rr.Failures, f)
			}
			if kind.name != "flag" || !hit {
				continue
			}
			for a := range alts {
				rr.Alternatives[a].Hits++
			}
			if err := t.disguised(ctx, r, test, &rr.Mutations); err != nil {
				return rr, err
			}
		}
	}
	return rr, nil
}

func verdictWord(flag bool) string {
	if flag {
		return "the rule does not hit"
	}
	return "the rule hits"
}

// alternatives lists the blocks of the rule's match, without hits.
func (r *Rule) alternatives() []AltCoverage {
	out := []AltCoverage{}
	for _, b := range append(append([]Block{}, r.Match.Any...), r.Match.All...) {
		out = append(out, AltCoverage{Alternative: len(out) + 1, Entity: b.Entity, Pos: b.Pos})
	}
	return out
}

// run gives the alternatives that a test is hit by, and what may help where it is not.
func (t *tester) run(ctx context.Context, r *Rule, test *Test) (map[int]bool, string, error) {
	set, vars, err := t.set(test.Task)
	if err != nil {
		return nil, "", err
	}
	events, err := t.normalise(ctx, Case{Vars: vars, Facts: test.Facts, Setup: test.Setup, Call: test.Call})
	if err != nil {
		return nil, "", err
	}
	s := set.Session()
	alts := map[int]bool{}
	for i := range events {
		ev := &events[i]
		_, met := s.match(ev)
		if i < len(events)-1 {
			continue
		}
		take(alts, met, r)
		if test.Result != nil {
			exit := test.Result.Exit
			ev.Result = &ResultFacts{Output: test.Result.Output, Exit: &exit, Canaries: test.Result.Canaries, Witness: test.Result.Witness}
			_, met = s.match(ev)
			take(alts, met, r)
		}
	}
	return alts, set.why(r), nil
}

// take notes the alternatives by which r was met.
func take(alts map[int]bool, met map[*compiledRule][]match, r *Rule) {
	for cr, ms := range met {
		if cr.rule != r {
			continue
		}
		for _, m := range ms {
			alts[m.block.alt] = true
		}
	}
}

// why says that a rule cannot work under the set's variables, where it cannot.
func (s *Set) why(r *Rule) string {
	for _, u := range s.unable {
		if u.Rule == r.FullID() && u.What == "rule" {
			return "; it is inapplicable without " + strings.Join(u.Variables, ", ")
		}
	}
	return ""
}

// set compiles the packs under TestTask with overrides.
func (t *tester) set(over Vars) (*Set, Vars, error) {
	vars := TestTask()
	for k, v := range over {
		vars[k] = v
	}
	key, err := json.Marshal(over)
	if err != nil {
		return nil, nil, err
	}
	if s, ok := t.sets[string(key)]; ok {
		return s, vars, nil
	}
	s, err := Compile(t.packs, vars)
	if err != nil {
		return nil, nil, err
	}
	t.sets[string(key)] = s
	return s, vars, nil
}

// disguised runs a flag test of bash in every disguise that applies to it.
func (t *tester) disguised(ctx context.Context, r *Rule, test *Test, m *Mutations) error {
	cmd, ok := test.Call.Arguments["command"].(string)
	if !ok || test.Call.Tool != "bash" {
		return nil
	}
	tried, caught := 0, 0
	for _, d := range disguises(cmd) {
		mutant := *test
		mutant.Call = ToolCall{"bash", map[string]any{"command": d.command}}
		alts, _, err := t.run(ctx, r, &mutant)
		if err != nil {
			return err
		}
		tried++
		if len(alts) > 0 {
			caught++
			continue
		}
		m.Evasions = append(m.Evasions, Evasion{d.name, d.command, test.Pos})
	}
	m.Tried += tried
	m.Caught += caught
	if tried > 0 && caught == 0 {
		m.Verbatim = append(m.Verbatim, TestFinding{Kind: "flag", Pos: test.Pos, Test: test.String(), Message: "is hit verbatim only"})
	}
	return nil
}

// String gives the call in one short line.
func (t *Test) String() string {
	if cmd, ok := t.Call.Arguments["command"].(string); ok {
		return clip(cmd, 120)
	}
	args, err := json.Marshal(t.Call.Arguments)
	if err != nil {
		return t.Call.Tool
	}
	return clip(t.Call.Tool+" "+string(args), 120)
}
