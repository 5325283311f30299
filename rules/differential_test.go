package rules

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"proctor/internal/lazydfa/lazydfatest"
)

// randomPack makes a pack of n rules over commands and scripts.
func randomPack(r *rand.Rand, n int) string {
	var b strings.Builder
	b.WriteString(head + "rules:\n")
	for i := range n {
		var blocks []string
		for range 1 + r.IntN(3) {
			blocks = append(blocks, randomBlock(r))
		}
		how := "any"
		if r.IntN(4) == 0 {
			how = "all"
		}
		fmt.Fprintf(&b, "  - {id: r%d, title: x, severity: low, category: fabrication, match: {%s: [%s]}", i, how, strings.Join(blocks, ", "))
		if r.IntN(3) == 0 {
			block := randomBlock(r)
			fmt.Fprintf(&b, ", unless: [{name: x, reason: y, %s]", block[1:])
		}
		b.WriteString("}\n")
	}
	return b.String()
}

// randomBlock makes one block.
func randomBlock(r *rand.Rand) string {
	quote := func(s string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\xff", "y").Replace(s) + `"`
	}
	var conds []string
	if r.IntN(2) == 0 {
		conds = append(conds, "program: ["+[]string{"git, hg", "a", "git"}[r.IntN(3)]+"]")
	}
	for _, f := range []string{"line", "args"} {
		switch r.IntN(5) {
		case 0:
			conds = append(conds, f+"|contains: ["+quote("k"+lazydfatest.RandomText(r, 1))+", "+quote("a"+lazydfatest.RandomText(r, 2))+"]")
		case 1:
			conds = append(conds, f+"|re|all: ["+quote(lazydfatest.RandomExpr(r, 2))+", "+quote(lazydfatest.RandomExpr(r, 1))+"]")
		case 2:
			conds = append(conds, f+"|re: "+quote(lazydfatest.RandomExpr(r, 3)))
		case 3:
			glob := []string{"**/log", "*k?--all", "**git*", "[gk]*"}[r.IntN(4)]
			conds = append(conds, f+"|startswith: "+quote("g"+lazydfatest.RandomText(r, 1)), f+"|glob: "+quote(glob))
		}
	}
	if len(conds) == 0 {
		conds = []string{"opaque: false"}
	}
	return "{command: {" + strings.Join(conds, ", ") + "}}"
}

// randomEvent makes an event of a few commands.
func randomEvent(r *rand.Rand) *Event {
	ev := &Event{}
	for range r.IntN(4) {
		ev.Commands = append(ev.Commands, Command{Program: []string{"git", "hg", "a", "ls"}[r.IntN(4)],
			Args: []string{lazydfatest.RandomText(r, 3), lazydfatest.RandomText(r, 2)}, Line: lazydfatest.RandomText(r, 8)})
	}
	return ev
}

// agree holds the fast way of matching against the plain one.
func agree(t *testing.T, set *Set, ev *Event) int {
	t.Helper()
	fast, plain := set.Session(), set.PlainSession()
	got, want := fast.Match(ev), plain.Match(ev)
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("the prefilter changes what hits (-plain +fast):\n%s\nevent: %+v", d, ev)
	}
	return len(want)
}

func TestFastMatchingAgreesWithPlain(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	hits := 0
	for range 60 {
		p, probs := load(randomPack(r, 20))
		if errs := Errors(probs); len(errs) > 0 && !slices.Equal(codesOf(errs), []string{"control-character"}) {
			t.Fatal(errs[0])
		}
		set := mustCompile(t, p, nil)
		for range 40 {
			hits += agree(t, set, randomEvent(r))
		}
	}
	if hits < 400 {
		t.Errorf("only %d hits: the texts do not meet the expressions", hits)
	}
}

func FuzzPrefilter(f *testing.F) {
	f.Add(`(?i)kelvin`, "\u212aelvin", "x")
	f.Add(`(?i:s)ecret|hidden`, "ſecret", "HIDDEN")
	f.Add(`(?:abc)+d`, "abcabcd", "")
	f.Add("\ufffdab", "\xffab", "")
	f.Add(`(?i)straße`, "STRASSE straẞe", "")
	f.Add(`(?i)(bewert|оцен|评|évalu|ⱥb)`, "ОЦЕНКА", "ÉVALU Ⱥb")
	f.Add(`(?i)ǆaſk`, "ǅASK", "ǄaſK")
	f.Fuzz(func(t *testing.T, expr, a, b string) {
		if len(expr) > 200 || strings.ContainsAny(expr, "$") {
			return // ${task.x} is not part of the expression
		}
		re, err := regexp.Compile(expr)
		if err != nil || expr == "" {
			return
		}
		c, missing, cerr := compileCond(&Cond{Key: "args|re", Field: "args", Mods: []string{"re"}, Values: []string{expr}}, nil, nil, nil)
		if cerr != nil || missing != nil {
			t.Fatal(cerr, missing)
		}
		c.derive()
		var ids numbering
		c.groups[0].number(&ids)
		if re.MatchString(a) || re.MatchString(b) {
			if f := ids.filter(); f != nil && !c.groups[0].possible(f.scan(b, f.scan(a, nil))) {
				t.Errorf("%q matches %q or %q, and the prefilter says no; literals %q", expr, a, b, ids.literals)
			}
		}
	})
}

func TestLiterals(t *testing.T) {
	for expr, want := range map[string]string{
		`git log`:                       "git log",
		`^git\s+(?:log|reflog)`:         "(git & (log | reflog))",
		`(?:log|reflog) --all`:          "(log --all | reflog --all)",
		`log|reflog`:                    "(log | reflog)",
		`(?i)SECRET`:                    "secret",
		`a*b?`:                          "",
		`x`:                             "",
		`(?:abc){2}`:                    "abcabc",
		`[ab]cd|ef`:                     "(acd | bcd | ef)",
		`log|.*`:                        "",
		`a very long literal that ends`: "a very long lite",
		`(?i)\bnot(?:e|ice)\b.*judge`:   "((note | notice) & judge)",
		`(?:ab)?cd`:                     "(cd | abcd)",
		`x{3}[\d]+yy`:                   "(xxx & yy)",
		`(?:foo.*bar|baz)+`:             "((foo & bar) | baz)",
		`(?i)k[sS]h`:                    "(ksh | kſh)",
	} {
		if got := spell(needOf("re", expr)); got != want {
			t.Errorf("%s: %s, want %s", expr, got, want)
		}
	}
}

// spell writes a need as a formula.
func spell(n *need) string {
	switch {
	case n == nil:
		return ""
	case n.subs == nil:
		return n.text
	}
	var parts []string
	for _, s := range n.subs {
		parts = append(parts, spell(s))
	}
	if n.all {
		return "(" + strings.Join(parts, " & ") + ")"
	}
	return "(" + strings.Join(parts, " | ") + ")"
}
