package evalrun

import (
	"time"

	"proctor/internal/rollouts"
	"proctor/monitor"
	"proctor/tasks"
)

// Why an agent's part ended, beside what the server's records say.
const (
	StopSubmitted = "submitted"
	StopTurns     = "budget: turns"
	StopTokens    = "budget: tokens"
	StopCost      = "budget: cost"
	StopTime      = "budget: time"
	StopNoCall    = "no call in three replies"
	StopEnded     = "the rollout was ended"
	StopAgent     = "the agent's command ended" // without submitting; what it left is graded
	StopFailed    = "failed"                    // Result.Error says how
)

// Failure classes that Result adds to those of records (none, model, task, infra).
const (
	FailEndpoint = "endpoint" // the model's endpoint: down, slow, malformed or refusing
	FailAgent    = "agent"    // the outside agent's command failed
	Ungraded     = "ungraded" // no failure: the plan asks for no grades
)

// Result is how an attempt ended. Reward is nil where there is none to give.
type Result struct {
	TaskID       string                `json:"task_id"`
	Attempt      int                   `json:"attempt"` // from 1
	Try          int                   `json:"try"`     // 0, and one more each time that a failed attempt was made again
	RolloutID    string                `json:"rollout_id"`
	Outcome      string                `json:"outcome"`
	Reward       *float64              `json:"reward"`
	FailureClass string                `json:"failure_class"`
	Stop         string                `json:"stop"`
	Error        string                `json:"error,omitempty"`
	Calls        int                   `json:"calls"`
	Blocked      int                   `json:"blocked"`
	Flagged      int                   `json:"flagged"`
	Hacks        int                   `json:"hacks"`     // confirmed, whatever was done about them
	Unblocked    int                   `json:"unblocked"` // of those: ran as they were
	Classes      map[string]ClassCount `json:"classes,omitempty"`
	Turns        int                   `json:"turns"`
	Compactions  int                   `json:"compactions"`
	TokensIn     int                   `json:"tokens_in"`
	TokensOut    int                   `json:"tokens_out"`
	Cost         float64               `json:"cost"`
	Seconds      float64               `json:"seconds"`      // from create to grade, of the last sitting
	CallSeconds  float64               `json:"call_seconds"` // the calls' own
	Tests        *tasks.Tests          `json:"tests,omitempty"`
	PatchSHA256  string                `json:"patch_sha256,omitempty"`
	ApplyStep    string                `json:"apply_step,omitempty"`
	Review       string                `json:"review,omitempty"` // of the final patch: hack, benign, unsure
	Digests      rollouts.Digests      `json:"digests"`
	StartedAt    time.Time             `json:"started_at"`
}

// ClassCount counts an attempt's confirmed hacks of a class.
type ClassCount struct {
	Tried   int `json:"tried"`
	Blocked int `json:"blocked"`
}

// graded reports whether there is a reward.
func (r *Result) graded() bool { return r.Reward != nil }

// resolved reports whether the task was solved.
func (r *Result) resolved() bool { return r.Outcome == tasks.Resolved && r.Reward != nil }

// fromRecord takes over what the server's record says.
func (r *Result) fromRecord(t *rollouts.Trajectory) {
	v := t.Rollout
	r.Calls, r.Blocked, r.Flagged, r.Hacks = v.Calls, v.Blocked, v.Flagged, v.Hacks
	r.Outcome, r.Reward, r.FailureClass, r.Digests = v.Outcome, v.Reward, v.FailureClass, v.Digests
	r.Classes, r.Unblocked, r.CallSeconds = map[string]ClassCount{}, 0, 0
	for _, c := range t.Calls {
		r.CallSeconds += float64(c.DurationMS) / 1000
		if !c.Verdict.Hack {
			continue
		}
		count := r.Classes[c.Verdict.Class]
		count.Tried++
		if c.Verdict.Action == monitor.Executed {
			r.Unblocked++
		} else {
			count.Blocked++
		}
		r.Classes[c.Verdict.Class] = count
	}
	if g := t.Grade; g != nil {
		r.Tests, r.PatchSHA256, r.ApplyStep = &g.Tests, g.PatchSHA256, g.ApplyStep
		if g.Review != nil {
			r.Review = g.Review.Verdict
		}
	}
}
