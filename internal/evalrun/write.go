package evalrun

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"

	"proctor/internal/rollouts"
)

// Write computes a run's report and writes it, with predictions and SWE-bench's reports, into the run
// folder.
func Write(dir string, p Plan, results map[attemptKey]*Result) (*Report, error) {
	r := Summarise(p, results)
	body, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return r, err
	}
	return r, errors.Join(writeSWEBench(dir, p, results), writeWhole(filepath.Join(dir, "report.json"), append(body, '\n')))
}

// Open reads a run folder and gives its report as of now.
func Open(dir string) (*Report, error) {
	p, err := ReadPlan(dir)
	if err != nil {
		return nil, err
	}
	results, journal, err := readResults(filepath.Join(dir, "journal.jsonl"))
	if err != nil {
		return nil, err
	}
	return Summarise(p, results), journal.Close()
}

// TrajectoryFile names the file that holds the server's record of an attempt in a run folder.
func TrajectoryFile(dir string, res *Result) string {
	return attemptFile(dir, res, ".trajectory.json")
}

// Rewrite writes what Write does, from a report.
func Rewrite(dir string, r *Report) error {
	results := map[attemptKey]*Result{}
	for _, x := range r.Results {
		results[attemptKey{x.TaskID, x.Attempt}] = x
	}
	_, err := Write(dir, r.Plan, results)
	return err
}

// FromRecords reports on rollouts that no run of ours made; attempts at a task are numbered in order of
// creation. Rollouts that are not over are left out.
func FromRecords(from string, records []*rollouts.Trajectory) *Report {
	slices.SortStableFunc(records, func(a, b *rollouts.Trajectory) int { return a.Rollout.CreatedAt.Compare(b.Rollout.CreatedAt) })
	p := Plan{ID: "server", BaseURL: from}
	results, n := map[attemptKey]*Result{}, map[string]int{}
	for _, t := range records {
		v := t.Rollout
		if v.Status == rollouts.StatusRunning || v.Status == rollouts.StatusCreating {
			continue
		}
		n[v.TaskID]++
		if n[v.TaskID] == 1 {
			p.Tasks = append(p.Tasks, v.TaskID)
		}
		p.N = max(p.N, n[v.TaskID])
		x := &Result{TaskID: v.TaskID, Attempt: n[v.TaskID], RolloutID: v.ID, Stop: v.StopReason, StartedAt: v.CreatedAt}
		if v.EndedAt != nil {
			x.Seconds = v.EndedAt.Sub(v.CreatedAt).Seconds()
		}
		x.fromRecord(t)
		results[attemptKey{v.TaskID, x.Attempt}] = x
	}
	r := Summarise(p, results)
	r.Attempts = r.Done
	return r
}
