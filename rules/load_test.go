package rules

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// ok is a rule without findings, at the indent of a pack's rules.
const ok = `  - id: good-rule
    title: Good
    severity: high
    category: git_history
    owner: us
    why: Because.
    false_positives: [none known]
    match:
      any:
        - command: {program: git, args: --all}
    tests:
      flag: [{bash: git log --all}]
      pass: [{bash: git log}]
`

// with replaces a part of the good pack.
func with(old, by string) string { return strings.Replace(head+"rules:\n"+ok, old, by, 1) }

func TestEveryCodeIsReported(t *testing.T) {
	yesterday := time.Now().AddDate(0, 0, -2).Format(time.DateOnly)
	deep := strings.Repeat("[", 40) + strings.Repeat("]", 40)
	bomb := "lists:\n  a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'i'; c++ {
		bomb += fmt.Sprintf("  %c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1)
	}
	many := head + "rules:\n" + strings.Repeat("  - {}\n", 1) + manyRules(maxRules+5)
	for code, text := range map[string]string{
		"too-large":          "#" + strings.Repeat("x", maxFileBytes),
		"yaml-syntax":        head + "rules: [",
		"too-deep":           head + "rules: " + deep,
		"alias-budget":       head + bomb,
		"too-many-rules":     many,
		"unknown-key":        with("title:", "titel: x\n    title:"),
		"duplicate-key":      with("title: Good", "title: Good\n    title: Better"),
		"missing-key":        with("    title: Good\n", ""),
		"wrong-type":         with("false_positives: [none known]", "false_positives: none"),
		"bad-value":          with("severity: high", "severity: huge"),
		"bad-id":             with("good-rule", "Good_Rule"),
		"duplicate-id":       head + "rules:\n" + ok + ok,
		"bad-version":        strings.Replace(with("", ""), "version: 1.0.0", "version: 1.0", 1),
		"bad-engine":         strings.Replace(with("", ""), ">=1 <2", ">=one", 1),
		"engine-unsatisfied": strings.Replace(with("", ""), ">=1 <2", ">=7", 1),
		"bad-entity":         with("command: {", "comand: {"),
		"unknown-field":      with("program: git", "programme: git"),
		"unknown-modifier":   with("program: git", "program|containz: git"),
		"bad-modifier":       with("program: git", "program|re|glob: git"),
		"empty-value":        with("program: git", `program|contains: ""`),
		"undefined-list":     with("program: git", "program|list: gits"),
		"undefined-variable": with("program: git", `program: "${task.upstreem_repo}"`),
		"bad-regex":          with("program: git", "program|re: 'a(?!b)'"),
		"control-character":  with("program: git", `program|re: "\bgit"`),
		"bad-glob":           with("program: git", `program|glob: "a[b"`),
		"bad-cidr":           with("program: git", "net.host|cidr: 10.0.0.0/64"),
		"bad-semver":         with("program: git", "program|semver: '>=x'"),
		"empty-match":        with("        - command: {program: git, args: --all}\n", "        []\n"),
		"no-reason":          with("    tests:", "    unless: [{name: x, command: {program: git}}]\n    tests:"),
		"undefined-tag":      with("    tests:", "    after: nothing\n    tests:"),
		"bad-sequence":       with("    tests:", "    set: {tag: x}\n    tests:"),
		"bad-test":           with("{bash: git log}", "{bosh: git log}"),
		"overlay-target":     with("", "") + "overlays: [{target: demo/absent, disable: true, reason: noisy}]\n",
		"overlay-expired":    with("", "") + "overlays: [{target: demo/good-rule, disable: true, reason: noisy, expires: '" + yesterday + "'}]\n",
		"test-fails":         with("{bash: git log --all}", "{bash: git log}"),
		"missing-flag-test":  with("      flag: [{bash: git log --all}]\n", ""),
		"missing-pass-test":  with("      pass: [{bash: git log}]\n", ""),
		"missing-text":       with("    owner: us\n", ""),
		"big-regex":          with("program: git", "program|re: 'git(?:abcdefghij){100}'"),
		"no-literal":         with("command: {program: git, args: --all}", "command: {line|re: '[a-z]+ +[a-z]+ .*'}"),
		"unused-list":        head + "lists: {spare: [x]}\nrules:\n" + ok,
		"uncovered":          with("        - command", "        - command: {program: hg}\n        - command"),
		"todo-passes":        with("    tests:", "    tests:\n      todo_flag: [{bash: git show --all}]"),
		"verbatim-only":      with("", ""), // the word-splitting normaliser sees through nothing
		"pack-conflict":      "",
		"unreadable":         "",
	} {
		t.Run(code, func(t *testing.T) {
			files := fstest.MapFS{"demo.yaml": {Data: []byte(text)}}
			name := "demo.yaml"
			switch code {
			case "pack-conflict":
				name = "."
				files["demo.yaml"].Data = []byte(head + "rules:\n" + ok)
				files["more.yaml"] = &fstest.MapFile{Data: []byte(strings.Replace(head, "1.0.0", "2.0.0", 1))}
			case "unreadable":
				name = "absent.yaml"
			}
			p, probs := LoadFS(files, name)
			if len(Errors(probs)) == 0 {
				rep, err := SelfTest(t.Context(), p, wordsOf)
				if err != nil {
					t.Fatal(err)
				}
				probs = append(probs, Lint(p, rep)...)
			}
			i := slices.IndexFunc(probs, func(p Problem) bool { return p.Code == code })
			if i < 0 {
				t.Fatalf("got %v", probs)
			}
			pr := probs[i]
			if pr.Message == "" || pr.Remedy == "" || pr.File == "" || pr.Severity != codes[code].severity {
				t.Errorf("the finding lacks something: %+v", pr)
			}
			if located := code != "unreadable" && code != "too-large"; located && (pr.Line < 1 || pr.Column < 1 || pr.Excerpt == "" && code != "too-deep") {
				t.Errorf("the finding has no place: %+v", pr)
			}
		})
		delete(untested, code)
	}
	for code := range untested {
		t.Errorf("no test for the code %s", code)
	}
}

// untested are the codes that no case above has met yet.
var untested = func() map[string]bool {
	m := map[string]bool{}
	for c := range codes {
		m[c] = true
	}
	return m
}()

func manyRules(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "  - {id: r%d, title: x, severity: low, category: fabrication, match: {any: [{call: {tool: x}}]}}\n", i)
	}
	return b.String()
}

func TestGoodPackHasOnlyTheVerbatimWarning(t *testing.T) {
	p := mustLoad(t, head+"rules:\n"+ok)
	if got := Lint(p, nil); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

func TestProblemNamesLineColumnAndExcerpt(t *testing.T) {
	_, probs := load(with("program: git", "programm: git"))
	if len(probs) != 1 {
		t.Fatalf("got %v", probs)
	}
	p := probs[0]
	want := Problem{File: "demo.yaml", Line: 15, Column: 21, Code: "unknown-field", Severity: "error",
		Message: `command has no field "programm" (did you mean "program"?)`,
		Excerpt: "        - command: {programm: git, args: --all}", Remedy: codes["unknown-field"].remedy}
	if p != want {
		t.Errorf("got  %+v\nwant %+v", p, want)
	}
}

func TestLoadFromDisk(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.yaml": with("", ""), "sub/b.yml": head + "rules:\n" + strings.Replace(ok, "good-rule", "other", 1),
		".hidden/c.yaml": "broken: [", "notes.txt": "no pack"} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p, probs := Load(dir)
	if len(probs) != 0 || len(p.Packs()) != 1 || len(p.Rules()) != 2 {
		t.Fatalf("got %d packs, %d rules, %v", len(p.Packs()), len(p.Rules()), probs)
	}
	if _, ok := p.Rule("demo/other"); !ok {
		t.Error("the rule of the second file is missing")
	}
	if r := p.Rules()[0]; r.Pos.File != filepath.Join(dir, "a.yaml") {
		t.Errorf("the rule's place is %s", r.Pos)
	}
	_, probs = Load(filepath.Join(dir, "absent"), t.TempDir())
	if got := codesOf(probs); !slices.Equal(got, []string{"unreadable"}) || len(probs) != 2 {
		t.Errorf("got %v", probs)
	}
}

func TestSelfHoldingAnchorIsRefused(t *testing.T) {
	_, probs := load("pack: &p [*p]\n")
	if !slices.Contains(codesOf(probs), "alias-budget") && !slices.Contains(codesOf(probs), "yaml-syntax") {
		t.Errorf("got %v", probs)
	}
}

func TestDigestPinsWhatDecides(t *testing.T) {
	base := mustLoad(t, with("", "")).Digest()
	for name, c := range map[string]struct {
		text string
		same bool
	}{
		"comment":   {"# a note\n" + with("", ""), true},
		"test":      {with("{bash: git log}", "{bash: git show}"), true},
		"condition": {with("--all", "--branches"), false},
		"severity":  {with("severity: high", "severity: low"), false},
		"version":   {strings.Replace(with("", ""), "1.0.0", "1.0.1", 1), false},
		"status":    {with("severity: high", "severity: high\n    status: deprecated"), false},
		"disabled":  {with("", "") + "overlays: [{target: demo/good-rule, disable: true, reason: noisy}]\n", false},
	} {
		if got := mustLoad(t, c.text).Digest(); (got == base) != c.same {
			t.Errorf("%s: same digest %t, want %t", name, got == base, c.same)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(with("", "")))
	f.Add([]byte(head + "overlays: [{target: 'tag:x', reason: y, append: {any: [{file: {path|under: /a}}]}}]"))
	f.Add([]byte("pack: &a {*a: *a}\n<<: *a"))
	f.Add([]byte("rules: [{match: {any: [{command: {line|re: '${task.x}'}}]}}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, probs := LoadFS(fstest.MapFS{"f.yaml": {Data: data}}, "f.yaml")
		for _, pr := range probs {
			if _, ok := codes[pr.Code]; !ok {
				t.Errorf("unknown code %q", pr.Code)
			}
		}
		if len(Errors(probs)) > 0 {
			return
		}
		s, err := Compile(p, TestTask())
		if err != nil {
			t.Fatalf("a pack without errors does not compile: %v", err)
		}
		s.Session().Match(full())
	})
}
