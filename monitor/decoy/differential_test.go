package decoy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"proctor/rules"
)

// A script writer puts commands on protected and on honest files into every construct that the
// splicer knows, as deep as asked.
type scriptWriter struct{ r *rand.Rand }

func (w scriptWriter) pick(list ...string) string { return list[w.r.IntN(len(list))] }

// simple is one command; one in two reaches for the secret.
func (w scriptWriter) simple() string {
	secret := w.pick(".eval/x.json", "./.eval/x.json", ".eval/none", `".eval/x.json"`, `'.eval/x y.json'`, ".eval")
	honest := w.pick("a.txt", "b.txt", "src", "missing")
	file := w.pick(secret, honest)
	return w.pick(
		"cat "+file, "cat "+file+" a.txt", "head -1 "+file, "wc -c "+file, "ls "+file, "grep -c foo "+file, "sed -n 1p "+file,
		"test -e "+file, "[ -f "+file+" ]", "cat < "+file, "stat -c %s "+file, "sort "+file, "cat "+file+" 2>/dev/null",
		"cat "+file+" 2>&1", "diff a.txt "+file, "cp "+file+" /dev/null", "echo hi", "true", "false", `echo "$? $_"`, "pwd",
	)
}

// list is a script of a depth.
func (w scriptWriter) list(depth int) string {
	if depth == 0 {
		return w.simple()
	}
	a, b := w.list(depth-1), w.list(depth-1)
	return w.pick(
		a+"; "+b, a+" && "+b, a+" || "+b, "! "+a,
		"{ "+a+"; } 2>/dev/null | "+b, // two programs on one stderr speak in any order "("+a+"; "+b+")", "{ "+a+"; "+b+"; }",
		"if "+a+"; then "+b+"; else echo no; fi", `x=$(`+a+`); echo "[$x] $?"`, `echo "<$(`+a+`)>"`, a+"\n"+b,
		a+`; echo "$?"`, a+` | cat; echo "${PIPESTATUS[0]}"`, "for i in 1 2; do "+a+"; done", a+" > out.txt; cat out.txt; rm -f out.txt",
		"cat <<E\nhello $((1+1))\nE\n"+a, "while "+a+"; do break; done", "case x in x) "+a+";; esac",
	)
}

// What a script shows with its secret commands replaced, where the secret lies, is what bash shows of
// the script as it is where there is no secret: output, status, and the files that are left.
func TestSplicedScriptsAreNatural(t *testing.T) {
	n := 60
	if os.Getenv("PROCTOR_TELLS") != "" {
		n = 3000
	}
	seed := uint64(1)
	if os.Getenv("PROCTOR_SEED") != "" {
		_, err := fmt.Sscan(os.Getenv("PROCTOR_SEED"), &seed)
		must(t, err)
	}
	w := scriptWriter{rand.New(rand.NewPCG(seed, 2))}
	replaced, whole := 0, 0
	for range n {
		text := w.list(1 + w.r.IntN(2))
		a, compared := differ(t, text)
		if compared {
			replaced++
		}
		if a.Rewrite != nil {
			whole++
		}
	}
	t.Logf("%d scripts: %d with something replaced, %d answered whole or with a stand-in", n, replaced, whole)
	if replaced < n/3 {
		t.Errorf("only %d of %d scripts reached for the secret", replaced, n)
	}
}

// differ compares one script; false where it reaches for nothing, or is answered whole: then it is
// only held to showing nothing of the secret.
func differ(t *testing.T, text string) (Answer, bool) {
	t.Helper()
	if _, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), ""); err != nil {
		return Answer{}, false // "! ! true" and its like
	}
	dir := scratch(t)
	plant(t, dir, false)
	wantOut, wantCode := bash(t, dir, text)
	wantTree := treeOf(t, dir)
	must(t, os.RemoveAll(dir))
	plant(t, dir, true)
	hidden := filepath.Join(dir, ".eval")
	ev := eventOf(t, text, dir, hidden)
	req := blocked(ev, rules.HiddenArtifact, func(c rules.Command) bool { return len(c.Hidden) > 0 })
	if len(req.Hits) == 0 {
		return Answer{}, false
	}
	m := New(Options{Vars: rules.Vars{"hidden_paths": {hidden}, "workdir": {dir}}, Run: localRun})
	a := m.Answer(context.Background(), req)
	gotOut, gotCode := shown(t, dir, a)
	if strings.Contains(gotOut, `{"secret"`) {
		t.Errorf("%q shows the secret: %q", text, gotOut)
	}
	if a.Rewrite != nil {
		return a, false
	}
	must(t, os.RemoveAll(hidden))
	if gotTree := treeOf(t, dir); gotOut != wantOut || gotCode != wantCode || gotTree != wantTree {
		t.Errorf("script %q\ntyped  %q\nshown  %q (%d) %s\nwanted %q (%d) %s", text, a.Command, gotOut, gotCode, gotTree, wantOut, wantCode, wantTree)
	}
	return a, true
}

// treeOf gives the files of dir with their contents.
func treeOf(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	must(t, filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := os.ReadFile(p)
		fmt.Fprintf(&b, "%s=%q ", filepath.Base(p), body)
		return err
	}))
	return b.String()
}
