package decoy

import (
	"testing"

	"proctor/rules"
	"proctor/sandbox"
)

// storeRequest is a blocked call that reads files of a repository's store with cat.
func storeRequest(change func(*Request)) Request {
	text := "cat .git/packed-refs"
	req := Request{
		Tool: "bash", Call: sandbox.Call{Op: sandbox.OpShell, Command: text},
		Event: rules.Event{
			Call:     rules.CallFacts{Tool: "bash", Text: text, Cwd: "/testbed"},
			Commands: []rules.Command{{Program: "cat", Args: []string{".git/packed-refs"}, Line: text, Paths: []string{"/testbed/.git/packed-refs"}, Span: rules.Span{End: len(text), Exact: true}}},
		},
		Hits: []rules.Hit{{Rule: "core/git-dir-read", Class: rules.GitHistory, Entity: "command"}},
	}
	change(&req)
	return req
}

// In a repository that was proved clean, reading its store is answered by the store itself, and
// denies nothing for later. Whatever else a call reaches for, or a repository that nobody looked at,
// is answered as before.
func TestCleanStoreSpeaksForItself(t *testing.T) {
	vars := rules.Vars{"workdir": {"/testbed"}, "hidden_paths": {"/testbed/.eval"}}
	for name, tc := range map[string]struct {
		scrubbed bool
		change   func(*Request)
		want     bool
	}{
		"clean":             {true, func(*Request) {}, true},
		"not scrubbed":      {false, func(*Request) {}, false},
		"another class":     {true, func(r *Request) { r.Hits[0].Class = rules.HiddenArtifact }, false},
		"git itself":        {true, func(r *Request) { r.Event.Commands[0].Git.Verb = "show" }, false},
		"writes":            {true, func(r *Request) { r.Event.Commands[0].Writes = []string{"/testbed/.git/packed-refs"} }, false},
		"opaque":            {true, func(r *Request) { r.Event.Commands[0].Opaque = true }, false},
		"elsewhere":         {true, func(r *Request) { r.Event.Commands[0].Paths = []string{"/srv/x/.git/packed-refs"} }, false},
		"elsewhere as well": {true, func(r *Request) { r.Event.Commands[0].Paths = append(r.Event.Commands[0].Paths, "/srv/.git/logs") }, false},
		"a hidden path too": {true, func(r *Request) {
			r.Event.Commands = append(r.Event.Commands, rules.Command{Program: "cat", Hidden: []string{"/testbed/.eval"}})
		}, false},
		"a foreign ref too": {true, func(r *Request) {
			r.Event.Commands = append(r.Event.Commands, rules.Command{Program: "git", Git: rules.Git{Verb: "show", Refs: []rules.Ref{{Text: "v9", Standing: rules.Foreign}}}})
		}, false},
		"a host too": {true, func(r *Request) {
			r.Event.Commands = append(r.Event.Commands, rules.Command{Program: "curl", Net: rules.Net{Hosts: []string{"git.acme.test"}}})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := New(Options{Vars: vars, Scrubbed: tc.scrubbed})
			a := m.Answer(t.Context(), storeRequest(tc.change))
			if got := a.Run && a.Command == "" && a.Rewrite == nil; got != tc.want {
				t.Fatalf("run as it is: %v, want %v (%+v)", got, tc.want, a)
			}
			if tc.want && a.Action != actionFiltered {
				t.Errorf("action %s", a.Action)
			}
			later := storeRequest(func(r *Request) { r.Hits = nil })
			if _, denied := m.Recall(t.Context(), later); tc.want && denied {
				t.Error("a later look was denied")
			}
		})
	}
}
