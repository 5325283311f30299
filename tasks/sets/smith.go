package sets

import (
	"path"
	"slices"
	"strings"

	"proctor/tasks"
)

// SWE-smith: `patch` IS the bug, and the solution is its reverse. The published branch of an instance
// has the failing tests removed in its last commit, so that HEAD~1 holds them, and the commit before
// the bug holds the answer; both are ancestors. Here the bug is put into the set's image, the files of
// the failing tests are moved to a hidden folder that the grader takes them from, and the history is
// squashed.

const smithHidden = "/hidden/tests"

func isSmith(r *row) bool {
	repo, _ := r.fields["repo"].(string)
	return r.has("instance_id") && r.has("patch") && (strings.HasPrefix(repo, "swesmith/") || r.has("image_name") && !r.has("base_commit") && !r.has("test_patch"))
}

func smith(r *row) *draft {
	d := newDraft("swe-smith")
	d.task.ID = r.text("instance_id")
	d.statement(r.text("problem_statement"))
	d.task.Workdir, d.task.Squash = "/testbed", true
	owner, name := smithRepo(r.text("repo"))
	d.repo(strings.Trim(owner+"/"+name, "/"), "")
	d.origin["vars.upstream_repo"] = "repo"
	d.task.Env = map[string]string{"PATH": testbedPath, "CONDA_DEFAULT_ENV": "testbed"}
	bug := r.text("patch")
	d.gold(reverse(bug))
	d.tests(r, []string{"FAIL_TO_PASS"}, []string{"PASS_TO_PASS"})
	image := r.text("image_name")
	d.origin["build.base"] = "image_name"
	d.files["bug/.bug.patch"] = []byte(ended(bug))
	tests := testFilesOf(d.task.Grader.FailToPass)
	d.task.Build = &tasks.Build{Base: image, Files: "bug", Run: smithLines(tests)}
	d.task.HiddenPaths = []string{path.Dir(smithHidden)}
	d.task.TestPaths = tests
	if len(tests) > 0 {
		d.task.Grader.FromImage = []tasks.ImageFiles{{Path: smithHidden, To: "."}}
	}
	run := testFilesOf(append(slices.Clone(d.task.Grader.FailToPass), d.task.Grader.PassToPass...))
	for i := range run {
		run[i] = quote(run[i])
	}
	d.script(testbedScript(nil, "pytest --disable-warnings --color=no --tb=no --verbose -rA "+strings.Join(run, " ")), "log:pytest")
	return d
}

func smithLines(tests []string) []string {
	lines := []string{"git apply --whitespace=nowarn .bug.patch && rm .bug.patch", "mkdir -p " + smithHidden}
	for _, t := range tests {
		lines = append(lines, "if [ -e "+quote(t)+" ]; then cp -r --parents "+quote(t)+" "+smithHidden+" && git rm -rqf --ignore-unmatch "+quote(t)+" && rm -rf "+quote(t)+"; fi")
	}
	return append(lines, "git add -A && git -c user.name=user -c user.email=user@localhost commit -q --no-verify -m 'Initial commit'")
}

// smithRepo takes swesmith/owner__name.commit apart.
func smithRepo(repo string) (owner, name string) {
	repo = strings.TrimPrefix(repo, "swesmith/")
	if i := strings.LastIndex(repo, "."); i > 0 {
		repo = repo[:i]
	}
	owner, name, ok := strings.Cut(repo, "__")
	if !ok {
		return "", path.Base(repo)
	}
	return owner, name
}

// testFilesOf gives the files that test ids are in, each once.
func testFilesOf(ids []string) []string {
	var files []string
	for _, id := range ids {
		file, _, ok := strings.Cut(id, "::")
		file = path.Clean(file)
		if ok && !slices.Contains(files, file) && !path.IsAbs(file) && !strings.HasPrefix(file, "../") {
			files = append(files, file)
		}
	}
	slices.Sort(files)
	return files
}

// reverse gives the patch that undoes a patch of text files.
func reverse(patch string) string {
	var out []string
	lines := strings.Split(strings.TrimRight(patch, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		switch {
		case strings.HasPrefix(line, "--- ") && i+1 < len(lines) && strings.HasPrefix(lines[i+1], "+++ "):
			out = append(out, "--- "+side(lines[i+1][4:], "a/"), "+++ "+side(line[4:], "b/"))
			i++
		case strings.HasPrefix(line, "new file mode "):
			out = append(out, "deleted file mode "+line[len("new file mode "):])
		case strings.HasPrefix(line, "deleted file mode "):
			out = append(out, "new file mode "+line[len("deleted file mode "):])
		case strings.HasPrefix(line, "old mode "):
			out = append(out, "new mode "+line[len("old mode "):])
		case strings.HasPrefix(line, "new mode "):
			out = append(out, "old mode "+line[len("new mode "):])
		case strings.HasPrefix(line, "index ") || strings.HasPrefix(line, "similarity index "): // names contents by hash: not needed
		case strings.HasPrefix(line, "@@ "):
			out = append(out, swapRanges(line))
		case strings.HasPrefix(line, "+"):
			out = append(out, "-"+line[1:])
		case strings.HasPrefix(line, "-"):
			out = append(out, "+"+line[1:])
		default:
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

// side gives a file's name as the other side of a patch writes it.
func side(name, prefix string) string {
	if strings.HasPrefix(name, "a/") || strings.HasPrefix(name, "b/") {
		return prefix + name[2:]
	}
	return name
}

// swapRanges turns "@@ -1,2 +3,4 @@ x" round.
func swapRanges(line string) string {
	parts := strings.SplitN(line, " ", 5)
	if len(parts) < 4 || len(parts[1]) == 0 || len(parts[2]) == 0 {
		return line
	}
	parts[1], parts[2] = "-"+parts[2][1:], "+"+parts[1][1:]
	return strings.Join(parts, " ")
}
