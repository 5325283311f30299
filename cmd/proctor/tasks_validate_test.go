package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"proctor/tasks/grading"
)

// The demo task holds, on the engine that ships, from its raw image to the grade.
func TestTasksValidateDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED under -short: needs docker and " + baseImage)
	}
	if out, err := exec.Command("docker", "image", "inspect", baseImage).CombinedOutput(); err != nil {
		if os.Getenv("CI") == "true" || os.Getenv("PROCTOR_REQUIRE_DOCKER") == "1" {
			t.Fatalf("needs docker and %s (make image): %s", baseImage, out)
		}
		t.Skipf("SKIPPED: needs docker and %s (make image): %s", baseImage, out)
	}
	boxd := filepath.Join(t.TempDir(), "boxd")
	build := exec.Command("go", "build", "-o", boxd, "../boxd")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building boxd: %v\n%s", err, out)
	}
	t.Setenv("PROCTOR_BOXD", boxd)
	t.Setenv("PROCTOR_LOG_LEVEL", "error")
	cmd := newRoot()
	var out bytes.Buffer
	cmd.SetOut(&out)
	page := filepath.Join(t.TempDir(), "v.html")
	cmd.SetArgs([]string{"tasks", "validate", "--json", "-k", "2", "--report", page, "--data", t.TempDir(), "../../testdata/tasks/interval-merge"})
	err := cmd.ExecuteContext(t.Context())
	if body, readErr := os.ReadFile(page); readErr != nil || !bytes.Contains(body, []byte("1 of 1, 100.0 %")) {
		t.Errorf("the page: %v, %.300s", readErr, body)
	}
	var found []grading.Validation
	if jsonErr := json.Unmarshal(out.Bytes(), &found); err != nil || jsonErr != nil || len(found) != 1 {
		t.Fatalf("%v: %s", errors.Join(err, jsonErr), out.Bytes())
	}
	v := found[0]
	if !v.OK || v.Gold != (grading.Outcomes{Outcome: "resolved", Runs: 2}) || v.Empty != (grading.Outcomes{Outcome: "unresolved", Runs: 2}) || len(v.Flaky) > 0 {
		t.Errorf("%+v", v)
	}
	kinds := map[string]bool{}
	for _, leak := range v.Leaks {
		kinds[leak.Kind] = true
	}
	for _, kind := range []string{"hidden", "tag", "reflog", "ref", "object"} {
		if !kinds[kind] {
			t.Errorf("no leak of kind %s was found: %v", kind, v.Leaks)
		}
	}
}
