package evalrun

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"proctor/tasks"
	"proctor/tasks/grading/predictions"
)

// prediction is a line of predictions.jsonl, as SWE-bench's harness takes it.
type prediction struct {
	InstanceID string `json:"instance_id"`
	Model      string `json:"model_name_or_path"`
	Patch      string `json:"model_patch"`
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
	var lines bytes.Buffer
	enc := json.NewEncoder(&lines)
	enc.SetEscapeHTML(false)
	folder := filepath.Join(dir, "swebench", "logs", numbered("attempt", "", k))
	var done []predictions.Result
	for _, id := range slices.Sorted(slices.Values(p.Tasks)) {
		res := results[attemptKey{id, k}]
		if res == nil {
			continue // the harness calls it incomplete
		}
		patch, err := readPatch(dir, res)
		if err != nil {
			return err
		}
		if err := enc.Encode(prediction{id, p.policy(), patch}); err != nil {
			return err
		}
		one := graded(res, patch)
		done = append(done, one)
		if err := writeInstance(filepath.Join(folder, SafeName(id)), one); err != nil {
			return err
		}
	}
	body, err := json.MarshalIndent(predictions.Run(p.Tasks, done), "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "swebench"), 0o755); err != nil {
		return err
	}
	return errors.Join(writeWhole(filepath.Join(dir, numbered("predictions", ".jsonl", k)), lines.Bytes()),
		writeWhole(filepath.Join(dir, "swebench", numbered("report", ".json", k)), append(body, '\n')))
}

// graded gives an attempt as a prediction that was graded, or for which there is no grade: that is an error
// in the harness's report, with its class.
func graded(res *Result, patch string) predictions.Result {
	out := predictions.Result{InstanceID: res.TaskID, NoPatch: patch == ""}
	if !res.graded() && res.Outcome != tasks.InfraFailure {
		out.Class, out.Error = cmp.Or(res.FailureClass, res.Stop), res.Error
		return out
	}
	out.Grade = &tasks.Grade{Outcome: res.Outcome, FailureClass: res.FailureClass}
	if res.Tests != nil {
		out.Grade.Tests = *res.Tests
	}
	return out
}

// writeInstance writes one instance's report.json.
func writeInstance(dir string, res predictions.Result) error {
	rep := predictions.InstanceReport{PatchIsNone: res.NoPatch, PatchExists: !res.NoPatch}
	if res.Grade != nil {
		rep = predictions.Instance(*res.Grade, res.NoPatch)
	}
	body, err := json.MarshalIndent(map[string]predictions.InstanceReport{res.InstanceID: rep}, "", "  ")
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
