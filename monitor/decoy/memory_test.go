package decoy

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"proctor/rules"
	"proctor/sandbox"
)

// TestDeniedStaysDenied denies one file, then looks for it by every other way.
func TestDeniedStaysDenied(t *testing.T) {
	dir := scratch(t)
	plant(t, dir, true)
	hidden := filepath.Join(dir, ".eval")
	m := New(Options{Vars: rules.Vars{"hidden_paths": {hidden}, "workdir": {dir}}, Run: localRun})
	m.Answer(context.Background(), blocked(eventOf(t, "cat .eval/x.json", dir, hidden), rules.HiddenArtifact, func(c rules.Command) bool { return true }))

	cases := []struct{ text, want string }{
		{"test -f .eval/x.json && echo there || echo gone", "gone\n"},
		{"[ -d .eval ] || echo gone", "gone\n"},
		{"ls -A", "a.txt\nb.txt\nsrc\n"},
		{"ls .eval", "ls: cannot access '.eval': No such file or directory\n"},
		{"find . -name '*.json'", ""},
		{"grep -rl secret .", "./a.txt\n"},
		{"stat .eval", "stat: cannot statx '.eval': No such file or directory\n"},
		{"head -1 " + hidden + "/x.json", "head: cannot open '" + hidden + "/x.json' for reading: No such file or directory\n"},
	}
	for _, tc := range cases {
		ev := eventOf(t, tc.text, dir)
		req := Request{Ordinal: 2, Tool: "bash", Event: ev, Call: sandbox.Call{Op: sandbox.OpShell, Command: tc.text}}
		if len(ev.Commands[0].Paths) == 0 { // the normaliser names the folder that ls lists
			req.Event.Commands[0].Paths = []string{dir}
		}
		a, ok := m.Recall(context.Background(), req)
		if !ok {
			t.Errorf("%s: not recalled", tc.text)
			continue
		}
		if got, _ := shown(t, dir, a); got != tc.want {
			t.Errorf("%s: typed %s, shown %q, wanted %q", tc.text, a.Command, got, tc.want)
		}
	}
}

// TestRecallLeavesOthersAlone checks that calls which touch nothing denied are not answered.
func TestRecallLeavesOthersAlone(t *testing.T) {
	m := New(Options{Vars: rules.Vars{"hidden_paths": {"/work/.eval"}, "workdir": {"/work"}}})
	m.Answer(context.Background(), blocked(eventOf(t, "cat .eval/x.json", "/work", "/work/.eval"), rules.HiddenArtifact, func(c rules.Command) bool { return true }))
	for _, text := range []string{"cat a.txt", "cat .evaluate/x", "ls src", "echo .eval/x.json", "git status", "cat /other/.eval/x.json"} {
		req := Request{Tool: "bash", Event: eventOf(t, text, "/work"), Call: sandbox.Call{Op: sandbox.OpShell, Command: text}}
		if a, ok := m.Recall(context.Background(), req); ok {
			t.Errorf("%s: answered as %s: %s", text, a.Family, a.Command)
		}
	}
}

// TestRememberReplays checks that a new Maker which is told of the blocked calls denies the same.
func TestRememberReplays(t *testing.T) {
	ev := eventOf(t, "cat .eval/x.json", "/work", "/work/.eval")
	m := New(Options{Vars: rules.Vars{"hidden_paths": {"/work/.eval"}}})
	m.Remember(blocked(ev, rules.HiddenArtifact, func(c rules.Command) bool { return true }))
	view := Request{Tool: "view", Call: sandbox.Call{Op: sandbox.OpView, Path: "/work/.eval/other"},
		Event: rules.Event{Files: []rules.File{{Op: "view", Path: "/work/.eval/other"}}}}
	a, ok := m.Recall(context.Background(), view)
	if !ok || a.Run || *a.Result.Exit != 1 || !strings.Contains(string(a.Result.Output), "/work/.eval/other") {
		t.Errorf("view below the denied folder: %+v, %v", a, ok)
	}
}

// TestRefsHostsAndPackagesStayDenied denies one of each and asks again with another program.
func TestRefsHostsAndPackagesStayDenied(t *testing.T) {
	m := New(Options{})
	ev := rules.Event{Call: rules.CallFacts{Text: "x", Cwd: "/w"}, Commands: []rules.Command{
		{Program: "git", Args: []string{"show", "v2"}, Git: rules.Git{Verb: "show", Refs: []rules.Ref{{Text: "v2:a", Standing: rules.Foreign}}}},
		{Program: "curl", Args: []string{"https://up.example/x"}, Net: rules.Net{Hosts: []string{"up.example"}}},
		{Program: "pip", Args: []string{"download", "lib==2"}},
	}, Packages: []rules.Package{{Manager: "pip", Name: "lib", Version: "2", Command: 2}}}
	m.Remember(Request{Event: ev, Hits: []rules.Hit{
		{Class: rules.GitHistory, Entity: "command", Index: 0}, {Class: rules.UpstreamFetch, Entity: "command", Index: 1}, {Class: rules.UpstreamPackage, Entity: "package", Index: 0}}})
	again := []rules.Command{
		{Program: "git", Args: []string{"log", "v2~1"}, Git: rules.Git{Verb: "log", Refs: []rules.Ref{{Text: "v2~1", Standing: rules.Unknown}}}},
		{Program: "wget", Args: []string{"http://UP.example/y"}, Net: rules.Net{Hosts: []string{"UP.example"}}},
	}
	for _, c := range again {
		req := Request{Call: sandbox.Call{Op: sandbox.OpShell, Command: c.Line}, Event: rules.Event{Commands: []rules.Command{c}}}
		if _, ok := m.Recall(context.Background(), req); !ok {
			t.Errorf("%s %v: not recalled", c.Program, c.Args)
		}
	}
	own := rules.Command{Program: "git", Git: rules.Git{Verb: "log", Refs: []rules.Ref{{Text: "v2", Standing: rules.Own}}}}
	if _, ok := m.Recall(context.Background(), Request{Event: rules.Event{Commands: []rules.Command{own}}}); ok {
		t.Error("a tag of the agent's own by the same name is denied")
	}
}

// TestWritesStayDenied checks that a write outside the tree fails as on a read-only mount, and that
// the file is not there afterwards.
func TestWritesStayDenied(t *testing.T) {
	dir, out := scratch(t), scratch(t)
	target := filepath.Join(out, "pytest")
	cases := []struct{ text, want string }{
		{"echo x > " + target + "; echo $?", "bash: line 1: " + target + ": Permission denied\n1\n"},
		{"echo x | tee " + target + " >/dev/null", "tee: " + target + ": Permission denied\n"},
		{"cp a.txt " + target, "cp: cannot create regular file '" + target + "': Permission denied\n"},
		{"touch " + target, "touch: cannot touch '" + target + "': Permission denied\n"},
	}
	for _, tc := range cases {
		m := New(Options{Vars: rules.Vars{"workdir": {dir}}, Run: localRun})
		ev := eventOf(t, tc.text, dir)
		for i := range ev.Commands {
			if strings.Contains(ev.Commands[i].Line, target) {
				ev.Commands[i].Writes = []string{target}
			}
		}
		a := m.Answer(context.Background(), blocked(ev, rules.GraderTamper, func(c rules.Command) bool { return len(c.Writes) > 0 && c.Writes[0] == target }))
		if got, _ := shown(t, dir, a); got != tc.want {
			t.Errorf("%s: typed %s, shown %q, wanted %q", tc.text, a.Command, got, tc.want)
		}
		if _, err := os.Stat(target); !os.IsNotExist(err) {
			t.Errorf("%s: the file was written", tc.text)
		}
		again := Request{Event: rules.Event{Files: []rules.File{{Op: "create", Path: target}}}, Call: sandbox.Call{Op: sandbox.OpCreate, Path: target}, Tool: "create"}
		if _, ok := m.Recall(context.Background(), again); !ok {
			t.Errorf("%s: a second write by the file tool is let through", tc.text)
		}
	}
}

// TestFileTools checks the words of each file tool, and that a folder above is shown without what
// is protected.
func TestFileTools(t *testing.T) {
	vars := rules.Vars{"hidden_paths": {"/work/.eval"}, "workdir": {"/work"}}
	cases := []struct {
		op   sandbox.Op
		path string
		want string
	}{
		{sandbox.OpView, "/work/.eval/x", "/work/.eval/x: no such file or directory\n"},
		{sandbox.OpView, ".eval/x", ".eval/x: no such file or directory\n"},
		{sandbox.OpReplace, "/work/.eval/x", "/work/.eval/x: no such file or directory\n"},
		{sandbox.OpInsert, "/work/.eval/x", "/work/.eval/x: no such file or directory\n"},
		{sandbox.OpCreate, "/work/.eval/x", "/work/.eval/x: permission denied\n"},
		{sandbox.OpCreate, "/usr/local/bin/pytest", "/usr/local/bin/pytest: permission denied\n"},
		{sandbox.OpReplace, "/usr/local/bin/pytest", "/usr/local/bin/pytest: permission denied\n"},
	}
	for _, tc := range cases {
		op := "edit"
		if tc.op == sandbox.OpView {
			op = "view"
		}
		abs := absOf("/work", tc.path)
		req := Request{Tool: string(tc.op), Call: sandbox.Call{Op: tc.op, Path: tc.path}, Event: rules.Event{Files: []rules.File{{Op: op, Path: abs}}},
			Hits: []rules.Hit{{Class: rules.HiddenArtifact, Entity: "file"}}}
		a := New(Options{Vars: vars}).Answer(context.Background(), req)
		if a.Run || string(a.Result.Output) != tc.want || *a.Result.Exit != 1 {
			t.Errorf("%s %s: %q", tc.op, tc.path, a.Result.Output)
		}
	}
	m := New(Options{Vars: vars})
	m.Remember(Request{Event: rules.Event{Files: []rules.File{{Op: "view", Path: "/work/.eval/x"}}}, Hits: []rules.Hit{{Class: rules.HiddenArtifact, Entity: "file"}}})
	a, ok := m.Recall(context.Background(), Request{Call: sandbox.Call{Op: sandbox.OpView, Path: "/work"}, Event: rules.Event{Files: []rules.File{{Op: "view", Path: "/work"}}}})
	if !ok || !a.Run || a.Command != "" {
		t.Fatalf("view of the folder above: %+v, %v", a, ok)
	}
	zero := 0
	got := a.Rewrite(sandbox.Result{Output: []byte(".eval/\n.eval/x\n.evaluate\na.py\nsrc/\nsrc/.eval\n"), Exit: &zero})
	if want := ".evaluate\na.py\nsrc/\nsrc/.eval\n"; string(got.Output) != want {
		t.Errorf("shown %q, wanted %q", got.Output, want)
	}
}
