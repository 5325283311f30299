package predictions

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"proctor/tasks"
)

// Folder is where a run's results lie:
//
//	grades.jsonl                                       a Result a line, as they came
//	MODEL.RUN.json                                     the harness's report of each model
//	logs/run_evaluation/RUN/MODEL/INSTANCE/report.json the harness's report of each instance
//	logs/run_evaluation/RUN/MODEL/INSTANCE/patch.diff
//
// Slashes in a model's name are written "__", as the harness does. Safe for concurrent use.
type Folder struct {
	Dir   string
	RunID string

	mu    sync.Mutex
	file  *os.File
	known map[string]*tasks.Grade
}

// JournalFile is the name of the journal.
const JournalFile = "grades.jsonl"

// Open makes the folder, or takes one up again. What the machine failed counts as not graded. A last line
// that a crash cut off is taken out.
func Open(dir, runID string) (*Folder, error) {
	if runID == "" || strings.ContainsAny(runID, "/\\\x00") || runID == "." || runID == ".." {
		return nil, fmt.Errorf("run id %q cannot name a folder", runID)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f := &Folder{Dir: dir, RunID: runID, known: map[string]*tasks.Grade{}}
	path := filepath.Join(dir, JournalFile)
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	whole := bytes.LastIndexByte(data, '\n') + 1
	for i, line := range bytes.Split(data[:whole], []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		var r Result
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("%s:%d: not a result: %w; take the line out, or grade into another folder", path, i+1, err)
		}
		if r.Key != "" && r.Grade != nil && r.Grade.Outcome != tasks.InfraFailure {
			f.known[r.Key] = r.Grade
		}
	}
	if f.file, err = os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644); err != nil {
		return nil, err
	}
	if err := f.file.Truncate(int64(whole)); err != nil {
		return nil, err
	}
	if _, err := f.file.Seek(int64(whole), 0); err != nil {
		return nil, err
	}
	return f, nil
}

// Close closes the journal.
func (f *Folder) Close() error { return f.file.Close() }

// Known gives the grade of a key.
func (f *Folder) Known(key string) *tasks.Grade {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known[key]
}

// Keep appends a result and writes its instance's report. What was known already is not written again.
func (f *Folder) Keep(r Result, patch []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !r.Known {
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		if _, err := f.file.Write(append(line, '\n')); err != nil {
			return err
		}
		if err := f.file.Sync(); err != nil {
			return err
		}
	}
	if r.Grade == nil {
		return nil
	}
	if r.Key != "" && r.Grade.Outcome != tasks.InfraFailure {
		f.known[r.Key] = r.Grade
	}
	return f.instance(r, patch)
}

// instance writes what the harness writes of an instance: nothing where it would have come to no report.
func (f *Folder) instance(r Result, patch []byte) error {
	if r.Grade.Outcome == tasks.EmptyPatch || r.Grade.Outcome == tasks.PatchFailed || r.Grade.Outcome == tasks.InfraFailure {
		return nil
	}
	dir := filepath.Join(f.Dir, "logs", "run_evaluation", f.RunID, fileName(r.Model), fileName(r.InstanceID))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return errors.Join(writeJSON(filepath.Join(dir, "report.json"), map[string]InstanceReport{r.InstanceID: Instance(*r.Grade, r.NoPatch)}),
		os.WriteFile(filepath.Join(dir, "patch.diff"), patch, 0o644))
}

// Reports writes the harness's report of each model and gives them by model.
func (f *Folder) Reports(set []string, results []Result) (map[string]RunReport, error) {
	by := map[string][]Result{}
	for _, r := range results {
		if r.Model != "" {
			by[r.Model] = append(by[r.Model], r)
		}
	}
	out := map[string]RunReport{}
	var errs []error
	for model, list := range by {
		slices.SortFunc(list, func(a, b Result) int { return strings.Compare(a.InstanceID, b.InstanceID) })
		out[model] = Run(set, list)
		errs = append(errs, writeJSON(filepath.Join(f.Dir, fileName(model)+"."+f.RunID+".json"), out[model]))
	}
	return out, errors.Join(errs...)
}

// fileName writes a model's name as the harness does. A name that would lead out of its folder is bent.
func fileName(name string) string {
	name = strings.NewReplacer("/", "__", "\\", "__", "\x00", "_").Replace(name)
	if name == "." || name == ".." {
		name = "_" + name
	}
	if len(name) > 200 {
		name = strings.ToValidUTF8(name[:200], "")
	}
	return name
}

// writeJSON writes a document whole or not at all.
func writeJSON(path string, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "    ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, b.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}
