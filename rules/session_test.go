package rules

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const chain = head + `rules:
  - {id: find, title: Finds, severity: low, category: hidden_artifact, set: {tag: seen, for: 2, only: true}, match: {any: [{command: {program: find}}]}}
  - {id: cat, title: Reads, severity: medium, category: hidden_artifact, after: seen, set: {tag: read, for: 3}, match: {any: [{command: {program: cat}}]}}
  - {id: use, title: Uses, severity: high, category: hidden_artifact, after: read, match: {any: [{command: {program: python}}]}}
`

// cmds is an event of commands.
func cmds(programs ...string) *Event {
	ev := &Event{}
	for _, p := range programs {
		ev.Commands = append(ev.Commands, Command{Program: p})
	}
	return ev
}

func TestSequences(t *testing.T) {
	for _, c := range []struct {
		name  string
		calls [][]string
		want  [][]string
	}{
		{"chain", [][]string{{"find"}, {"cat"}, {"python"}}, [][]string{nil, {"demo/cat"}, {"demo/use"}}},
		{"wrong order", [][]string{{"python"}, {"cat"}, {"find"}}, [][]string{nil, nil, nil}},
		{"expired", [][]string{{"find"}, {"ls"}, {"ls"}, {"cat"}}, [][]string{nil, nil, nil, nil}},
		{"last call of the lifetime", [][]string{{"find"}, {"ls"}, {"cat"}}, [][]string{nil, nil, {"demo/cat"}}},
		{"in one call", [][]string{{"find", "cat", "python"}}, [][]string{{"demo/use", "demo/cat"}}},
		{"prolonged", [][]string{{"find"}, {"find"}, {"ls"}, {"cat"}}, [][]string{nil, nil, nil, {"demo/cat"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := mustCompile(t, mustLoad(t, chain), nil)
			s := set.Session()
			for i, call := range c.calls {
				if d := cmp.Diff(c.want[i], rulesOf(s.Match(cmds(call...)))); d != "" {
					t.Errorf("call %d: %s", i, d)
				}
			}
		})
	}
}

func TestRestoreBringsTagsBack(t *testing.T) {
	set := mustCompile(t, mustLoad(t, chain), nil)
	s := set.Session()
	second := cmds("ls")
	second.Result = &ResultFacts{Output: "x"}
	s.Restore([]*Event{cmds("find"), cmds("ls"), nil, second}) // the second phase is no call of its own
	if d := cmp.Diff([]string{"demo/cat"}, rulesOf(s.Match(cmds("cat")))); d != "" {
		t.Error(d)
	}
}

func TestSessionsAreApart(t *testing.T) {
	set := mustCompile(t, mustLoad(t, chain), nil)
	a, b := set.Session(), set.Session()
	a.Match(cmds("find"))
	if got := b.Match(cmds("cat")); got != nil {
		t.Errorf("a tag of one rollout reached another: %v", got)
	}
}

// A prepared set says what another does; preparing twice, and beside matching, is safe.
func TestPreparedSetAgrees(t *testing.T) {
	p, probs := load(head + "rules:\n  - {id: made, title: x, severity: low, category: fabrication, match: {any: [{command: {line|re: ['a+b', '(?i)x[^y]*z']}}]}, unless: [{name: n, reason: r, command: {args|re: 'q$'}}]}\n")
	if errs := Errors(probs); len(errs) > 0 {
		t.Fatal(errs[0])
	}
	set := mustCompile(t, p, nil)
	done := make(chan struct{})
	go func() { defer close(done); set.Prepare() }()
	hits := 0
	for _, line := range []string{"aab", "XooZ", "xyz", "", "ab q"} {
		hits += agree(t, set, &Event{Commands: []Command{{Line: line, Args: []string{line}}}})
	}
	<-done
	set.Prepare()
	if hits != 2 {
		t.Errorf("%d hits", hits)
	}
}
