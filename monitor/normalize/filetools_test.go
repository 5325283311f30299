package normalize_test

import (
	"strings"
	"testing"

	"proctor/monitor/normalize"
)

func TestFileTools(t *testing.T) {
	facts := normalize.NewCorpusFacts(nil, nil, map[string]string{"/testbed/tests/test_a.py": "one\ntwo\nthree\n"}, "/testbed")
	n := normalize.New(testTask(), facts)
	ev := n.Event(t.Context(), normalize.Call{Tool: "str_replace", Path: "/testbed/tests/test_a.py", Old: "two\n", New: "2\n"})
	f := ev.Files[0]
	if f.Content != "one\n2\nthree\n" || f.Removed != "two" || f.Added != "2" || !f.Test || f.New || f.Before == "" {
		t.Errorf("str_replace: %+v", f)
	}
	ev = n.Event(t.Context(), normalize.Call{Tool: "insert", Path: "tests/test_a.py", Line: 1, New: "x"})
	if f := ev.Files[0]; f.Content != "one\nx\ntwo\nthree\n" || f.Added != "x" {
		t.Errorf("insert: %+v", f)
	}
	ev = n.Event(t.Context(), normalize.Call{Tool: "create", Path: "/testbed/a.sh", File: "#!/bin/sh\ngit log --all\n"})
	if !strings.Contains(describe(ev), "command git log --all via=written:/testbed/a.sh") {
		t.Errorf("create: %s", describe(ev))
	}
	ev = n.Event(t.Context(), normalize.Call{Tool: "view", Path: "/testbed/.eval/x"})
	if f := ev.Files[0]; f.Op != "view" || !f.Hidden || ev.Call.Text != "/testbed/.eval/x" {
		t.Errorf("view: %+v", f)
	}
	if ev = n.Event(t.Context(), normalize.Call{Tool: "bash_input", Text: "cat /hidden/x"}); !hasHidden(ev) {
		t.Error("bash_input is not read")
	}
	if ev = n.Event(t.Context(), normalize.Call{Tool: "submit"}); len(ev.Commands)+len(ev.Files) != 0 {
		t.Errorf("submit: %+v", ev)
	}
}
