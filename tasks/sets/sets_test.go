package sets

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"proctor/tasks"
)

const (
	gold     = "diff --git a/src/a.py b/src/a.py\n--- a/src/a.py\n+++ b/src/a.py\n@@ -1,2 +1,2 @@\n x\n-old\n+new\n"
	hidden   = "diff --git a/tests/test_a.py b/tests/test_a.py\n--- a/tests/test_a.py\n+++ b/tests/test_a.py\n@@ -1 +1,2 @@\n x\n+y\n"
	commitID = "0123456789abcdef0123456789abcdef01234567"
)

// sample rows, one of each set, with the fields as the sets publish them.
func sample(set string) map[string]any {
	common := map[string]any{"instance_id": "acme__tool-1", "repo": "acme/tool", "base_commit": commitID, "problem_statement": "It breaks.", "patch": gold,
		"test_patch": hidden, "FAIL_TO_PASS": `["tests/test_a.py::test_y"]`, "PASS_TO_PASS": []string{"tests/test_a.py::test_x"}, "version": "1.2"}
	with := func(more map[string]any, without ...string) map[string]any {
		row := map[string]any{}
		for k, v := range common {
			row[k] = v
		}
		for k, v := range more {
			row[k] = v
		}
		for _, k := range without {
			delete(row, k)
		}
		return row
	}
	switch set {
	case "swe-bench":
		return with(nil)
	case "swe-bench v5":
		return with(map[string]any{"image": "acme/eval:1", "eval_script": "#!/bin/bash\npytest -rA", "eval_type": "pass_and_fail", "log_parser": "parse_log_pytest_v2"})
	case "swe-bench recipe":
		return with(map[string]any{"install": map[string]any{"apt": []string{}, "pre": []string{"true"}, "pip": []string{"six==1.17.0"}, "install_cmd": "pip install -e .", "test_cmd": "python -m pytest -rA tests/test_a.py"}})
	case "swe-gym":
		return with(map[string]any{"repo": "dask/dask", "instance_id": "dask__dask-1"})
	case "swe-rebench":
		return with(map[string]any{"install_config": map[string]any{"test_cmd": "pytest -rA", "log_parser": "parse_log_pytest", "install": "pip install -e ."}})
	case "swe-rebench v2":
		return with(map[string]any{"image_name": "swerebenchv2/acme-tool:1", "language": "go", "interface": "func New()", "install_config": map[string]any{"test_cmd": []string{"go test -v ./..."}, "log_parser": "parse_log_gotest"}})
	case "swe-bench-pro":
		return with(map[string]any{"dockerhub_tag": "acme.tool-1", "fail_to_pass": "['tests/test_a.py | it \\'works\\'']", "pass_to_pass": "[]", "selected_test_files_to_run": `["tests/test_a.py"]`,
			"before_repo_set_cmd": "git reset", "requirements": "Do it.", "interface": "None"}, "FAIL_TO_PASS", "PASS_TO_PASS")
	case "swe-smith":
		return with(map[string]any{"repo": "swesmith/acme__tool.01234567", "image_name": "acme/smith:1"}, "base_commit", "test_patch", "version")
	case "multi-swe":
		return map[string]any{"org": "Acme", "repo": "tool", "number": 7, "title": "t", "body": "b", "base": map[string]any{"sha": commitID}, "fix_patch": strings.ReplaceAll(gold, ".py", ".go"),
			"test_patch": hidden, "resolved_issues": []any{map[string]any{"number": 1, "title": "It breaks", "body": "Badly."}}, "f2p_tests": map[string]any{"TestA": map[string]any{"fix": "PASS"}},
			"p2p_tests": map[string]any{"TestB": map[string]any{"fix": "PASS"}}, "s2p_tests": map[string]any{}, "n2p_tests": map[string]any{"TestC": map[string]any{"fix": "PASS"}}}
	case "r2e-gym":
		content, _ := json.Marshal(map[string]any{"file_diffs": []any{map[string]any{"header": map[string]any{"file": map[string]any{"path": "tool/a.py"}}, "new_file_content": "new\n"}}})
		result, _ := json.Marshal(map[string]any{"old_commit_res_stdout": "PASSED r2e_tests/test_1.py::test_x\n", "new_commit_res_stdout": "PASSED r2e_tests/test_1.py::test_x\nPASSED r2e_tests/test_1.py::T::test_y\n"})
		return map[string]any{"repo_name": "tool", "docker_image": "acme/r2e:1", "commit_hash": commitID, "problem_statement": "It breaks.", "parsed_commit_content": string(content),
			"execution_result_content": string(result), "expected_output_json": `{"test_x": "PASSED", "T.test_y": "PASSED"}`}
	}
	panic(set)
}

func lineOf(t *testing.T, rows ...map[string]any) string {
	t.Helper()
	var b strings.Builder
	for _, r := range rows {
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(data, '\n'))
	}
	return b.String()
}

// put writes a file into a folder of the test.
func put(t *testing.T, dir, name, content string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func load(t *testing.T, paths ...string) ([]*tasks.Task, []string) {
	t.Helper()
	found, problems := Load(context.Background(), Options{Dir: filepath.Join(t.TempDir(), "sets")}, paths...)
	var texts []string
	for _, p := range problems {
		texts = append(texts, p.String())
	}
	return found, texts
}

// Every set's row becomes a task that holds, and is told by its fields.
func TestSets(t *testing.T) {
	for name, want := range map[string]struct {
		source, image, workdir, report string
		inScript                       string
		hiddenPath                     string
	}{
		"swe-bench":        {"swe-bench", "swebench/sweb.eval.x86_64.acme_1776_tool-1:latest", "/testbed", "log:pytest", "pytest -rA tests/test_a.py", ""},
		"swe-bench v5":     {"swe-bench", "acme/eval:1", "/testbed", "log:pytest_v2", "#!/bin/bash\npytest -rA", ""},
		"swe-bench recipe": {"swe-bench", "", "/testbed", "junit", "", ""},
		"swe-gym":          {"swe-gym", "xingyaoww/sweb.eval.x86_64.dask_s_dask-1:latest", "/testbed", "log:pytest", "tests/test_a.py", ""},
		"swe-rebench":      {"swe-rebench", "swerebench/sweb.eval.x86_64.acme_1776_tool-1:latest", "/testbed", "log:pytest", "pytest -rA tests/test_a.py", ""},
		"swe-rebench v2":   {"swe-rebench", "swerebenchv2/acme-tool:1", "/tool", "log:gotest", "go test -v ./...", ""},
		"swe-bench-pro":    {"swe-bench-pro", "jefzda/sweap-images:acme.tool-1", "/app", "junit", "", ""},
		"swe-smith":        {"swe-smith", "", "/testbed", "log:pytest", "tests/test_a.py", "/hidden"},
		"multi-swe":        {"multi-swe", "mswebench/acme_m_tool:pr-7", "/home/tool", "log:gotest", "/home/run.sh", "/home/fix.patch"},
		"r2e-gym":          {"r2e-gym", "acme/r2e:1", "/testbed", "junit", "", "/r2e_tests"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			row := sample(name)
			file := put(t, dir, "rows.jsonl", lineOf(t, row))
			put(t, dir, "run_scripts/acme__tool-1/run_script.sh", "true")
			put(t, dir, "run_scripts/acme__tool-1/parser.py", "pass")
			found, problems := load(t, file)
			if len(problems) > 0 || len(found) != 1 {
				t.Fatalf("%d tasks, problems %q", len(found), problems)
			}
			task := found[0]
			if task.Source != want.source || task.Image != want.image || task.Workdir != want.workdir || task.Grader.Report != want.report {
				t.Errorf("source %q, image %q, workdir %q, report %q", task.Source, task.Image, task.Workdir, task.Grader.Report)
			}
			if len(task.Grader.FailToPass) == 0 || task.Solution == "" || !strings.Contains(task.Instruction, "It breaks") {
				t.Errorf("the task lacks something: %+v", task)
			}
			if want.inScript != "" {
				data, err := os.ReadFile(filepath.Join(task.Dir, task.Grader.Script))
				if err != nil || !strings.Contains(string(data), want.inScript) {
					t.Errorf("script is %q (%v), which lacks %q", data, err, want.inScript)
				}
			}
			if want.hiddenPath != "" && !slices.Contains(task.HiddenPaths, want.hiddenPath) {
				t.Errorf("hidden paths are %q", task.HiddenPaths)
			}
			if _, err := task.Digest(); err != nil {
				t.Error(err)
			}
		})
	}
}

// What is particular to a set.
func TestParticulars(t *testing.T) {
	one := func(set string) *tasks.Task {
		dir := t.TempDir()
		put(t, dir, "run_scripts/acme__tool-1/run_script.sh", "true")
		put(t, dir, "run_scripts/acme__tool-1/parser.py", "pass")
		found, problems := load(t, put(t, dir, "rows.jsonl", lineOf(t, sample(set))))
		if len(found) != 1 {
			t.Fatalf("%s: %q", set, problems)
		}
		return found[0]
	}
	smith := one("swe-smith")
	data, _ := os.ReadFile(filepath.Join(smith.Dir, smith.Solution))
	if !smith.Squash || !strings.Contains(string(data), "\n-new\n+old\n") && !strings.Contains(string(data), "\n+old\n-new\n") {
		t.Errorf("SWE-smith's solution is %q, squash %t", data, smith.Squash)
	}
	if f := smith.Grader.FromImage; len(f) != 1 || f[0].Path != "/hidden/tests" {
		t.Errorf("SWE-smith's tests come from %+v", f)
	}
	if r := one("r2e-gym").Grader; !slices.Equal(r.FailToPass, []string{"r2e_tests/test_1.py::T::test_y"}) || !slices.Equal(r.PassToPass, []string{"r2e_tests/test_1.py::test_x"}) {
		t.Errorf("R2E's tests are %q and %q", r.FailToPass, r.PassToPass)
	}
	if p := one("swe-bench-pro"); !slices.Equal(p.Grader.FailToPass, []string{"tests/test_a.py | it 'works'"}) || !strings.Contains(p.Instruction, "Requirements:\nDo it.") || strings.Contains(p.Instruction, "None") {
		t.Errorf("Pro's task is %+v", p)
	}
	if m := one("multi-swe"); m.ID != "Acme__tool-7" || !slices.Equal(m.Grader.FailToPass, []string{"TestA", "TestC"}) {
		t.Errorf("Multi-SWE's task is %+v", m)
	}
	if b := one("swe-bench recipe"); b.Build.Venv == "" || b.Grader.Command != "python -m pytest --junitxml={report} -o junit_family=xunit2 -rA tests/test_a.py" {
		t.Errorf("the recipe became %+v, %q", b.Build, b.Grader.Command)
	}
}

// Rows are read from every form of file, and are the same tasks.
func TestForms(t *testing.T) {
	dir := t.TempDir()
	first, second := sample("swe-bench"), sample("swe-bench")
	second["instance_id"], second["PASS_TO_PASS"] = "acme__tool-2", `["tests/test_a.py::test_x"]`
	lines := lineOf(t, first, second)
	both, _ := json.MarshalIndent([]any{first, second}, "", " ")
	byID, _ := json.MarshalIndent(map[string]any{"acme__tool-1": first, "acme__tool-2": second}, "", " ")
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, _ = w.Write([]byte(lines))
	_ = w.Close()
	type record struct {
		ID        string   `parquet:"instance_id"`
		Repo      string   `parquet:"repo"`
		Base      string   `parquet:"base_commit"`
		Statement string   `parquet:"problem_statement"`
		Patch     string   `parquet:"patch"`
		Test      string   `parquet:"test_patch"`
		Fail      string   `parquet:"FAIL_TO_PASS"`
		Pass      []string `parquet:"PASS_TO_PASS,list"`
		Version   string   `parquet:"version,optional"`
	}
	var p bytes.Buffer
	records := []record{}
	for _, id := range []string{"acme__tool-1", "acme__tool-2"} {
		records = append(records, record{id, "acme/tool", commitID, "It breaks.", gold, hidden, `["tests/test_a.py::test_y"]`, []string{"tests/test_a.py::test_x"}, "1.2"})
	}
	if err := parquet.Write(&p, records); err != nil {
		t.Fatal(err)
	}
	var digests []string
	for name, content := range map[string]string{"a.jsonl": lines, "b.json": string(both), "c.json": string(byID), "d.jsonl.gz": z.String(), "e.parquet": p.String(), "f/data/g.parquet": p.String(), "h.jsonl": "\ufeff"[:0] + strings.ReplaceAll(lines, "\n", "\r\n\r\n")} {
		file := put(t, dir, name, content)
		if strings.HasPrefix(name, "f/") {
			file = filepath.Join(dir, "f")
		}
		found, problems := load(t, file)
		if len(found) != 2 || len(problems) > 0 {
			t.Errorf("%s: %d tasks, problems %q", name, len(found), problems)
			continue
		}
		d, err := found[1].Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, d)
	}
	slices.Sort(digests)
	if len(slices.Compact(digests)) != 1 {
		t.Errorf("the forms make different tasks: %q", digests)
	}
}

// One bad row never hides a good one, and every error names file, row and field.
func TestBadRows(t *testing.T) {
	change := func(field string, value any) map[string]any {
		row := sample("swe-bench")
		row["instance_id"] = "acme__tool-2"
		if value == nil {
			delete(row, field)
		} else {
			row[field] = value
		}
		return row
	}
	good := lineOf(t, sample("swe-bench"))
	for name, c := range map[string]struct{ bad, want string }{
		"no patch":            {lineOf(t, change("patch", nil)), "row 2: acme__tool-2: patch: is missing"},
		"list that is none":   {lineOf(t, change("FAIL_TO_PASS", "tests")), "row 2: acme__tool-2: FAIL_TO_PASS: is text that holds no list"},
		"list of numbers":     {lineOf(t, change("PASS_TO_PASS", []any{1})), "row 2: acme__tool-2: PASS_TO_PASS[0]: is a number"},
		"nothing to fix":      {lineOf(t, change("FAIL_TO_PASS", "[]")), "row 2: acme__tool-2: FAIL_TO_PASS: is empty"},
		"statement a number":  {lineOf(t, change("problem_statement", 7.5)), ""},
		"statement a list":    {lineOf(t, change("problem_statement", []any{"x"})), "problem_statement: is a list, not text"},
		"id that leads out":   {lineOf(t, change("instance_id", "../../etc")), "instance_id: \"../../etc\" is not an id"},
		"id twice":            {lineOf(t, change("instance_id", "acme__tool-1")), "instance_id: \"acme__tool-1\" is already the id of"},
		"commit that is none": {lineOf(t, change("base_commit", "main")), "row 2: acme__tool-2: base_commit"},
		"no JSON":             {"{\"instance_id\": }\n", "rows.jsonl:2: row 2: is no JSON object"},
		"cut off":             {lineOf(t, change("x", "y"))[:300], "rows.jsonl:2: row 2: ends in the middle of a row"},
		"no object":           {"[1]\n", "rows.jsonl:2: row 2: is no JSON object"},
		"null":                {"null\n", "null is no row"},
		"unknown set":         {`{"question": "?", "answer": "!"}` + "\n", "row 2: is of no set that is known: it has answer, question"},
		"no log parser":       {lineOf(t, change("install", map[string]any{"test_cmd": "make test"})), "install.log_parser: is missing"},
		"bundle that leads out": {lineOf(t, func() map[string]any {
			r := change("install", map[string]any{"test_cmd": "pytest"})
			r["bundle"] = "../x"
			return r
		}()), "bundle: \"../x\" does not lie beside the rows"},
	} {
		t.Run(name, func(t *testing.T) {
			found, problems := load(t, put(t, t.TempDir(), "rows.jsonl", good+c.bad))
			if c.want == "" {
				if len(found) != 2 {
					t.Errorf("%d tasks, problems %q", len(found), problems)
				}
				return
			}
			if len(found) != 1 || found[0].ID != "acme__tool-1" {
				t.Errorf("%d tasks were loaded", len(found))
			}
			if len(problems) != 1 || !strings.Contains(problems[0], c.want) || !strings.Contains(problems[0], "rows.jsonl") {
				t.Errorf("problems are %q, want %q", problems, c.want)
			}
		})
	}
}

func TestBadFiles(t *testing.T) {
	for name, want := range map[string]string{"a.parquet": "is no parquet file", "b.json": "is no JSON", "c.jsonl.gz": "is no gzip file"} {
		content := map[string]string{"a.parquet": "PAR1 and nothing", "b.json": "[{\"a\": 1}, {", "c.jsonl.gz": "\x1f\x8b and nothing"}[name]
		_, problems := load(t, put(t, t.TempDir(), name, content))
		if !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, want) && strings.Contains(p, name) }) {
			t.Errorf("%s: %q", name, problems)
		}
	}
	if _, problems := Load(context.Background(), Options{Source: "humaneval"}, "x"); len(problems) != 1 || !strings.Contains(problems[0].String(), "swe-bench-pro") {
		t.Errorf("an unknown set gives %v", problems)
	}
}

// The same row is written once; another row, or another bundle, elsewhere.
func TestWriteIsByContent(t *testing.T) {
	dir, data := t.TempDir(), t.TempDir()
	row := sample("swe-bench recipe")
	file := put(t, dir, "rows.jsonl", lineOf(t, row))
	put(t, dir, "repos/acme__tool.bundle", "one")
	folder := func() string {
		found, problems := Load(context.Background(), Options{Dir: data}, file)
		if len(found) != 1 {
			t.Fatal(problems)
		}
		if got, err := os.ReadFile(filepath.Join(found[0].Dir, "repo.bundle")); err != nil || len(got) == 0 {
			t.Errorf("the bundle is %q, %v", got, err)
		}
		return found[0].Dir
	}
	first := folder()
	if again := folder(); again != first {
		t.Error("the same row was written twice")
	}
	_ = os.Remove(filepath.Join(dir, "repos/acme__tool.bundle"))
	put(t, dir, "repos/acme__tool.bundle", "another")
	if other := folder(); other == first {
		t.Error("another bundle gives the same task")
	}
}

func TestReverse(t *testing.T) {
	for in, want := range map[string]string{
		"--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@ f\n a\n-b\n+c\n+d":             "--- a/x\n+++ b/x\n@@ -1,3 +1,2 @@ f\n a\n+b\n-c\n-d",
		"new file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a": "deleted file mode 100644\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a",
	} {
		if got := reverse(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
		if back := reverse(reverse(in)); back != in {
			t.Errorf("twice reversed, %q is %q", in, back)
		}
	}
}

func TestPythonList(t *testing.T) {
	for in, want := range map[string]string{`['a', "b'c", 'd\'e', 'f\n']`: fmt.Sprint([]string{"a", "b'c", "d'e", "f\n"}), `[]`: "[]", `["a",]`: "[a]"} {
		got, ok := pythonList(in)
		if !ok || fmt.Sprint(got) != want {
			t.Errorf("%s is %q, %t", in, got, ok)
		}
	}
	for _, in := range []string{"", "x", "['a'", "[a]", "['a' 'b']", "['a"} {
		if got, ok := pythonList(in); ok {
			t.Errorf("%s is %q", in, got)
		}
	}
}

func FuzzRows(f *testing.F) {
	f.Add([]byte(`{"instance_id": "a", "repo": "b/c", "base_commit": "0123456", "problem_statement": "x", "FAIL_TO_PASS": "['a']"}`))
	f.Add([]byte(`[{"org": "a", "number": 1, "fix_patch": "--- a/x\n+++ b/x"}]`))
	f.Add([]byte("{\n\"a\": {\"docker_image\": \"x\", \"expected_output_json\": \"{}\"}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file := filepath.Join(t.TempDir(), "rows.jsonl")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		found, problems := Load(context.Background(), Options{Dir: t.TempDir()}, file)
		for _, p := range problems {
			if p.File == "" || p.Message == "" {
				t.Errorf("a problem without a file or words: %+v", p)
			}
		}
		_ = found
	})
}
