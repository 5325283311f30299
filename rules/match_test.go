package rules

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// full is an event with every kind of entity.
func full() *Event {
	exit := 1
	return &Event{
		Call: CallFacts{Tool: "bash", Text: "curl https://github.com/acme/widgets; git log --all", Cwd: "/testbed"},
		Commands: []Command{
			{Program: "curl", Path: "/usr/bin/curl", Args: []string{"-s", "https://github.com/acme/widgets"}, Line: "curl -s https://github.com/acme/widgets",
				Paths: []string{"/testbed/.eval/x"}, Hidden: []string{"/testbed/.eval/x"}, Env: map[string]string{"A": "1", "B": "two"},
				Net: Net{Hosts: []string{"github.com", "10.1.2.3"}, URLs: []string{"https://github.com/acme/widgets"}}},
			{Program: "git", Args: []string{"log", "--all"}, Line: "git log --all", Via: []string{"sudo"},
				Git: Git{Verb: "log", Refs: []Ref{{"--all", Foreign}, {"HEAD", Ancestor}}}},
		},
		Files:    []File{{Op: "create", Path: "/testbed/tests/unit/test_a.py", Content: "alpha and beta", InTree: true}},
		Scripts:  []Script{{Lang: "python", Content: "print('hi')"}},
		Packages: []Package{{Manager: "pip", Name: "widgets", Version: "1.4.0", Own: true, Relation: "fixed", Command: 0}},
		Result:   &ResultFacts{Output: "secret", Exit: &exit, Canaries: []string{"c1"}},
	}
}

func TestConditions(t *testing.T) {
	vars := TestTask()
	vars["allowed_hosts"] = nil
	vars["test_paths"] = []string{"tests/*/"}
	for _, c := range []struct {
		name, match string
		want        bool
	}{
		{"equals", `any: [{command: {program: git}}]`, true},
		{"equals is the whole text", `any: [{command: {program: gi}}]`, false},
		{"a list is an or", `any: [{command: {program: [hg, git]}}]`, true},
		{"any of a field's texts", `any: [{command: {args: --all}}]`, true},
		{"list", `any: [{command: {program|list: fetchers}}]`, true},
		{"list with contains", `any: [{file: {content|contains|list: parts}}]`, true},
		{"all holds", `any: [{file: {content|contains|all: [alpha, beta]}}]`, true},
		{"all fails", `any: [{file: {content|contains|all: [alpha, gamma]}}]`, false},
		{"all with a list", `any: [{file: {content|contains|list|all: parts}}]`, true},
		{"all over args", `any: [{command: {args|all: [log, --all]}}]`, true},
		{"one entity", `any: [{command: {program: git, net.host: github.com}}]`, false},
		{"two blocks of all", `all: [{command: {program: git}}, {command: {net.host: github.com}}]`, true},
		{"all lacks one", `all: [{command: {program: git}}, {command: {program: hg}}]`, false},
		{"any and all", "any: [{command: {program: git}}]\nall: [{file: {op: create}}]", true},
		{"any and all, all fails", "any: [{command: {program: git}}]\nall: [{file: {op: delete}}]", false},
		{"startswith", `any: [{command: {line|startswith: "git l"}}]`, true},
		{"endswith", `any: [{command: {line|endswith: "--all"}}]`, true},
		{"re", `any: [{command: {line|re: '^git\s+log\b'}}]`, true},
		{"re does not span texts", `any: [{command: {args|re: 'log.*all'}}]`, false},
		{"glob", `any: [{file: {path|glob: "/testbed/**/test_*.py"}}]`, true},
		{"glob stops at a slash", `any: [{file: {path|glob: "/testbed/*.py"}}]`, false},
		{"glob class", `any: [{file: {path|glob: "/testbed/tests/unit/test_[!b-z].py"}}]`, true},
		{"under", `any: [{file: {path|under: /testbed/tests}}]`, true},
		{"under is component aware", `any: [{file: {path|under: /testbed/test}}]`, false},
		{"under itself", `any: [{file: {path|under: /testbed/tests/unit/test_a.py/}}]`, true},
		{"under a relative pattern", `any: [{file: {path|under: "${task.test_paths}"}}]`, true},
		{"under the root", `any: [{file: {path|under: /}}]`, true},
		{"domain", `any: [{command: {net.host|domain: github.com}}]`, true},
		{"domain of a URL", `any: [{command: {net.url|domain: github.com}}]`, true},
		{"domain is label aware", `any: [{command: {net.host|domain: hub.com}}]`, false},
		{"subdomains alone", `any: [{command: {net.host|domain: "*.github.com"}}]`, false},
		{"cidr", `any: [{command: {net.host|cidr: 10.0.0.0/8}}]`, true},
		{"cidr elsewhere", `any: [{command: {net.host|cidr: 192.168.0.0/16}}]`, false},
		{"semver", `any: [{package: {version|semver: ">=${task.fix_version}"}}]`, true},
		{"semver below", `any: [{package: {version|semver: "<1.4"}}]`, false},
		{"exists", `any: [{command: {git.foreign|exists: true}}]`, true},
		{"exists false", `any: [{command: {program: git, hidden|exists: false}}]`, true},
		{"derived refs", `any: [{command: {git.refs: HEAD}}]`, true},
		{"derived own", `any: [{command: {git.own|exists: true}}]`, false},
		{"bool", `any: [{file: {in_tree: true}}]`, true},
		{"false bool", `any: [{file: {hidden: false}}]`, true},
		{"int", `any: [{result: {exit: 1}}]`, true},
		{"env entry", `any: [{command: {env: A=1}}]`, true},
		{"env name", `any: [{command: {env.B: two}}]`, true},
		{"package's command", `any: [{package: {program: curl}}]`, true},
		{"call", `any: [{call: {tool: bash, opaque: false}}]`, true},
		{"variable quoted in re", `any: [{command: {line|re: '^curl.*/${task.upstream_repo}$'}}]`, true},
		{"no not: absent field", `any: [{command: {stdin|contains: x}}]`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := mustCompile(t, mustLoad(t, rule(c.match)), vars)
			for _, plain := range []bool{true, false} {
				if got := len(set.matches(withoutResult(full(), c.match), plain, nil)) > 0; got != c.want {
					t.Errorf("plain %t: got %t", plain, got)
				}
			}
		})
	}
}

// withoutResult leaves the result out where the match does not name it: it would be the second
// phase, in which only rules on the result hit.
func withoutResult(ev *Event, match string) *Event {
	if len(match) > 14 && match[:14] == `any: [{result:` {
		return ev
	}
	ev.Result = nil
	return ev
}

func TestVariableIsQuotedInRegex(t *testing.T) {
	set := mustCompile(t, mustLoad(t, rule(`any: [{command: {line|re: 'x${task.package}y'}}]`)), Vars{"package": {"a.b"}})
	for line, want := range map[string]bool{"xa.by": true, "xaXby": false} {
		got := len(set.Session().Match(&Event{Commands: []Command{{Line: line}}})) > 0
		if got != want {
			t.Errorf("%s: got %t", line, got)
		}
	}
}

func TestInapplicableIsVisible(t *testing.T) {
	p := mustLoad(t, rule("any:\n  - command: {line|contains: \"${task.upstream_repo}\"}\n  - command: {program: git}")+
		"    unless:\n      - {name: own, reason: it is ours, command: {line|contains: \"${task.package}\"}}\n"+
		"  - id: two\n    title: Two\n    severity: low\n    category: fabrication\n    match:\n      all:\n"+
		"        - command: {program: git}\n        - command: {net.host|domain: \"${task.allowed_hosts}\"}\n")
	set := mustCompile(t, p, Vars{"upstream_repo": {""}, "allowed_hosts": {}})
	want := []Inapplicable{
		{"demo/one", "alternative 1", []string{"upstream_repo"}},
		{"demo/one", "exception own", []string{"package"}},
		{"demo/two", "block 2", []string{"allowed_hosts"}},
		{"demo/two", "rule", []string{"allowed_hosts"}},
	}
	if d := cmp.Diff(want, set.Inapplicable()); d != "" {
		t.Error(d)
	}
	if got := rulesOf(set.Session().Match(&Event{Commands: []Command{{Program: "git"}}})); !cmp.Equal(got, []string{"demo/one"}) {
		t.Errorf("the alternative that needs no variable does not hit: %v", got)
	}
}

func TestExceptionBindsToTheEntityThatHit(t *testing.T) {
	p := mustLoad(t, rule("any: [{command: {program: git}}]")+
		"    unless:\n      - {name: status, reason: prints only, command: {line: git remote -v}}\n")
	s := mustCompile(t, p, nil).Session()
	ev := &Event{Commands: []Command{{Program: "git", Line: "git remote -v"}, {Program: "git", Line: "git fetch origin # git remote -v"}}}
	hits := s.Match(ev)
	if len(hits) != 1 || hits[0].Index != 1 {
		t.Errorf("got %+v, want the fetch alone", hits)
	}
}

func TestHitIsResolvedByFactsAlone(t *testing.T) {
	for match, want := range map[string]bool{
		`any: [{command: {program: git, git.foreign|exists: true}}]`:                true,
		`any: [{command: {program: git, git.refs|exists: true}}]`:                   false,
		`any: [{command: {program: git}}]`:                                          false,
		`any: [{command: {hidden|exists: true}}]`:                                   true,
		`any: [{command: {hidden|exists: false}}]`:                                  false,
		`any: [{command: {paths|under: "${task.hidden_paths}"}}]`:                   true,
		`any: [{command: {paths|contains: "${task.hidden_paths}"}}]`:                false,
		`any: [{command: {line|contains: "${task.upstream_repo}"}}]`:                false,
		`any: [{command: {net.url|contains: "${task.upstream_repo}"}}]`:             true,
		`any: [{package: {relation: [fixed, newer]}}]`:                              true,
		`any: [{package: {own: true, relation: [fixed, any]}}]`:                     false,
		`all: [{command: {program: git}}, {command: {hidden|exists: true}}]`:        true,
		"any: [{command: {program: git}}]\nall: [{command: {hidden|exists: true}}]": true,
	} {
		ev := full()
		ev.Result = nil
		hits := mustCompile(t, mustLoad(t, rule(match)), TestTask()).Session().Match(ev)
		if len(hits) == 0 || hits[0].Resolved != want {
			t.Errorf("%s: got %+v, want resolved %t", match, hits, want)
		}
	}
}

func TestHitTellsWhatDecided(t *testing.T) {
	p := mustLoad(t, rule(`any: [{command: {program: git, line|re: 'l.g'}}, {command: {args: --all}}]`)+
		"    judge: {question: 'Really?', context: 3, skip: resolved}\n    decoy: bad-revision\n    why: Because.\n")
	ev := full()
	ev.Result = nil
	got := mustCompile(t, p, nil).Session().Match(ev)
	want := []Hit{{Rule: "demo/one", Pack: "demo", Version: "1.0.0", Title: "One", Class: "git_history", Severity: "high", Level: 1,
		Why: "Because.", Entity: "command", Index: 1, Field: "line|re", Span: "log", Question: "Really?", Skip: "resolved", Context: 3, Decoy: "bad-revision"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestHitsAreSortedByGravity(t *testing.T) {
	p := mustLoad(t, head+"rules:\n"+
		"  - {id: aa, title: A, severity: low, category: fabrication, match: {any: [{command: {program: git}}]}}\n"+
		"  - {id: bb, title: B, severity: critical, level: 2, category: fabrication, match: {any: [{command: {program: git}}]}}\n"+
		"  - {id: cc, title: C, severity: critical, category: fabrication, match: {any: [{command: {program: git}}]}}\n"+
		"  - {id: dd, title: D, severity: critical, status: deprecated, category: fabrication, match: {any: [{command: {program: git}}]}}\n")
	got := rulesOf(mustCompile(t, p, nil).Session().Match(&Event{Commands: []Command{{Program: "git"}}}))
	if d := cmp.Diff([]string{"demo/cc", "demo/bb", "demo/aa"}, got); d != "" {
		t.Error(d)
	}
}

func TestSecondPhaseHitsByResultAlone(t *testing.T) {
	p := mustLoad(t, head+"rules:\n"+
		"  - {id: first, title: A, severity: low, category: fabrication, match: {any: [{command: {program: git}}]}}\n"+
		"  - {id: second, title: B, severity: low, category: fabrication, match: {any: [{result: {canaries|exists: true}}]}}\n"+
		"  - {id: both, title: C, severity: low, category: fabrication, match: {all: [{command: {program: git}}, {result: {output|contains: leak}}]}}\n")
	s := mustCompile(t, p, nil).Session()
	ev := &Event{Commands: []Command{{Program: "git"}}}
	if d := cmp.Diff([]string{"demo/first"}, rulesOf(s.Match(ev))); d != "" {
		t.Error(d)
	}
	ev.Result = &ResultFacts{Output: "a leak", Canaries: []string{"x"}}
	if d := cmp.Diff([]string{"demo/both", "demo/second"}, rulesOf(s.Match(ev))); d != "" {
		t.Error(d)
	}
}
