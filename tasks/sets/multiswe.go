package sets

import (
	"encoding/json"
	"fmt"
	"path"
	"sort"
	"strings"
)

// Multi-SWE-bench and Multi-SWE-RL: a pull request in org, repo and number; images with the repository
// at /home/<repo>, and beside it run.sh (the tests as they are), test-run.sh and fix-run.sh (with the
// patches, which lie there too: fix.patch is the answer).

func isMultiSWE(r *row) bool { return r.has("org") && r.has("number") && r.has("fix_patch") }

func multiSWE(r *row) *draft {
	d := newDraft("multi-swe")
	org, repo, number := r.text("org"), r.text("repo"), r.text("number")
	d.task.ID = r.maybe("instance_id")
	if d.task.ID == "" {
		d.task.ID = org + "__" + repo + "-" + number
		d.origin["id"] = "number"
	}
	if base := r.object("base"); base != nil {
		d.repo(org+"/"+repo, base.text("sha"))
		r.take("base", base)
		d.origin["vars.base_commit"] = "base.sha"
	} else if !r.failed("base") {
		r.fault("base", "is missing", "the set's rows need it")
	}
	d.statement(multiText(r))
	d.origin["instruction"] = "resolved_issues"
	d.task.Image = strings.ToLower("mswebench/"+org+"_m_"+repo) + ":pr-" + number
	d.task.Workdir = "/home/" + repo
	d.task.HiddenPaths = []string{"/home/fix.patch", "/home/test.patch", "/home/fix-run.sh", "/home/test-run.sh"}
	d.gold(r.text("fix_patch"))
	d.origin["solution"] = "fix_patch"
	d.testPatch(r.maybe("test_patch"))
	for _, field := range []string{"f2p_tests", "s2p_tests", "n2p_tests"} {
		d.task.Grader.FailToPass = append(d.task.Grader.FailToPass, r.testNames(field)...)
	}
	d.task.Grader.PassToPass = r.testNames("p2p_tests")
	d.origin["grader.fail_to_pass"], d.origin["grader.pass_to_pass"] = "f2p_tests", "p2p_tests"
	parser := r.maybe("log_parser")
	if parser == "" {
		parser = parserOfFiles(patchedFiles(string(d.files[goldFile])))
	}
	d.script("bash /home/run.sh", parserReport(parser))
	return d
}

// multiText gives what the pull request resolves: the issues, or its own title and body.
func multiText(r *row) string {
	issues, _ := r.fields["resolved_issues"].([]any)
	if s, ok := r.fields["resolved_issues"].(string); ok {
		_ = json.Unmarshal([]byte(s), &issues) // else the pull request's own text
	}
	var parts []string
	for _, issue := range issues {
		if m, ok := issue.(map[string]any); ok {
			parts = append(parts, strings.TrimSpace(fmt.Sprint(orEmpty(m["title"]))+"\n\n"+fmt.Sprint(orEmpty(m["body"]))))
		}
	}
	if len(parts) == 0 {
		parts = []string{r.text("title") + "\n\n" + r.maybe("body")}
	}
	return strings.Join(parts, "\n\n")
}

func orEmpty(v any) any {
	if v == nil {
		return ""
	}
	return v
}

// testNames gives the names of a list of tests, or of an object by test name.
func (r *row) testNames(field string) []string {
	switch v := r.fields[field].(type) {
	case map[string]any:
		names := make([]string, 0, len(v))
		for name, state := range v {
			if state != nil { // parquet gives every row the names of all
				names = append(names, name)
			}
		}
		sort.Strings(names)
		return names
	case string:
		if inner := r.object(field); inner != nil && strings.HasPrefix(strings.TrimSpace(v), "{") {
			return (&row{fields: map[string]any{field: inner.fields}}).testNames(field)
		}
	}
	return r.list(field)
}

// parserOfFiles guesses the runner of a project from the files that its fix changes.
func parserOfFiles(files []string) string {
	parsers := map[string]string{".go": "gotest", ".rs": "cargo", ".java": "maven", ".kt": "gradle_custom", ".js": "jest", ".jsx": "jest", ".ts": "jest",
		".tsx": "jest", ".vue": "vitest", ".svelte": "vitest", ".c": "googletest", ".cc": "googletest", ".cpp": "googletest", ".h": "googletest", ".hpp": "googletest",
		".php": "phpunit", ".rb": "minitest"}
	for _, f := range files {
		if p, ok := parsers[path.Ext(f)]; ok {
			return p
		}
	}
	return "pytest"
}
