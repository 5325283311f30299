package sets

import (
	"slices"
	"strings"
)

// SWE-Gym, and Nemotron's rows, which have its form: SWE-bench's fields, other repositories, images of
// their own.

// gymRepos are the repositories of SWE-Gym; none is SWE-bench's.
var gymRepos = []string{"python/mypy", "dask/dask", "pandas-dev/pandas", "getmoto/moto", "pydantic/pydantic", "facebookresearch/hydra",
	"bokeh/bokeh", "modin-project/modin", "conan-io/conan", "iterative/dvc", "project-monai/monai"}

func isGym(r *row) bool {
	repo, _ := r.fields["repo"].(string)
	return isSWEBench(r) && !r.has("install") && !r.has("image") && slices.Contains(gymRepos, strings.ToLower(repo))
}

func gym(r *row) *draft {
	d := issue(r, "swe-gym")
	d.task.Image = r.maybe(r.first("image", "image_name", "docker_image"))
	if d.task.Image == "" {
		d.task.Image = "xingyaoww/sweb.eval.x86_64." + strings.ToLower(strings.ReplaceAll(d.task.ID, "__", "_s_")) + ":latest"
	}
	d.task.Env = map[string]string{"PATH": testbedPath, "CONDA_DEFAULT_ENV": "testbed"}
	command := "pytest -rA --tb=long -p no:cacheprovider"
	if strings.EqualFold(d.task.Vars.UpstreamRepo, "python/mypy") {
		command = "pytest -rA -n0 -k " + quote(strings.Join(mypyCases(d), " or "))
		d.script(testbedScript(nil, command), "log:pytest")
		return d
	}
	d.script(testbedScript(nil, command+" "+strings.Join(directives("", d.task.TestPaths), " ")), "log:pytest")
	return d
}

// mypyCases gives the names of data-driven cases that the listed tests are: mypy's suite takes them
// by name and not by file.
func mypyCases(d *draft) []string {
	var names []string
	for _, id := range append(slices.Clone(d.task.Grader.FailToPass), d.task.Grader.PassToPass...) {
		name := id[strings.LastIndex(id, "::")+1:]
		name = strings.TrimPrefix(name, ":")
		if !slices.Contains(names, name) && len(names) < 2000 {
			names = append(names, name)
		}
	}
	return names
}
