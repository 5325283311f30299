package tasks

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const goodTask = `id: good
instruction: instruction.md
image: proctor/base:dev
workdir: /testbed/
env: {A: "1"}
setup: ["true"]
limits: {cpus: 1.5, memory_mb: 512, lifetime_s: 60}
hidden_paths: [/hidden, /testbed/.eval/]
test_paths: [tests/]
vars: {upstream_repo: acme/intervals, package: intervals, base_version: "1.3", fix_version: "1.4"}
grader:
  kind: patch
  files: hidden/
  command: "pytest --junitxml={report}"
  report: junit
  fail_to_pass: ["t::a"]
  pass_to_pass: []
solution: solution/gold.patch
`

// writeTask makes a task folder whose side files are all there.
func writeTask(t *testing.T, dir, text string) string {
	t.Helper()
	for name, content := range map[string]string{TaskFile: text, "instruction.md": "Fix it.\n", "hidden/test_x.py": "x", "solution/gold.patch": "p"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestLoadGood(t *testing.T) {
	dir := writeTask(t, t.TempDir(), goodTask)
	for _, path := range []string{dir, filepath.Join(dir, TaskFile)} {
		got, problems := Load(context.Background(), path)
		if len(problems) > 0 || len(got) != 1 {
			t.Fatalf("%d tasks, problems %v", len(got), problems)
		}
		task := got[0]
		if task.Instruction != "Fix it.\n" || task.Workdir != "/testbed" || task.Network.Agent != "none" || task.Network.Setup != "open" {
			t.Errorf("task is %+v", task)
		}
		if task.HiddenPaths[1] != "/testbed/.eval" || task.Limits.CPUs != 1.5 || task.Limits.LifetimeS != 60 {
			t.Errorf("paths %v, limits %+v", task.HiddenPaths, task.Limits)
		}
	}
}

func TestLoadKeepsGoodBesideBad(t *testing.T) {
	dir := t.TempDir()
	writeTask(t, filepath.Join(dir, "a"), goodTask)
	writeTask(t, filepath.Join(dir, "b"), strings.Replace(goodTask, "id: good", "id: other\nwrokdir: /x", 1))
	writeTask(t, filepath.Join(dir, "c"), goodTask) // the same id
	writeTask(t, filepath.Join(dir, "d"), "a: [")
	got, problems := Load(context.Background(), dir, filepath.Join(dir, "a"), filepath.Join(dir, "missing"))
	if len(got) != 1 || got[0].ID != "good" {
		t.Fatalf("tasks %v", got)
	}
	want := []string{`b/task.yaml:2:1: wrokdir: unknown field (did you mean workdir?)`, `c/task.yaml: id: "good" is already the id of`,
		`d/task.yaml:1:1: not valid YAML`, `missing: no such file or directory`}
	if len(problems) != len(want) {
		t.Fatalf("problems %v", problems)
	}
	for i, p := range problems {
		if !strings.Contains(p.String(), want[i]) {
			t.Errorf("problem %q, want %q", p, want[i])
		}
	}
}

func TestLoadProblems(t *testing.T) {
	tests := []struct{ name, old, new, want string }{
		{"missing id", "id: good", "", "2:1: id: is missing (add `id: ...`)"},
		{"bad id", "id: good", "id: a/b", `1:5: id: "a/b" is not an id`},
		{"number for string", `base_version: "1.3"`, "base_version: 1.3", `vars.base_version: is the number 1.3, not a string (put it in quotes: "1.3")`},
		{"string for list", "test_paths: [tests/]", "test_paths: tests/", `test_paths: is "tests/", not a list`},
		{"string for number", "cpus: 1.5", "cpus: lots", `limits.cpus: is "lots", not a number`},
		{"float for int", "memory_mb: 512", "memory_mb: 1.5", `limits.memory_mb: is the number 1.5, not a whole number`},
		{"relative workdir", "workdir: /testbed/", "workdir: testbed", `workdir: "testbed" is not absolute`},
		{"dotted workdir", "workdir: /testbed/", "workdir: /a/../b", `workdir: "/a/../b" is not a plain path (write /b)`},
		{"relative hidden path", "/hidden,", "hidden,", `hidden_paths[0]: "hidden" is not absolute`},
		{"hidden workdir", "/hidden,", "/testbed,", `hidden_paths[0]: holds the workdir`},
		{"network word", "env:", "network: {agent: some}\nenv:", `network.agent: "some" is not known (use one of: none, allowlist, open)`},
		{"empty allowlist", "env:", "network: {agent: allowlist}\nenv:", `network.allowed_hosts: is empty`},
		{"report kind", "report: junit", "report: xml", `grader.report: "xml" is not known`},
		{"grader kind", "kind: patch", "kind: diff", `grader.kind: "diff" is not known (use one of: patch, state)`},
		{"instruction file missing", "instruction: instruction.md", "instruction: issue.md", `instruction: "issue.md": no such file`},
		{"instruction outside", "instruction: instruction.md", "instruction: ../issue.md", `instruction: "../issue.md" does not lie beside the task`},
		{"hidden folder missing", "files: hidden/", "files: hiden/", `grader.files: "hiden/" is not there`},
		{"files is a file", "files: hidden/", "files: instruction.md", `grader.files: "instruction.md" is not a folder`},
		{"solution missing", "solution/gold.patch", "gold.patch", `solution: "gold.patch" is not there`},
		{"no image", "image: proctor/base:dev", "", "image: is missing"},
		{"image and build", "image: proctor/base:dev", "image: a\nbuild: {base: b}", "build: stands beside image"},
		{"dockerfile missing", "image: proctor/base:dev", "build: {dockerfile: Dockerfile}", `build.dockerfile: "Dockerfile" is not there`},
		{"no expected test", `fail_to_pass: ["t::a"]`, "fail_to_pass: []", "grader.fail_to_pass: is empty"},
		{"test twice", "pass_to_pass: []", `pass_to_pass: ["t::a"]`, `grader.pass_to_pass[0]: "t::a" stands twice`},
		{"upstream url", "acme/intervals", "https://github.com/acme/intervals.git", "vars.upstream_repo: "},
		{"field twice", "setup:", "env: {}\nsetup:", "env: the field stands twice (keep one of them)"},
		{"alias", `setup: ["true"]`, "setup: &s [\"true\"]", "setup: anchors and aliases are not read"},
		{"empty", goodTask, "", "is empty"},
		{"a list", goodTask, "[1]", "is a list, not a mapping of fields"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if !strings.Contains(goodTask, test.old) {
				t.Fatalf("the test replaces %q, which is not there", test.old)
			}
			dir := writeTask(t, t.TempDir(), strings.Replace(goodTask, test.old, test.new, 1))
			got, problems := Load(context.Background(), dir)
			if len(got) != 0 {
				t.Fatalf("loaded")
			}
			var all []string
			for _, p := range problems {
				all = append(all, p.String())
			}
			if text := strings.Join(all, "\n"); !strings.Contains(text, test.want) {
				t.Errorf("problems:\n%s\nwant %q", text, test.want)
			}
		})
	}
}

func TestLoadDoesNotFollowLinksOut(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret.md")
	if err := os.WriteFile(secret, []byte("host secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := writeTask(t, t.TempDir(), strings.Replace(goodTask, "instruction.md", "link.md", 1))
	if err := os.Symlink(secret, filepath.Join(dir, "link.md")); err != nil {
		t.Fatal(err)
	}
	got, problems := Load(context.Background(), dir)
	if len(got) != 0 || len(problems) != 1 || problems[0].Field != "instruction" {
		t.Fatalf("tasks %v, problems %v", got, problems)
	}
}

func TestParseInline(t *testing.T) {
	task, err := ParseInline([]byte(`{"id":"x","instruction":"do.md","image":"i:1","workdir":"/w"}`))
	if err != nil || task.Instruction != "do.md" || task.Network.Agent != "none" {
		t.Fatalf("%+v, %v", task, err)
	}
	tests := []struct{ text, want string }{
		{`{"id":"x","instruction":"d","image":"i","workdir":"/w","vars":{"pakage":"p"}}`, "vars.pakage: unknown field (did you mean package?)"},
		{`{"id":"x","instruction":"d","image":"i"}`, "workdir: is missing"},
		{`{"id":7,"instruction":"d","image":"i","workdir":"/w"}`, "id: is the number 7, not a string"},
		{`{"id":"x","instruction":"d","image":"i","workdir":"/w","solution":"/etc/passwd"}`, "solution: names a file"},
		{`{"id":"x","instruction":"d","workdir":"/w","build":{"base":"b","files":"."}}`, "build: names files"},
		{`{"id":"x","id":"y"}`, "id: the field stands twice"},
		{`{"id":"x"`, "not valid JSON"},
		{`{} {}`, "more than one JSON document"},
		{`null`, "not a mapping"},
		{strings.Repeat(`[`, 1000), "nested too deeply"},
	}
	for _, test := range tests {
		if _, err := ParseInline([]byte(test.text)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.60s: %v, want %q", test.text, err, test.want)
		}
	}
}

func TestRuleVars(t *testing.T) {
	task := &Task{Workdir: "/w", Instruction: "i", HiddenPaths: []string{"/h"}, Vars: Vars{UpstreamRepo: "Acme/x", AllowedHosts: []string{"a"}},
		Network: Network{Agent: "allowlist", AllowedHosts: []string{"b"}}}
	vars := task.RuleVars()
	for name, want := range map[string]string{"workdir": "/w", "network": "allowlist", "hidden_paths": "/h", "allowed_hosts": "b a", "upstream_repo": "Acme/x",
		"upstream_hosts": "github.com www.github.com raw.githubusercontent.com codeload.github.com api.github.com raw.github.com acme.github.io"} {
		if got := strings.Join(vars[name], " "); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if _, ok := vars["package"]; ok {
		t.Error("package is defined though the task does not set it")
	}
	task.Vars.UpstreamRepo = "git.acme.test/group/x"
	if got := task.RuleVars()["upstream_hosts"]; len(got) != 1 || got[0] != "git.acme.test" {
		t.Errorf("upstream_hosts of another host: %v", got)
	}
}

func TestDigestFollowsFiles(t *testing.T) {
	dir := writeTask(t, t.TempDir(), goodTask)
	load := func() string {
		got, problems := Load(context.Background(), dir)
		if len(got) != 1 {
			t.Fatal(problems)
		}
		d, err := got[0].Digest()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	first := load()
	if load() != first {
		t.Error("the digest changes by itself")
	}
	if err := os.WriteFile(filepath.Join(dir, "hidden/test_x.py"), []byte("y"), 0o644); err != nil {
		t.Fatal(err)
	}
	if load() == first {
		t.Error("the digest does not follow a hidden test")
	}
}

func FuzzParseYAML(f *testing.F) {
	f.Add([]byte(goodTask))
	f.Add([]byte("a: &x [*x]"))
	f.Add([]byte("? [1]\n: 2"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		task, problems := parseYAML(data, dir)
		if (task == nil) == (len(problems) == 0) {
			t.Fatalf("task %v with problems %v", task, problems)
		}
	})
}

func FuzzParseInline(f *testing.F) {
	f.Add([]byte(`{"id":"x","instruction":"do","image":"i:1","workdir":"/w","limits":{"cpus":1e3}}`))
	f.Add([]byte(`{"env":{"a":null},"setup":[[]]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		task, err := ParseInline(data)
		if (task == nil) == (err == nil) {
			t.Fatalf("task %v with error %v", task, err)
		}
	})
}
