package sets

import (
	"path"
	"strings"
)

// SWE-rebench and SWE-rebench-V2: SWE-bench's fields and an install_config with test_cmd and log_parser.
// V2 names image and language, has the repository at /<name>, and runs test_cmd as it is.

func isRebench(r *row) bool { return isSWEBench(r) && r.has("install_config") }

func rebench(r *row) *draft {
	d := issue(r, "swe-rebench")
	config := r.object("install_config")
	if config == nil {
		r.fault("install_config", "is missing", "the set's rows need it")
		return d
	}
	defer r.take("install_config", config)
	second := r.has("language")
	d.task.Image = r.maybe(r.first("image_name", "docker_image"))
	d.origin["image"] = r.first("image_name", "docker_image")
	if d.task.Image == "" {
		d.task.Image = imageOf("swerebench/sweb.eval.x86_64.", d.task.ID)
	}
	d.interface_(r)
	command := config.lines("test_cmd")
	if command == "" {
		config.fault("test_cmd", "is missing", "the set's rows need it")
	}
	if second {
		d.task.Workdir = "/" + path.Base(d.task.Vars.UpstreamRepo)
		d.script("set -uo pipefail\n"+command, parserReport(config.text("log_parser")))
		return d
	}
	d.task.Env = map[string]string{"PATH": testbedPath, "CONDA_DEFAULT_ENV": "testbed"}
	parser := config.maybe("log_parser")
	if parser == "" {
		parser = "pytest"
	}
	d.script(testbedScript(nil, command+" "+strings.Join(directives("", d.task.TestPaths), " ")), parserReport(parser))
	return d
}

// lines gives a field of shell lines: text, or a list.
func (r *row) lines(field string) string {
	if s, ok := r.fields[field].(string); ok && !strings.HasPrefix(strings.TrimSpace(s), "[\"") {
		return s
	}
	return strings.Join(r.list(field), "\n")
}

// interface_ adds what a set tells of the names that hidden tests use.
func (d *draft) interface_(r *row) {
	for _, part := range []struct{ field, title string }{{"requirements", "Requirements"}, {"interface", "New interfaces introduced"}} {
		text := strings.TrimSpace(r.maybe(part.field))
		if text != "" && !strings.EqualFold(text, "none") {
			d.task.Instruction += "\n" + part.title + ":\n" + text + "\n"
		}
	}
}
