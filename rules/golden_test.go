package rules

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "rewrite golden files")

// golden holds got against a file.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s is stale: run go test ./rules -update\n%s", file, cmp.Diff(string(want), string(got)))
	}
}

func TestSchemaFileIsCurrent(t *testing.T) {
	got, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "schema/pack.schema.json", got)
}

func TestLintCodesAreDocumented(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Lint codes of rule packs\n\n`proctor rules lint` reports findings with these codes. They are permanent: scripts may filter on them.\n" +
		"An error keeps a pack from being used; a warning does not, unless `--strict` is given.\nThis page is made by `go test ./rules -update`.\n\n" +
		"| code | severity | what it means | what to do |\n|---|---|---|---|\n")
	cell := strings.NewReplacer("|", `\|`)
	for _, c := range Codes() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", c.Code, c.Severity, cell.Replace(c.Meaning), cell.Replace(c.Remedy))
	}
	golden(t, "../docs/rules-lint.md", []byte(b.String()))
}

func TestPageIsCurrent(t *testing.T) {
	p := mustLoad(t, strings.Replace(tested, "    match:\n", "    why: Because.\n    after: seen\n    set: {tag: seen, for: 3}\n"+
		"    references: [https://example.org/x]\n    false_positives: [a mirror]\n    judge: {question: \"Really?\", skip: resolved}\n"+
		"    unless: [{name: own, reason: it is `ours`, command: {line: git log}}]\n    match:\n", 1))
	golden(t, "testdata/page.md", []byte(Page(p.Rules()[0])+"\n---\n"+Index(p.Rules())))
}

// validator compiles the schema.
func validator(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("pack.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("pack.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// valid holds YAML against the schema.
func valid(t *testing.T, s *jsonschema.Schema, text []byte) error {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(doc)
}

func TestSchemaAndLoaderAgree(t *testing.T) {
	s := validator(t)
	tmpl, err := Template("mine", "first-rule", "git_history")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"template":         {tmpl, true},
		"good":             {with("", ""), true},
		"every test form":  {tested, true},
		"sequences":        {chain, true},
		"overlay":          {with("", "") + "overlays: [{target: demo/good-rule, reason: noisy, set: {level: 2}, append: {tags: [x]}}]\n", true},
		"env by name":      {with("args: --all", "env.PATH|contains: x"), true},
		"unknown key":      {with("title:", "titel: x\n    title:"), false},
		"unknown field":    {with("program: git", "programme: git"), false},
		"unknown modifier": {with("program: git", "program|containz: git"), false},
		"unknown entity":   {with("command: {program", "comand: {program"), false},
		"two entities":     {with("command: {program: git, args: --all}", "{command: {program: git}, file: {op: x}}"), false},
		"no title":         {with("    title: Good\n", ""), false},
		"severity":         {with("severity: high", "severity: huge"), false},
		"level":            {with("severity: high", "severity: high\n    level: 9"), false},
		"test tool":        {with("{bash: git log}", "{bosh: git log}"), false},
		"no reason":        {with("    tests:", "    unless: [{name: x, command: {program: git}}]\n    tests:"), false},
	} {
		_, probs := load(c.text)
		if got := len(Errors(probs)) == 0; got != c.ok {
			t.Errorf("%s: the loader says %v", name, probs)
		}
		if err := valid(t, s, []byte(c.text)); (err == nil) != c.ok {
			t.Errorf("%s: the schema says %v", name, err)
		}
	}
}

func TestCorePacksAreValidAndFormatted(t *testing.T) {
	s := validator(t)
	files, err := filepath.Glob("packs/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("NO CORE PACKS in rules/packs: nothing to validate")
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := valid(t, s, text); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
	p, err := Core()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Compile(p, TestTask()); err != nil {
		t.Error(err)
	}
}

func TestFormat(t *testing.T) {
	in := "# head\nrules:\n    - title: T # why\n      id: one-rule\n      match: {any: [{command: {program: git}}]}\n      severity: low\n      category: fabrication\nversion: 1.0.0\npack: demo\n"
	want := "# head\npack: demo\nversion: 1.0.0\nrules:\n  - id: one-rule\n    title: T # why\n    severity: low\n    category: fabrication\n    match: {any: [{command: {program: git}}]}\n"
	got, probs := Format("x.yaml", []byte(in))
	if len(probs) > 0 {
		t.Fatal(probs)
	}
	// A comment before the first key belongs to that key in YAML, wherever the key goes.
	if d := cmp.Diff(strings.Replace(want, "# head\n", "", 1), strings.Replace(string(got), "# head\n", "", 1)); d != "" {
		t.Error(d)
	}
	again, _ := Format("x.yaml", got)
	if !bytes.Equal(got, again) {
		t.Errorf("not stable:\n%s\n%s", got, again)
	}
	for _, bad := range []string{"a: [", "a: &x [*x]"} {
		if _, probs := Format("x.yaml", []byte(bad)); len(probs) != 1 {
			t.Errorf("%s: got %v", bad, probs)
		}
	}
}

func TestTemplate(t *testing.T) {
	text, err := Template("mine", "first-rule", "upstream_fetch")
	if err != nil {
		t.Fatal(err)
	}
	if got := Lint(mustLoad(t, text), nil); len(got) > 0 {
		t.Errorf("the template does not lint clean: %v", got)
	}
	if got, _ := Format("x.yaml", []byte(text)); string(got) != text {
		t.Errorf("the template is not in canonical form:\n%s", cmp.Diff(text, string(got)))
	}
	for _, bad := range [][3]string{{"Mine", "ok-rule", "git_history"}, {"mine", "x", "git_history"}, {"mine", "ok-rule", "history"}} {
		if _, err := Template(bad[0], bad[1], bad[2]); err == nil {
			t.Errorf("%v was taken", bad)
		}
	}
}
