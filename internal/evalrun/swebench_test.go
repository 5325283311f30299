package evalrun

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"proctor/tasks"
	"proctor/tasks/grading/predictions"
)

// A run's reports are those that `proctor grade` writes for the same patches, whatever became of an attempt.
func TestReportsOfARun(t *testing.T) {
	dir, reward := t.TempDir(), func(x float64) *float64 { return &x }
	tests := &tasks.Tests{FailToPass: tasks.TestList{Passed: []string{"t::a"}}}
	all := []*Result{
		{TaskID: "resolved", Outcome: tasks.Resolved, Reward: reward(1), Tests: tests},
		{TaskID: "unresolved", Outcome: tasks.Unresolved, Reward: reward(0)},
		{TaskID: "tampered", Outcome: tasks.Tampered, Reward: reward(0)},
		{TaskID: "empty", Outcome: tasks.EmptyPatch, Reward: reward(0)},
		{TaskID: "failed", Outcome: tasks.PatchFailed, Reward: reward(0)},
		{TaskID: "infra", Outcome: tasks.InfraFailure, FailureClass: "infra"},
		{TaskID: "endpoint", FailureClass: FailEndpoint, Stop: StopFailed, Error: "connection refused"},
	}
	p, results := Plan{N: 1, Model: "m", Tasks: []string{"never"}}, map[attemptKey]*Result{}
	for _, r := range all {
		r.Attempt = 1
		p.Tasks = append(p.Tasks, r.TaskID)
		results[attemptKey{r.TaskID, 1}] = r
	}
	if err := writeSWEBench(dir, p, results); err != nil {
		t.Fatal(err)
	}
	var got predictions.RunReport
	body, err := os.ReadFile(filepath.Join(dir, "swebench", "report.json"))
	if err != nil || json.Unmarshal(body, &got) != nil {
		t.Fatalf("%v, %s", err, body)
	}
	none := []string{}
	want := predictions.RunReport{Total: 8, Submitted: 7, Completed: 3, Resolved: 1, Unresolved: 2, Infra: 1, EmptyPatch: 1, Errors: 3, Schema: predictions.SchemaVersion,
		CompletedIDs: []string{"resolved", "tampered", "unresolved"}, IncompleteIDs: []string{"never"}, EmptyPatchIDs: []string{"empty"},
		SubmittedIDs: []string{"empty", "endpoint", "failed", "infra", "resolved", "tampered", "unresolved"}, ResolvedIDs: []string{"resolved"},
		UnresolvedIDs: []string{"tampered", "unresolved"}, InfraIDs: []string{"infra"}, AmbiguousIDs: none, ErrorIDs: []string{"endpoint", "failed", "infra"},
		Reasons: map[string]string{"infra": "infra", "endpoint": FailEndpoint}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	for _, id := range []string{"resolved", "infra", "endpoint", "never"} {
		body, err := os.ReadFile(filepath.Join(dir, "swebench", "logs", "attempt", id, "report.json"))
		if id == "never" {
			if !os.IsNotExist(err) {
				t.Errorf("%s has a report: %v", id, err)
			}
			continue
		}
		var one map[string]predictions.InstanceReport
		if err != nil || json.Unmarshal(body, &one) != nil || one[id].Resolved != (id == "resolved") || one[id].InfraFailure != (id == "infra") {
			t.Errorf("%s: %v, %s", id, err, body)
		}
		if id == "resolved" && !slices.Equal(one[id].Tests.FailToPass.Success, []string{"t::a"}) {
			t.Errorf("%s", body)
		}
	}
}
