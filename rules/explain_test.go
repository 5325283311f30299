package rules

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExplain(t *testing.T) {
	p := mustLoad(t, head+`rules:
  - {id: hit, title: A, severity: low, category: fabrication, match: {any: [{command: {program: git}}]}}
  - {id: near, title: B, severity: low, category: fabrication, match: {any: [{command: {program: git, line|contains: [reflog, fsck]}}]}}
  - id: spared
    title: C
    severity: low
    category: fabrication
    match: {any: [{command: {program: git}}]}
    unless: [{name: log, reason: harmless, command: {args: log}}]
  - {id: later, title: D, severity: low, category: fabrication, after: t, match: {any: [{command: {program: git}}]}}
  - {id: first, title: E, severity: low, category: fabrication, set: {tag: t, for: 1}, match: {any: [{command: {program: never}}]}}
  - {id: lame, title: F, severity: low, category: fabrication, match: {any: [{command: {line|contains: "${task.package}"}}]}}
`)
	ev := &Event{Commands: []Command{{Program: "git", Args: []string{"log"}, Line: "git log"}}}
	x := mustCompile(t, p, nil).Session().Explain(ev)
	if d := cmp.Diff([]string{"demo/hit"}, rulesOf(x.Hits)); d != "" {
		t.Error(d)
	}
	if x.Decision != "judge" {
		t.Errorf("decision %s", x.Decision)
	}
	if d := cmp.Diff([]Near{{"demo/near", 1, "command", 0, []string{"program"}, []Missed{{"line|contains", []string{"reflog", "fsck"}, []string{"git log"}}}}}, x.Near); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]Excepted{{"demo/spared", "log", "harmless", "command", 0}}, x.Excepted); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]Waiting{{"demo/later", "t"}}, x.Waiting); d != "" {
		t.Error(d)
	}
	if len(x.Inapplicable) != 2 || x.Inapplicable[0].Rule != "demo/lame" {
		t.Errorf("got %+v", x.Inapplicable)
	}
}

func TestDecision(t *testing.T) {
	for _, c := range []struct {
		hits []Hit
		want string
	}{{nil, "allow"}, {[]Hit{{Skip: "never", Resolved: true}}, "judge"}, {[]Hit{{Skip: "resolved"}}, "judge"}, {[]Hit{{}, {Skip: "resolved", Resolved: true}}, "block"}} {
		if got := decision(c.hits); got != c.want {
			t.Errorf("%+v: got %s, want %s", c.hits, got, c.want)
		}
	}
}
