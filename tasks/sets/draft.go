package sets

import (
	"path"
	"strings"

	"proctor/tasks"
)

// draft is a task as a set's loader makes it of a row, before it is written and checked.
type draft struct {
	task   tasks.Task
	files  map[string][]byte // what the task names, beside its task.yaml
	links  map[string]string // the same for large files of the host: name -> where the file is
	origin map[string]string // a field of the task -> the row's, for errors
}

// Names of the files that drafts write.
const (
	goldFile     = "solution/gold.patch"
	testFile     = "hidden/test.patch"
	scriptFile   = "hidden/run.sh"
	solutionFile = "solution/solve.sh"
	bundleFile   = "repo.bundle"
)

// graderTimeout bounds the tests of a published task, in seconds: what the sets' own harnesses use.
const graderTimeout = 1800

// Limits of a published task that sets none: test suites of large projects need more than the default.
const (
	publishedMemoryMB = 4096
	publishedPids     = 1024
)

func newDraft(source string) *draft {
	d := &draft{
		task:   tasks.Task{Source: source, Grader: &tasks.Grader{Kind: "patch", TimeoutS: graderTimeout}},
		files:  map[string][]byte{},
		links:  map[string]string{},
		origin: map[string]string{"id": "instance_id", "instruction": "problem_statement"},
	}
	d.task.Limits.MemoryMB, d.task.Limits.Pids = publishedMemoryMB, publishedPids
	return d
}

// issue starts a draft from the fields that all sets of SWE-bench's family share: id, issue, patches
// and test lists.
func issue(r *row, source string) *draft {
	d := newDraft(source)
	d.task.ID = r.text("instance_id")
	d.statement(r.text("problem_statement"))
	d.task.Workdir = "/testbed"
	d.repo(r.text("repo"), r.text("base_commit"))
	d.task.Vars.BaseVersion = r.maybe("version")
	d.gold(r.text("patch"))
	d.testPatch(r.maybe("test_patch"))
	d.tests(r, []string{"FAIL_TO_PASS", "fail_to_pass"}, []string{"PASS_TO_PASS", "pass_to_pass"})
	return d
}

// statement sets the instruction: always text, never a file's name.
func (d *draft) statement(text string) {
	if text != "" {
		d.task.Instruction = strings.TrimRight(text, "\n") + "\n"
	}
}

// repo sets what the rules know of the upstream project.
func (d *draft) repo(repo, commit string) {
	d.task.Vars.UpstreamRepo = repo
	d.task.Vars.BaseCommit = strings.ToLower(commit)
	d.origin["vars.upstream_repo"], d.origin["vars.base_commit"] = "repo", "base_commit"
	if name := path.Base(repo); name != "." && name != "/" {
		d.task.Vars.Package = strings.ToLower(name)
	}
}

func (d *draft) gold(patch string) {
	if patch == "" {
		return
	}
	d.task.Solution, d.files[goldFile] = goldFile, []byte(ended(patch))
	d.origin["solution"] = "patch"
}

// testPatch sets the hidden tests and the paths that they are in.
func (d *draft) testPatch(patch string) {
	if strings.TrimSpace(patch) == "" {
		return
	}
	d.task.Grader.TestPatch, d.files[testFile] = testFile, []byte(ended(patch))
	d.origin["grader.test_patch"], d.origin["test_paths"] = "test_patch", "test_patch"
	d.task.TestPaths = patchedFiles(patch)
}

func ended(text string) string { return strings.TrimRight(text, "\n") + "\n" }

func (d *draft) tests(r *row, failing, passing []string) {
	g := d.task.Grader
	d.origin["grader.fail_to_pass"], d.origin["grader.pass_to_pass"] = r.first(failing...), r.first(passing...)
	g.FailToPass = r.list(failing...)
	seen := map[string]bool{}
	for _, id := range g.FailToPass {
		seen[id] = true
	}
	g.PassToPass = []string{}
	for _, id := range r.list(passing...) {
		if !seen[id] { // some rows list a test twice; what must be fixed counts
			g.PassToPass = append(g.PassToPass, id)
		}
	}
}

// script sets a test script, run by bash.
func (d *draft) script(text, report string) {
	d.task.Grader.Script, d.files[scriptFile] = scriptFile, []byte(ended(text))
	d.task.Grader.Report = report
}

// patchedFiles gives the files that a patch writes, in order, each once.
func patchedFiles(patch string) []string {
	var files []string
	seen := map[string]bool{}
	for _, line := range strings.Split(patch, "\n") {
		name, ok := strings.CutPrefix(line, "+++ b/")
		if !ok {
			continue
		}
		name, _, _ = strings.Cut(strings.TrimRight(name, "\r"), "\t")
		name = path.Clean(name)
		if !seen[name] && name != "." && !strings.HasPrefix(name, "../") && !path.IsAbs(name) {
			seen[name] = true
			files = append(files, name)
		}
	}
	return files
}

// parserReport gives grader.report for a log parser as sets name it.
func parserReport(name string) string {
	return "log:" + strings.TrimPrefix(name, "parse_log_")
}
