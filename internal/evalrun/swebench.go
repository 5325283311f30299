package evalrun

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"proctor/tasks"
)

// prediction is a line of predictions.jsonl, as SWE-bench's harness takes it.
type prediction struct {
	InstanceID string `json:"instance_id"`
	Model      string `json:"model_name_or_path"`
	Patch      string `json:"model_patch"`
}

// runReport is the harness's report of a run, schema_version 2.
type runReport struct {
	Total       int      `json:"total_instances"`
	Submitted   int      `json:"submitted_instances"`
	Completed   int      `json:"completed_instances"`
	Resolved    int      `json:"resolved_instances"`
	Unresolved  int      `json:"unresolved_instances"`
	Empty       int      `json:"empty_patch_instances"`
	Errors      int      `json:"error_instances"`
	CompletedID []string `json:"completed_ids"`
	Incomplete  []string `json:"incomplete_ids"`
	EmptyID     []string `json:"empty_patch_ids"`
	SubmittedID []string `json:"submitted_ids"`
	ResolvedID  []string `json:"resolved_ids"`
	UnresolvedI []string `json:"unresolved_ids"`
	ErrorID     []string `json:"error_ids"`
	Schema      int      `json:"schema_version"`
}

// instanceReport is the harness's report of one instance, under its id.
type instanceReport struct {
	PatchIsNone bool        `json:"patch_is_None"`
	PatchExists bool        `json:"patch_exists"`
	Applied     bool        `json:"patch_successfully_applied"`
	Resolved    bool        `json:"resolved"`
	Tests       testsStatus `json:"tests_status"`
}

type testsStatus struct {
	FailToPass testLists `json:"FAIL_TO_PASS"`
	PassToPass testLists `json:"PASS_TO_PASS"`
	FailToFail testLists `json:"FAIL_TO_FAIL"`
	PassToFail testLists `json:"PASS_TO_FAIL"`
}

type testLists struct {
	Success []string `json:"success"`
	Failure []string `json:"failure"`
}

func lists(t tasks.TestList) testLists {
	return testLists{append([]string{}, t.Passed...), append([]string{}, t.Failed...)}
}

// numbered gives a file's name for the k-th attempt: SWE-bench knows one attempt an instance, so that
// every attempt has files of its own, the first under the plain name.
func numbered(name, end string, k int) string {
	if k == 1 {
		return name + end
	}
	return fmt.Sprintf("%s.%d%s", name, k, end)
}

// writeSWEBench writes predictions and reports of every attempt number.
func writeSWEBench(dir string, p Plan, results map[attemptKey]*Result) error {
	for k := 1; k <= p.N; k++ {
		if err := writeNumber(dir, p, results, k); err != nil {
			return err
		}
	}
	return nil
}

func writeNumber(dir string, p Plan, results map[attemptKey]*Result, k int) error {
	rep := runReport{Total: len(p.Tasks), CompletedID: []string{}, Incomplete: []string{}, EmptyID: []string{}, SubmittedID: []string{},
		ResolvedID: []string{}, UnresolvedI: []string{}, ErrorID: []string{}, Schema: 2}
	var predictions bytes.Buffer
	enc := json.NewEncoder(&predictions)
	enc.SetEscapeHTML(false)
	folder := filepath.Join(dir, "swebench", "logs", numbered("attempt", "", k))
	for _, id := range slices.Sorted(slices.Values(p.Tasks)) {
		res := results[attemptKey{id, k}]
		if res == nil {
			rep.Incomplete = append(rep.Incomplete, id)
			continue
		}
		patch, err := readPatch(dir, res)
		if err != nil {
			return err
		}
		if err := enc.Encode(prediction{id, p.policy(), patch}); err != nil {
			return err
		}
		rep.add(id, res)
		if err := writeInstance(filepath.Join(folder, SafeName(id)), id, res, patch); err != nil {
			return err
		}
	}
	rep.Submitted, rep.Completed, rep.Resolved = len(rep.SubmittedID), len(rep.CompletedID), len(rep.ResolvedID)
	rep.Unresolved, rep.Empty, rep.Errors = len(rep.UnresolvedI), len(rep.EmptyID), len(rep.ErrorID)
	body, err := json.MarshalIndent(rep, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "swebench"), 0o755); err != nil {
		return err
	}
	return errors.Join(writeWhole(filepath.Join(dir, numbered("predictions", ".jsonl", k)), predictions.Bytes()),
		writeWhole(filepath.Join(dir, "swebench", numbered("report", ".json", k)), append(body, '\n')))
}

// add sorts an instance into the lists, as the harness does: what has no grade is an error, an empty
// patch is not completed.
func (r *runReport) add(id string, res *Result) {
	r.SubmittedID = append(r.SubmittedID, id)
	switch {
	case !res.graded(), res.Outcome == tasks.PatchFailed:
		r.ErrorID = append(r.ErrorID, id)
	case res.Outcome == tasks.EmptyPatch:
		r.EmptyID = append(r.EmptyID, id)
	case res.resolved():
		r.CompletedID, r.ResolvedID = append(r.CompletedID, id), append(r.ResolvedID, id)
	default:
		r.CompletedID, r.UnresolvedI = append(r.CompletedID, id), append(r.UnresolvedI, id)
	}
}

// writeInstance writes one instance's report.json.
func writeInstance(dir, id string, res *Result, patch string) error {
	rep := instanceReport{PatchIsNone: patch == "", PatchExists: patch != "", Applied: res.graded() && res.Outcome != tasks.PatchFailed && res.Outcome != tasks.EmptyPatch, Resolved: res.resolved()}
	t := tasks.Tests{}
	if res.Tests != nil {
		t = *res.Tests
	}
	none := lists(tasks.TestList{})
	rep.Tests = testsStatus{lists(t.FailToPass), lists(t.PassToPass), none, none}
	body, err := json.MarshalIndent(map[string]instanceReport{id: rep}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return writeWhole(filepath.Join(dir, "report.json"), append(body, '\n'))
}

// readPatch gives an attempt's patch, "" where there is none.
func readPatch(dir string, res *Result) (string, error) {
	body, err := os.ReadFile(attemptFile(dir, res, ".patch"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(body), err
}

// attemptFile names a file of an attempt.
func attemptFile(dir string, res *Result, end string) string {
	a := attempt{run: &Runner{Dir: dir}, task: res.TaskID, k: res.Attempt, try: res.Try}
	return a.path(end)
}
