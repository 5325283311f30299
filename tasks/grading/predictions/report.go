package predictions

import (
	"slices"

	"proctor/sandbox"
	"proctor/tasks"
)

// SchemaVersion is that of the harness's report of a run.
const SchemaVersion = 2

// RunReport is the harness's report of a run. Lists are sorted and never null.
type RunReport struct {
	Total      int `json:"total_instances"`
	Submitted  int `json:"submitted_instances"`
	Completed  int `json:"completed_instances"`
	Resolved   int `json:"resolved_instances"`
	Unresolved int `json:"unresolved_instances"`
	Infra      int `json:"infra_failure_instances"`
	Ambiguous  int `json:"ambiguous_failure_instances"`
	EmptyPatch int `json:"empty_patch_instances"`
	Errors     int `json:"error_instances"`

	CompletedIDs  []string          `json:"completed_ids"`
	IncompleteIDs []string          `json:"incomplete_ids"`
	EmptyPatchIDs []string          `json:"empty_patch_ids"`
	SubmittedIDs  []string          `json:"submitted_ids"`
	ResolvedIDs   []string          `json:"resolved_ids"`
	UnresolvedIDs []string          `json:"unresolved_ids"`
	InfraIDs      []string          `json:"infra_failure_ids"`
	AmbiguousIDs  []string          `json:"ambiguous_failure_ids"`
	Reasons       map[string]string `json:"failure_reasons"`
	ErrorIDs      []string          `json:"error_ids"`
	Schema        int               `json:"schema_version"`
}

// InstanceReport is what the harness says of one instance.
type InstanceReport struct {
	PatchIsNone  bool         `json:"patch_is_None"`
	PatchExists  bool         `json:"patch_exists"`
	Applied      bool         `json:"patch_successfully_applied"`
	Resolved     bool         `json:"resolved"`
	InfraFailure bool         `json:"infra_failure"`
	Reason       string       `json:"infra_failure_reason,omitempty"`
	Tests        *TestsStatus `json:"tests_status,omitempty"`
}

// TestsStatus holds expected tests by what became of them. The last two are asked of nobody.
type TestsStatus struct {
	FailToPass Split `json:"FAIL_TO_PASS"`
	PassToPass Split `json:"PASS_TO_PASS"`
	FailToFail Split `json:"FAIL_TO_FAIL"`
	PassToFail Split `json:"PASS_TO_FAIL"`
}

// Split is a list of tests by whether they passed.
type Split struct {
	Success []string `json:"success"`
	Failure []string `json:"failure"`
}

// Instance gives the harness's report of a grade.
func Instance(g tasks.Grade, patchIsNull bool) InstanceReport {
	r := InstanceReport{PatchIsNone: patchIsNull, PatchExists: !patchIsNull, Resolved: g.Outcome == tasks.Resolved}
	switch g.Outcome {
	case tasks.InfraFailure:
		r.InfraFailure, r.Reason = true, g.FailureClass
	case tasks.EmptyPatch, tasks.PatchFailed:
	default:
		r.Applied = true
		none := Split{Success: []string{}, Failure: []string{}}
		r.Tests = &TestsStatus{FailToPass: split(g.Tests.FailToPass), PassToPass: split(g.Tests.PassToPass), FailToFail: none, PassToFail: none}
	}
	return r
}

func split(l tasks.TestList) Split {
	return Split{Success: append([]string{}, l.Passed...), Failure: append([]string{}, l.Failed...)}
}

// Run gives the harness's report of the predictions of one model on a set. A patch that does not apply,
// and a grading that the machine failed, are errors, as they are there; tampering is unresolved.
func Run(set []string, results []Result) RunReport {
	r := RunReport{Total: len(set), Reasons: map[string]string{}, Schema: SchemaVersion}
	asked := map[string]bool{}
	for _, res := range results {
		if res.InstanceID == "" {
			continue
		}
		if !asked[res.InstanceID] {
			r.SubmittedIDs = append(r.SubmittedIDs, res.InstanceID)
		}
		asked[res.InstanceID] = true
		if res.Grade != nil {
			r.add(res.InstanceID, *res.Grade)
		} else if slices.Contains(set, res.InstanceID) && res.Class != ClassDuplicate {
			r.ErrorIDs = append(r.ErrorIDs, res.InstanceID)
			r.Reasons[res.InstanceID] = res.Class
		}
	}
	for _, id := range set {
		if !asked[id] {
			r.IncompleteIDs = append(r.IncompleteIDs, id)
		}
	}
	r.finish()
	return r
}

func (r *RunReport) add(id string, g tasks.Grade) {
	switch g.Outcome {
	case tasks.EmptyPatch:
		r.EmptyPatchIDs = append(r.EmptyPatchIDs, id)
	case tasks.PatchFailed:
		r.ErrorIDs = append(r.ErrorIDs, id)
	case tasks.InfraFailure:
		r.ErrorIDs = append(r.ErrorIDs, id)
		r.InfraIDs = append(r.InfraIDs, id)
		r.Reasons[id] = g.FailureClass
	case tasks.Resolved:
		r.CompletedIDs = append(r.CompletedIDs, id)
		r.ResolvedIDs = append(r.ResolvedIDs, id)
	default:
		r.CompletedIDs = append(r.CompletedIDs, id)
		r.UnresolvedIDs = append(r.UnresolvedIDs, id)
	}
	if g.FailureClass == sandbox.FailureTask && g.Outcome != tasks.InfraFailure {
		r.AmbiguousIDs = append(r.AmbiguousIDs, id)
	}
}

func (r *RunReport) finish() {
	for _, list := range []*[]string{&r.CompletedIDs, &r.IncompleteIDs, &r.EmptyPatchIDs, &r.SubmittedIDs, &r.ResolvedIDs, &r.UnresolvedIDs,
		&r.InfraIDs, &r.AmbiguousIDs, &r.ErrorIDs} {
		slices.Sort(*list)
		if *list = slices.Compact(*list); *list == nil {
			*list = []string{}
		}
	}
	r.Submitted, r.Completed, r.Resolved, r.Unresolved = len(r.SubmittedIDs), len(r.CompletedIDs), len(r.ResolvedIDs), len(r.UnresolvedIDs)
	r.Infra, r.Ambiguous, r.EmptyPatch, r.Errors = len(r.InfraIDs), len(r.AmbiguousIDs), len(r.EmptyPatchIDs), len(r.ErrorIDs)
}
