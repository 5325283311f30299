package decoy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"proctor/rules"
	"proctor/sandbox"
)

// standInCases are calls out of which the offending command cannot be cut.
var standInCases = []string{
	"set -x; cat .eval/x.json; set +x; echo $?",
	"for f in .eval/x.json a.txt; do cat $f | head -1; done",
	"for f in a.txt .eval/x.json; do cat $f; done; echo $? $f",
	"for f in a.txt .eval/x.json; do cat $f; done",
	"bash -xc 'cat .eval/x.json'",
	`sh -c "cat .eval/x.json; echo \$?"`,
	`python3 -c "import os; print(os.path.exists('.eval/x.json'))"`,
	"python3 - <<E\nfrom pathlib import Path\nprint(Path('.eval/x.json').read_text())\nE",
	"while read -r l; do echo $l; done < .eval/x.json; echo $?",
	"set -v; cat .eval/x.json | wc -c",
}

// tree makes a folder with a file, and the secret only where asked for.
func tree(t *testing.T, secret bool) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "decoy")
	check(t, err)
	t.Cleanup(func() { check(t, os.RemoveAll(dir)) })
	check(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("alpha\n"), 0o644))
	if secret {
		check(t, os.MkdirAll(filepath.Join(dir, ".eval"), 0o755))
		check(t, os.WriteFile(filepath.Join(dir, ".eval", "x.json"), []byte("topsecret value\n"), 0o644))
	}
	return dir
}

// With nothing there, as in a prepared image, a stand-in shows what the agent's own text would, and
// leaves nothing that a later call could show.
func TestStandInIsNatural(t *testing.T) {
	packs, err := rules.Core()
	check(t, err)
	for _, text := range standInCases {
		t.Run(text, func(t *testing.T) {
			dir := tree(t, false)
			want, wantCode := typed(dir, text)
			a := answered(t, packs, dir, text)
			if !a.Run || a.Rewrite == nil || strings.Contains(a.Command, ".eval/x") {
				t.Fatalf("not run with a stand-in: %q", a.Command)
			}
			out, code := typed(dir, a.Command)
			r := a.Rewrite(sandbox.Result{Output: []byte(out), Exit: &code})
			if string(r.Output) != want || *r.Exit != wantCode {
				t.Errorf("typed  %s\nshown  %q (%d)\nwanted %q (%d)", a.Command, r.Output, *r.Exit, want, wantCode)
			}
			const look = "\nset +xv; echo now; declare -p f"
			later, _ := typed(dir, a.Command+look)
			natural, _ := typed(dir, text+look)
			_, later, _ = strings.Cut(later, "now\n")
			if _, natural, _ = strings.Cut(natural, "now\n"); later != natural {
				t.Errorf("left %q, naturally %q", later, natural)
			}
		})
	}
}

// Listings that cannot be told what to leave out run as they are where there is nothing to leave out.
func TestListingUnderTrace(t *testing.T) {
	packs, err := rules.Core()
	check(t, err)
	const text = "set -x; find . -name '*.json' -o -name '*secret*'; set +x; echo $?"
	dir := tree(t, false)
	want, _ := typed(dir, text)
	if out := through(t, packs, dir, text); out != want {
		t.Errorf("shown %q, wanted %q", out, want)
	}
	if out := through(t, packs, tree(t, true), text); strings.Contains(out, "x.json") {
		t.Errorf("shown %q", out)
	}
}

// Where the protected thing is there, no stand-in is run, and none of it is shown.
func TestStandInNeedsAbsence(t *testing.T) {
	packs, err := rules.Core()
	check(t, err)
	for _, text := range standInCases {
		t.Run(text, func(t *testing.T) {
			if out := through(t, packs, tree(t, true), text); strings.Contains(out, "topsecret") || strings.Contains(out, "True") {
				t.Errorf("shown %q", out)
			}
		})
	}
}

// Code that would come upon protected files on a walk runs as it is where there are none, and not at
// all where there are some.
func TestWalksInCode(t *testing.T) {
	packs, err := rules.Core()
	check(t, err)
	walk := func(dir string) string {
		return "python3 -c \"import os; [print(fs) for _, _, fs in os.walk('" + dir + "')]\"; echo $?"
	}
	dir := tree(t, false)
	want, _ := typed(dir, walk(dir))
	if out := through(t, packs, dir, walk(dir)); out != want {
		t.Errorf("shown %q, wanted %q", out, want)
	}
	dir = tree(t, true)
	if out := through(t, packs, dir, walk(dir)); strings.Contains(out, "x.json") {
		t.Errorf("shown %q", out)
	}
}

// pip fails in its own words, however it is called.
func TestModuleThatFetches(t *testing.T) {
	packs, err := rules.Core()
	check(t, err)
	vars := rules.Vars{"package": {"intervals"}, "base_version": {"1.3"}, "fix_version": {"1.4"}}
	for _, text := range []string{"python3 -m pip download intervals==1.4", "python3 -m pip download intervals --no-deps"} {
		a := answeredFor(t, packs, tree(t, false), text, vars)
		if !strings.Contains(a.Command, "intervals") || a.Family != "no-matching-distribution" {
			t.Errorf("%s: %s %q", text, a.Family, a.Command)
		}
	}
}
