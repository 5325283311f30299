package sets

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"proctor/tasks"
)

// SWE-bench, Lite, Verified, and sets of its form (SWE-Gym, Nemotron). Version 5 rows bring image,
// eval_script, eval_type and log_parser; earlier ones leave image and commands to the set's harness:
// here imageOf and specOf. A row with an `install` recipe is built from the repository instead.

// testbedPath puts the conda environment of the set's images first, as its activation does.
const testbedPath = "/opt/miniconda3/envs/testbed/bin:/opt/miniconda3/condabin:/opt/miniconda3/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

func isSWEBench(r *row) bool {
	return r.has("instance_id") && r.has("repo") && r.has("base_commit") && r.has("problem_statement")
}

func swebench(r *row) *draft {
	d := issue(r, "swe-bench")
	if r.has("install") {
		recipe(r, d)
		return d
	}
	d.task.Image = r.maybe("image")
	if d.task.Image == "" {
		d.task.Image = imageOf("swebench/sweb.eval.x86_64.", d.task.ID)
	}
	d.origin["image"] = "image"
	d.task.Env = map[string]string{"PATH": testbedPath, "CONDA_DEFAULT_ENV": "testbed"}
	command, parser := specOf(r.maybe("repo"))
	if given := r.maybe("log_parser"); given != "" {
		parser = given
	}
	if script := r.maybe("eval_script"); script != "" {
		d.script(script, parserReport(parser))
		return d
	}
	d.script(testbedScript(nil, command+" "+strings.Join(directives(r.maybe("repo"), d.task.TestPaths), " ")), parserReport(parser))
	return d
}

// imageOf names an instance's image as the set's harness does: a registry takes no double underscore.
func imageOf(prefix, id string) string {
	return prefix + strings.ToLower(strings.ReplaceAll(id, "__", "_1776_")) + ":latest"
}

// testbedScript runs lines and a test command in the environment of the set's images.
func testbedScript(before []string, command string) string {
	lines := []string{"set -uo pipefail", "[ ! -f /opt/miniconda3/bin/activate ] || { set +u; source /opt/miniconda3/bin/activate; conda activate testbed; set -u; }"}
	lines = append(lines, before...)
	return strings.Join(append(lines, command), "\n")
}

// specOf gives a repository's test command and log parser, as the set's harness has them for its
// twelve repositories and their newest versions.
func specOf(repo string) (command, parser string) {
	switch strings.ToLower(repo) {
	case "django/django":
		return "./tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1", "django"
	case "sympy/sympy":
		return "PYTHONWARNINGS='ignore::UserWarning,ignore::SyntaxWarning' bin/test -C --verbose", "sympy"
	case "sphinx-doc/sphinx":
		return "tox --current-env -epy39 -v --", "sphinx"
	case "mwaskom/seaborn":
		return "pytest --no-header -rA", "seaborn"
	case "matplotlib/matplotlib":
		return "pytest -rA", "matplotlib"
	case "astropy/astropy":
		return "pytest -rA -vv -o console_output_style=classic --tb=no", "astropy"
	case "scikit-learn/scikit-learn":
		return "pytest -rA", "scikit"
	case "psf/requests":
		return "pytest -rA", "requests"
	case "pylint-dev/pylint":
		return "pytest -rA", "pylint"
	}
	return "pytest -rA", "pytest"
}

// notTests are endings of files in test patches that are no tests themselves, from the harness.
var notTests = []string{".json", ".png", ".csv", ".txt", ".md", ".jpg", ".jpeg", ".pkl", ".yml", ".yaml", ".toml"}

// directives gives the arguments that name the tests of files. Django's runner takes modules.
func directives(repo string, files []string) []string {
	var out []string
	for _, f := range files {
		if slices.Contains(notTests, path.Ext(f)) {
			continue
		}
		if strings.EqualFold(repo, "django/django") {
			f = strings.ReplaceAll(strings.TrimPrefix(strings.TrimSuffix(f, ".py"), "tests/"), "/", ".")
		}
		out = append(out, quote(f))
	}
	return out
}

// quote quotes a word for a shell where it needs it.
func quote(word string) string {
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+=@%:,") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Where a recipe's repository and environment lie, and the image that it starts from unless it names
// one.
const (
	recipeVenv = "/opt/venv"
	recipeBase = "proctor/base:dev"
)

// recipe makes a draft whose image is built: an environment of Python, the row's `install` lines, and
// the repository from a bundle beside the rows (repos/<owner>__<name>.bundle, or the row's `bundle`),
// else cloned from the code host.
func recipe(r *row, d *draft) {
	in := r.object("install")
	if in == nil {
		return
	}
	defer r.take("install", in)
	d.origin["build"] = "install"
	base := in.maybe("base")
	if base == "" {
		base = recipeBase
	}
	b := &tasks.Build{Base: base, Apt: in.list("apt"), Venv: recipeVenv, Pre: in.list("pre"), Pip: in.list("pip")}
	d.task.Build = b
	d.task.Env = map[string]string{"VIRTUAL_ENV": recipeVenv, "PATH": recipeVenv + "/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	commit := d.task.Vars.BaseCommit
	d.source(r, b)
	b.Run = append(b.Run, "git reset -q --hard "+quote(commit))
	if line := in.maybe("install_cmd"); line != "" {
		b.Run = append(b.Run, line)
	}
	command := in.text("test_cmd")
	g := d.task.Grader
	d.origin["grader.command"] = "install.test_cmd"
	g.Command = command
	g.Report = parserReport(in.maybe("log_parser"))
	switch {
	case g.Report != "log:":
	case runsPytest(command):
		g.Command, g.Report = withJUnit(command), "junit"
	default:
		in.fault("log_parser", "is missing, and the test command is not pytest", "name the parser of its output")
	}
}

// source finds the row's repository.
func (d *draft) source(r *row, b *tasks.Build) {
	repo := r.maybe("repo")
	name := strings.ReplaceAll(repo, "/", "__") + ".bundle"
	candidates := []string{filepath.Join(filepath.Dir(r.file), "repos", name), filepath.Join(filepath.Dir(r.file), name)}
	if given := r.maybe("bundle"); given != "" {
		if !filepath.IsLocal(given) {
			r.fault("bundle", fmt.Sprintf("%q does not lie beside the rows", given), "put the bundle below the folder of the rows")
			return
		}
		candidates = []string{filepath.Join(filepath.Dir(r.file), given)}
	}
	for _, c := range candidates {
		if isFile(c) {
			d.links[bundleFile], b.Bundle = c, bundleFile
			d.origin["build.bundle"] = "repo"
			return
		}
	}
	if r.has("bundle") {
		r.fault("bundle", fmt.Sprintf("%q is not there", r.maybe("bundle")), "make it with git bundle create FILE --all")
		return
	}
	b.Run = append(b.Run, "git clone -q "+quote("https://github.com/"+repo)+" . && git remote remove origin")
}

// runsPytest reports whether a command is one run of pytest.
func runsPytest(command string) bool {
	return !strings.ContainsAny(command, ";|&\n") && slices.ContainsFunc(strings.Fields(command), func(w string) bool {
		return path.Base(w) == "pytest" || path.Base(w) == "py.test"
	})
}

// withJUnit asks pytest for a structured report as well.
func withJUnit(command string) string {
	for _, name := range []string{"py.test", "pytest"} {
		if i := strings.LastIndex(command, name+" "); i >= 0 {
			i += len(name)
			return command[:i] + " --junitxml={report} -o junit_family=xunit2" + command[i:]
		}
	}
	return command + " --junitxml={report} -o junit_family=xunit2"
}
