package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"proctor/tasks/grading"
)

// published are instances of a published set with the git history of their projects, built from
// packages and bundles: the folder beside the repository, or PROCTOR_SWEBENCH.
func published(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("PROCTOR_SWEBENCH")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data", "swebench")
	}
	if _, err := os.Stat(filepath.Join(dir, "rows.jsonl")); err != nil {
		if os.Getenv("CI") == "true" || os.Getenv("PROCTOR_SWEBENCH") != "" {
			t.Fatalf("the instances are not there: %v", err)
		}
		t.Skipf("NOT TESTED: the instances are not there (set PROCTOR_SWEBENCH to their folder): %v", err)
	}
	return dir
}

// Only with PROCTOR_SWEBENCH (one instance) or PROCTOR_SWEBENCH_ALL=1 (make swebench, all): from rows,
// bundle and package index to images, hardened; gold resolved and empty unresolved every time; what
// leaked is found, inside and outside of git.
func TestSWEBenchValidates(t *testing.T) {
	if os.Getenv("PROCTOR_SWEBENCH_ALL") == "" && os.Getenv("PROCTOR_SWEBENCH") == "" {
		t.Skip("SKIPPED, LOUDLY: building the instances' environments takes minutes; `make swebench` does, and validates all")
	}
	if testing.Short() {
		t.Skip("SKIPPED under -short: needs docker and " + baseImage)
	}
	rows := filepath.Join(published(t), "rows.jsonl")
	if out, err := exec.Command("docker", "image", "inspect", baseImage).CombinedOutput(); err != nil {
		if os.Getenv("CI") == "true" || os.Getenv("PROCTOR_REQUIRE_DOCKER") == "1" {
			t.Fatalf("needs docker and %s (make image): %s", baseImage, out)
		}
		t.Skipf("SKIPPED: needs docker and %s (make image): %s", baseImage, out)
	}
	bin, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PROCTOR_BOXD", filepath.Join(bin, "boxd"))
	t.Setenv("PROCTOR_LOG_LEVEL", "error")
	args := []string{"tasks", "validate", "--json", "--data", t.TempDir(), rows}
	all := os.Getenv("PROCTOR_SWEBENCH_ALL") == "1"
	if all {
		args = append(args, "-k", "3")
	} else {
		args = append(args, "-k", "1", "--id", "pytest-dev__pytest-10051")
	}
	cmd := newRoot()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	var found []grading.Validation
	if jsonErr := json.Unmarshal(out.Bytes(), &found); err != nil || jsonErr != nil || len(found) == 0 {
		t.Fatalf("%v: %s", errors.Join(err, jsonErr), out.Bytes())
	}
	if all && len(found) != 10 {
		t.Errorf("%d instances were validated, want 10", len(found))
	}
	for _, v := range found {
		t.Logf("%s: gold %s x%d, empty %s x%d, %d leaks, %.1f s", v.TaskID, v.Gold.Outcome, v.Gold.Runs, v.Empty.Outcome, v.Empty.Runs, len(v.Leaks), float64(v.DurationMS)/1000)
		if !v.OK || v.Gold.Outcome != "resolved" || v.Empty.Outcome != "unresolved" {
			t.Errorf("%+v", v)
		}
		kinds := map[string]bool{}
		for _, leak := range v.Leaks {
			kinds[leak.Kind] = true
		}
		want := []string{"tag", "reflog", "ref", "object"}
		if !strings.HasPrefix(v.TaskID, "pallets__") { // no other copy of Flask is in the base image
			want = append(want, "package")
		}
		for _, kind := range want {
			if !kinds[kind] {
				t.Errorf("%s: no leak of kind %s was found", v.TaskID, kind)
			}
		}
	}
}
