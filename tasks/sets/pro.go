package sets

import (
	"os"
	"path/filepath"
	"strings"
)

// SWE-bench Pro: one image a row by dockerhub_tag, the repository at /app, run_script.sh and parser.py
// in a folder run_scripts/<instance_id> that the set publishes beside the rows. The image's ENTRYPOINT
// is bash, which sandboxes never run.
//
// before_repo_set_cmd ends by checking the tests out of the fix commit. Hardening takes that commit
// away, and the row's test_patch makes the same files.

func isPro(r *row) bool { return r.has("instance_id") && r.has("dockerhub_tag") }

func pro(r *row) *draft {
	d := issue(r, "swe-bench-pro")
	d.task.Workdir = "/app"
	d.task.Image = "jefzda/sweap-images:" + r.text("dockerhub_tag")
	d.origin["image"] = "dockerhub_tag"
	d.interface_(r)
	files := r.list("selected_test_files_to_run")
	run, parser := proScript(r, d.task.ID, "run_script.sh"), proScript(r, d.task.ID, "parser.py")
	d.files["hidden/pro/run_script.sh"], d.files["hidden/pro/parser.py"] = run, parser
	d.files["hidden/pro/junit.py"] = []byte(proJUnit)
	d.task.Grader.Files, d.task.Grader.FilesTo = "hidden/pro", "/tmp/pro"
	d.task.Grader.Command = "bash /tmp/pro/run_script.sh " + quote(strings.Join(files, ",")) + " > /tmp/pro/stdout.log 2> /tmp/pro/stderr.log; " +
		"python3 /tmp/pro/parser.py /tmp/pro/stdout.log /tmp/pro/stderr.log /tmp/pro/output.json && python3 /tmp/pro/junit.py /tmp/pro/output.json {report}"
	d.task.Grader.Report = "junit"
	return d
}

// proScript reads one of the row's two scripts.
func proScript(r *row, id, name string) []byte {
	if !filepath.IsLocal(id) || strings.ContainsAny(id, `/\`) {
		return nil // the id is refused anyway
	}
	dir := filepath.Dir(r.file)
	for _, base := range []string{dir, filepath.Dir(dir)} {
		data, err := os.ReadFile(filepath.Join(base, "run_scripts", id, name))
		if err == nil {
			return data
		}
	}
	r.fault("instance_id", "has no run_scripts/"+id+"/"+name+" beside the rows", "put the set's run_scripts folder beside the file of rows")
	return nil
}

// proJUnit writes what a row's parser.py found as a JUnit report.
const proJUnit = `import json, re, sys
from xml.sax.saxutils import quoteattr
tests = json.load(open(sys.argv[1])).get("tests", [])
with open(sys.argv[2], "w", encoding="utf-8") as out:
    out.write("<testsuites><testsuite>")
    for t in tests:
        name = re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f]", "?", str(t.get("name")))
        head, bracket, params = name.partition("[")
        parts = head.split("::")
        cls = ".".join([re.sub(r"\.py$", "", parts[0]).replace("/", ".")] + parts[1:-1]) if len(parts) > 1 else ""
        short = parts[-1] + bracket + params if len(parts) > 1 else name
        inner = {"PASSED": "", "SKIPPED": "<skipped/>"}.get(str(t.get("status")), "<failure/>")
        out.write("<testcase classname=%s name=%s>%s</testcase>" % (quoteattr(cls), quoteattr(short), inner))
    out.write("</testsuite></testsuites>")
`
