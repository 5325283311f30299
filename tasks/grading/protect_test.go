package grading

import (
	"archive/tar"
	"bytes"
	"context"
	"testing"

	"proctor/tasks"
)

func TestGuard(t *testing.T) {
	g := newGuard(&tasks.Task{
		Workdir: "/w", TestPaths: []string{"tests/", "./spec", "../out"}, HiddenPaths: []string{"/w/.eval", "/hidden"},
		Grader: &tasks.Grader{FailToPass: []string{"qa/test_x.py::test_y[a/b.py]", "plain name"}},
	}, []string{"more/hidden.txt"})
	for name, want := range map[string]bool{
		"tests": true, "tests/a/b": true, "testsuite/x": false, "spec/x": true, "src/tests": false,
		"qa": true, "qa/test_x.py": true, "qa/test_x.py/y": true, "qa/other.py": false,
		"more/hidden.txt": true, "more": true, "more/other": false, ".eval/x": true, "hidden": false, "plain name": false,
	} {
		if got := g.holds(name); got != want {
			t.Errorf("holds(%q) = %v", name, got)
		}
	}
}

func TestRestoreWhateverTheShape(t *testing.T) {
	base := listing{"tests/a": {"100644", "1"}, "tests/b": {"100644", "2"}, "src/x": {"100644", "3"}}
	g := guard{roots: []string{"tests"}}
	for name, agent := range map[string]listing{
		"deleted":       {"src/x": {"100644", "9"}},
		"link in place": {"tests": {"120000", "8"}, "src/x": {"100644", "9"}},
		"changed":       {"tests/a": {"100755", "1"}, "tests/b": {"100644", "7"}, "tests/new": {"100644", "6"}, "src/x": {"100644", "9"}},
		"file a folder": {"tests/a/x": {"100644", "5"}, "src/x": {"100644", "9"}},
	} {
		got, changed := restore(agent, base, g.holds)
		if len(got) != 3 || got["tests/a"] != base["tests/a"] || got["tests/b"] != base["tests/b"] || got["src/x"].hash != "9" {
			t.Errorf("%s: %v", name, got)
		}
		if len(changed) == 0 {
			t.Errorf("%s: nothing told of", name)
		}
	}
}

func TestPinned(t *testing.T) {
	base := listing{"types.py": {}, "env/pyvenv.cfg": {}}
	for name, want := range map[string]bool{
		"conftest.py": true, "a/b/conftest.py": true, "my_conftest.py": false, "pytest.ini": true, "a/.pytest.ini": true,
		"sitecustomize.py": true, "usercustomize/__init__.py": true, "x.egg-info/entry_points.txt": true, "x-1.dist-info/RECORD": true,
		"venv/lib/site-packages/x.pth": true, "models/net.pth": false, "env/bin/pytest": true, "envoy/bin/x": false,
		"json.py": true, "json/__init__.py": true, "pkg/json.py": false, "src/pytest.py": true, "json.txt": false, "types.py": false,
		"_pytest/runner.py": true, "a.pyc": true, "setup.cfg": false, "json": false,
	} {
		if got := pinned(name, base) != ""; got != want {
			t.Errorf("pinned(%q) = %v", name, got)
		}
	}
}

func TestSamePyproject(t *testing.T) {
	base := "[project]\nname='x'\n[tool.pytest.ini_options]\naddopts='-q'\n"
	for name, tc := range map[string]struct {
		now  string
		same bool
	}{
		"other part":   {"[project]\nname='y'\n[tool.pytest.ini_options]\naddopts='-q'\n", true},
		"spelt anew":   {"tool.pytest.ini_options.addopts = \"-q\"\n", true},
		"changed":      {"[tool.pytest.ini_options]\naddopts='-p evil'\n", false},
		"removed":      {"[project]\nname='x'\n", false},
		"escaped key":  {"[\"t\\u006fol\".pytest.ini_options]\naddopts='-p evil'\n", false},
		"broken":       {"[tool.pytest", false},
		"other linter": {"[tool.ruff]\nx=1\n[tool.pytest.ini_options]\naddopts='-q'\n", true},
	} {
		if got := samePyproject([]byte(base), []byte(tc.now)); got != tc.same {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestSameINI(t *testing.T) {
	base := "[metadata]\nname = x\n[tool:pytest]\naddopts = -q\n[flake8]\nmax = 1\n"
	for name, tc := range map[string]struct {
		now  string
		same bool
	}{
		"other section": {"[metadata]\nname = y\n[tool:pytest]\naddopts = -q\n", true},
		"changed":       {"[tool:pytest]\naddopts = -k x\n", false},
		"added":         {base + "[pytest]\naddopts = -k x\n", false},
		"odd newline":   {base + "x = 1\v[pytest]\vaddopts = -k x\n", false},
		"removed":       {"[metadata]\n", false},
	} {
		if got := sameINI([]byte(base), []byte(tc.now)); got != tc.same {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestPinMixed(t *testing.T) {
	ctx, r := context.Background(), testRepo(t)
	tree, _, err := r.importTar(ctx, bytes.NewReader(stream(t, reg("w/setup.cfg", 0o644), reg("w/tox.ini", 0o644))), "base")
	if err != nil {
		t.Fatal(err)
	}
	base, err := r.list(ctx, tree)
	if err != nil {
		t.Fatal(err)
	}
	tree, _, err = r.importTar(ctx, bytes.NewReader(stream(t, tar.Header{Typeflag: tar.TypeSymlink, Name: "w/tox.ini", Linkname: "/tmp/x"},
		reg("w/sub/setup.cfg", 0o644))), "agent")
	if err != nil {
		t.Fatal(err)
	}
	files, err := r.list(ctx, tree)
	if err != nil {
		t.Fatal(err)
	}
	var notes noteList
	if err := r.pinMixed(ctx, files, base, &notes); err != nil {
		t.Fatal(err)
	}
	if files["tox.ini"] != base["tox.ini"] || files["setup.cfg"] != base["setup.cfg"] || files["sub/setup.cfg"].hash == "" || len(notes.lines()) != 2 {
		t.Errorf("files %v, notes %q", files, notes.lines())
	}
}
