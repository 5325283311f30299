package sets

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"proctor/tasks"
)

// R2E-Gym: images with the repository at /testbed, tests at /r2e_tests, and beside the repository's own
// files untracked ones of the set's making, some of which hold the answer. The row holds the fix as
// contents of files (parsed_commit_content), the statuses that tests must end with
// (expected_output_json), and what pytest printed before and after (execution_result_content).

func isR2E(r *row) bool { return r.has("docker_image") && r.has("expected_output_json") }

// r2eHidden are the files of the set's making, from its images.
var r2eHidden = []string{"/r2e_tests", "/root/r2e_tests", "/testbed/r2e_tests", "/testbed/run_tests.sh", "/testbed/expected_test_output.json",
	"/testbed/execution_result.json", "/testbed/parsed_commit.json", "/testbed/syn_issue.json", "/testbed/modified_files.json",
	"/testbed/modified_entities.json"}

func r2e(r *row) *draft {
	d := newDraft("r2e-gym")
	repo, commit := r.text("repo_name"), r.text("commit_hash")
	d.task.ID = repo + "__" + commit
	d.origin["id"] = "commit_hash"
	if len(commit) > 12 {
		d.task.ID = repo + "__" + commit[:12]
	}
	d.task.Image, d.task.Workdir = r.text("docker_image"), "/testbed"
	d.origin["image"] = "docker_image"
	d.statement(r.text("problem_statement"))
	d.task.Vars.Package = strings.ToLower(repo)
	d.task.HiddenPaths = r2eHidden
	d.task.Env = map[string]string{"PATH": "/testbed/.venv/bin:/root/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	d.r2eTests(r)
	d.r2eSolution(r)
	d.task.Grader.FromImage = []tasks.ImageFiles{{Path: "/r2e_tests", To: "r2e_tests"}}
	d.task.Grader.Command = "python -W ignore -m pytest -rA --junitxml={report} -o junit_family=xunit2 r2e_tests"
	d.task.Grader.Report = "junit"
	return d
}

// passedLine is a line of pytest's summary.
var passedLine = regexp.MustCompile(`(?m)^PASSED (\S.*?)\s*$`)

// r2eTests tells the tests that must pass by whether they passed before the fix. Ids are those of
// pytest's own output; the row's expected list has them without files.
func (d *draft) r2eTests(r *row) {
	d.origin["grader.fail_to_pass"], d.origin["grader.pass_to_pass"] = "expected_output_json", "expected_output_json"
	d.task.Grader.PassToPass = []string{}
	expected := r.object("expected_output_json")
	result := r.object("execution_result_content")
	if expected == nil || result == nil {
		if !r.has("execution_result_content") {
			r.fault("execution_result_content", "is missing", "without it the tests' files and what passed before are not known")
		}
		return
	}
	before := map[string]bool{}
	for _, m := range passedLine.FindAllStringSubmatch(result.maybe("old_commit_res_stdout"), -1) {
		before[m[1]] = true
	}
	for _, m := range passedLine.FindAllStringSubmatch(result.maybe("new_commit_res_stdout"), -1) {
		id := m[1]
		short := strings.ReplaceAll(id[strings.Index(id, "::")+1:], "::", ".")
		if expected.fields[strings.TrimPrefix(short, ".")] != "PASSED" && expected.fields[strings.TrimPrefix(short, ":")] != "PASSED" {
			continue
		}
		if before[id] {
			d.task.Grader.PassToPass = append(d.task.Grader.PassToPass, id)
		} else if !slices.Contains(d.task.Grader.FailToPass, id) {
			d.task.Grader.FailToPass = append(d.task.Grader.FailToPass, id)
		}
	}
	r.take("execution_result_content", result)
}

// r2eSolution makes a script that writes the fixed files.
func (d *draft) r2eSolution(r *row) {
	var commit struct {
		FileDiffs []struct {
			Header struct {
				File struct {
					Path string `json:"path"`
				} `json:"file"`
			} `json:"header"`
			NewContent *string `json:"new_file_content"`
		} `json:"file_diffs"`
	}
	text := r.maybe("parsed_commit_content")
	if text == "" {
		return
	}
	if err := json.Unmarshal([]byte(text), &commit); err != nil {
		r.fault("parsed_commit_content", "holds no JSON: "+err.Error(), "leave it out, or fetch it anew")
		return
	}
	fixed := map[string]string{}
	for _, f := range commit.FileDiffs {
		name := path.Clean(f.Header.File.Path)
		if f.NewContent != nil && !path.IsAbs(name) && !strings.HasPrefix(name, "../") && !looksLikeTest(name) {
			fixed[name] = *f.NewContent
		}
	}
	if len(fixed) == 0 {
		return
	}
	var b strings.Builder
	b.WriteString("set -eu\n")
	for i, name := range slices.Sorted(maps.Keys(fixed)) {
		end := fmt.Sprintf("END_OF_FILE_%d", i)
		for strings.Contains(fixed[name], end) {
			end += "_"
		}
		fmt.Fprintf(&b, "mkdir -p %s\ncat > %s <<'%s'\n%s\n%s\n", quote(path.Dir(name)), quote(name), end, strings.TrimRight(fixed[name], "\n"), end)
	}
	d.task.Solution, d.files[solutionFile] = solutionFile, []byte(b.String())
	d.origin["solution"] = "parsed_commit_content"
}

func looksLikeTest(name string) bool {
	base := path.Base(name)
	return strings.HasPrefix(base, "test_") || strings.HasSuffix(base, "_test.py") || strings.Contains("/"+name, "/tests/") || strings.Contains("/"+name, "/test/")
}
