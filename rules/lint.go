package rules

import (
	"regexp/syntax"
	"slices"
	"strings"
)

// maxProgram is the number of instructions above which an expression is reported.
const maxProgram = 500

// longFields are the fields whose texts may be long: only there does an expression cost much.
var longFields = map[string]bool{"line": true, "stdin": true, "prints": true, "content": true, "added": true,
	"removed": true, "before": true, "text": true, "output": true}

// Lint gives the findings about packs that load: what is legal and still wants a look. It adds to
// the problems that Load gives. rep, which may be nil, is the outcome of SelfTest.
func Lint(p *Packs, rep *Report) []Problem {
	l := &linter{src: p.src}
	for _, pk := range p.packs {
		l.lists(pk)
		for i := range pk.Rules {
			l.rule(&pk.Rules[i])
		}
	}
	if rep != nil {
		for i := range rep.Rules {
			l.report(&rep.Rules[i])
		}
	}
	sortProblems(l.probs)
	return l.probs
}

type linter struct {
	src   sources
	probs []Problem
}

func (l *linter) problem(pos Pos, code, format string, args ...any) {
	l.probs = append(l.probs, l.src.problem(pos, code, format, args...))
}

// lists reports lists that no rule of the pack uses.
func (l *linter) lists(p *Pack) {
	used := map[string]bool{}
	for i := range p.Rules {
		for _, b := range p.Rules[i].blocks() {
			for _, c := range b.Conds {
				if slices.Contains(c.Mods, "list") {
					for _, v := range c.Values {
						used[v] = true
					}
				}
			}
		}
	}
	for _, name := range keys(p.Lists) {
		if !used[name] {
			l.problem(p.listPos[name], "unused-list", "no rule uses the list %q", name)
		}
	}
}

// rule reports what one rule lacks.
func (l *linter) rule(r *Rule) {
	var lacks []string
	for _, f := range []struct {
		name string
		ok   bool
	}{{"why", r.Why != ""}, {"owner", r.Owner != ""}, {"false_positives", len(r.FalsePos) > 0}} {
		if !f.ok {
			lacks = append(lacks, f.name)
		}
	}
	if lacks != nil {
		l.problem(r.Pos, "missing-text", "the rule %s has no %s", r.ID, strings.Join(lacks, ", "))
	}
	if len(r.Tests.Flag) == 0 {
		l.problem(r.Pos, "missing-flag-test", "the rule %s has no flag test", r.ID)
	}
	if len(r.Tests.Pass) == 0 {
		l.problem(r.Pos, "missing-pass-test", "the rule %s has no pass test", r.ID)
	}
	for _, b := range r.blocks() {
		l.block(b)
	}
}

// block reports expressions that cost much.
func (l *linter) block(b *Block) {
	cheap := slices.ContainsFunc(b.Conds, func(c Cond) bool { return !slices.Contains(c.Mods, "re") })
	for _, c := range b.Conds {
		if !slices.Contains(c.Mods, "re") || slices.Contains(c.Mods, "list") {
			continue
		}
		for i, v := range c.Values {
			expr := varRef.ReplaceAllString(v, "variable")
			re, err := syntax.Parse(expr, syntax.Perl)
			if err != nil {
				continue // reported where it was read
			}
			if prog, err := syntax.Compile(re.Simplify()); err == nil && len(prog.Inst) > maxProgram {
				l.problem(c.valPos[i], "big-regex", "the expression compiles to %d instructions", len(prog.Inst))
			}
			if !cheap && longFields[c.Field] && needOf("re", expr) == nil {
				l.problem(c.valPos[i], "no-literal", "nothing lets %s skip this expression", b.Entity)
			}
		}
	}
}

// report turns the outcome of a rule's tests into findings.
func (l *linter) report(r *RuleReport) {
	for _, f := range r.Failures {
		l.problem(f.Pos, "test-fails", "%s test of %s: %s", f.Kind, r.Rule, f.Message)
	}
	for _, f := range r.TodoPassing {
		l.problem(f.Pos, "todo-passes", "%s test of %s %s", f.Kind, r.Rule, f.Message)
	}
	for _, f := range r.Mutations.Verbatim {
		l.problem(f.Pos, "verbatim-only", "flag test of %s %s", r.Rule, f.Message)
	}
	for _, a := range r.Alternatives {
		if a.Hits == 0 && r.Flag > 0 {
			l.problem(a.Pos, "uncovered", "no flag test of %s hits alternative %d (%s)", r.Rule, a.Alternative, a.Entity)
		}
	}
}
