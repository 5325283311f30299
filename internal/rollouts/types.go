// Package rollouts runs rollouts: it makes their sandboxes, holds the Gate of each, keeps their
// calls serial and idempotent, submits, grades and frees them, and takes them up again after the
// server died. The HTTP layer (internal/api) and the demo are its callers.
package rollouts

import (
	"encoding/json"
	"time"

	"proctor/internal/trajectory"
	"proctor/monitor"
	"proctor/tasks"
)

// CreateRequest is what a rollout is made from; the body of POST /v1/rollouts.
type CreateRequest struct {
	TaskID  string          `json:"task_id,omitempty"`
	Task    json.RawMessage `json:"task,omitempty"`    // an inline native task, in place of TaskID
	Mode    string          `json:"mode,omitempty"`    // enforce (default), shadow, off
	Preset  string          `json:"preset,omitempty"`  // balanced (default), strict, observe
	Answers string          `json:"answers,omitempty"` // how blocked calls are answered: decoy (default), explicit
	// What is done where the judge is unsure, answers garbage, or is out: execute, decoy, hold.
	OnUnsure  string `json:"on_unsure,omitempty"`
	OnFailure string `json:"on_failure,omitempty"`
	OnOutage  string `json:"on_outage,omitempty"`
	Hardening *bool  `json:"hardening,omitempty"` // default true
	// Honeypots puts files with secret tokens outside the work folder, where graders keep theirs.
	Honeypots bool           `json:"honeypots,omitempty"`
	GroupID   *string        `json:"group_id,omitempty"`
	Policy    Policy         `json:"policy"`
	Seed      int64          `json:"seed,omitempty"`
	Limits    *tasks.Limits  `json:"limits,omitempty"`
	Metadata  map[string]any `json:"metadata,omitempty"`
	LeaseS    int            `json:"lease_s,omitempty"` // default 900
	// Queue waits for a place where the server holds as many rollouts as it may: WaitS seconds, or
	// DefaultQueueWait. WaitS alone says the same.
	Queue bool `json:"queue,omitempty"`
	WaitS int  `json:"wait_s,omitempty"`
	// Network, only from the host's own demo and never over HTTP: joins an internal network with a
	// stand-in upstream.
	Network *NetworkOverride `json:"-"`
}

// NetworkOverride puts a rollout on an internal network of the engine.
type NetworkOverride struct {
	Name  string
	Hosts map[string]string
}

// Policy is who attempts the task.
type Policy struct {
	Name    string  `json:"name,omitempty"`
	SizeB   float64 `json:"size_b,omitempty"` // billions of parameters
	Version string  `json:"version,omitempty"`
	BaseURL string  `json:"base_url,omitempty"` // where the gateway forwards to
	Model   string  `json:"model,omitempty"`
	// Dialect is what its server speaks, "" to find out: openai, vllm, sglang, llama.cpp, anthropic.
	Dialect string `json:"dialect,omitempty"`
	// APIKey is sent to its server. It is taken at creation and never told.
	APIKey string `json:"api_key,omitempty"`
}

// Tool is a tool as listed to a client.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// Created answers a create: the only time the agent token is shown.
type Created struct {
	ID          string            `json:"id"`
	AgentToken  string            `json:"agent_token"`
	TaskID      string            `json:"task_id"`
	Instruction string            `json:"instruction"`
	Workdir     string            `json:"workdir"`
	Tools       []Tool            `json:"tools"`
	Links       map[string]string `json:"links"` // calls, mcp, events, gateway: paths
}

// Statuses of a rollout.
const (
	StatusCreating  = "creating"
	StatusRunning   = "running"
	StatusSubmitted = "submitted" // the agent is done; its sandbox waits for grading
	StatusGraded    = "graded"
	StatusFailed    = "failed" // it ended without a grade; FailureClass says by whose doing
	StatusDeleted   = "deleted"
)

// View is a rollout as a trainer sees it in listings.
type View struct {
	ID           string         `json:"id"`
	TaskID       string         `json:"task_id"`
	GroupID      *string        `json:"group_id"`
	Policy       Policy         `json:"policy"`
	Mode         string         `json:"mode"`
	Preset       string         `json:"preset"`
	Answers      string         `json:"answers,omitempty"`    // "" in rollouts of servers that knew only decoys
	OnUnsure     string         `json:"on_unsure,omitempty"`  // these three only where the create request named them
	OnFailure    string         `json:"on_failure,omitempty"` //
	OnOutage     string         `json:"on_outage,omitempty"`  //
	Hardening    bool           `json:"hardening"`
	Honeypots    bool           `json:"honeypots,omitempty"`
	Status       string         `json:"status"`
	StopReason   string         `json:"stop_reason"`
	FailureClass string         `json:"failure_class"`
	Reward       *float64       `json:"reward"`
	Outcome      string         `json:"outcome,omitempty"`
	Calls        int            `json:"calls"` // the agent's
	Blocked      int            `json:"blocked"`
	Flagged      int            `json:"flagged"`
	Hacks        int            `json:"hacks"` // confirmed, whatever was done about them
	Seed         int64          `json:"seed"`
	Metadata     map[string]any `json:"metadata,omitempty"`
	Fork         *ForkOf        `json:"fork,omitempty"` // what it is a fork of
	CreatedAt    time.Time      `json:"created_at"`
	EndedAt      *time.Time     `json:"ended_at"`
	Digests      Digests        `json:"digests"`
}

// Digests pin what decided and where it ran.
type Digests struct {
	Image  string `json:"image"`
	Packs  string `json:"packs"`
	Prompt string `json:"prompt"`
	Judge  string `json:"judge"`

	Classifier string `json:"classifier"`
}

// Trajectory is the record of a rollout, schema proctor.trajectory/1.
type Trajectory struct {
	Schema   string                `json:"schema"`
	Rollout  View                  `json:"rollout"`
	Calls    []*monitor.Record     `json:"calls"`
	Segments []*trajectory.Segment `json:"segments"`
	// ModelCalls and Guard are there where the model gateway was used, or segments were uploaded.
	ModelCalls []ModelCallView        `json:"model_calls"`
	Guard      []trajectory.GuardSpan `json:"guard"`
	Grade      *tasks.Grade           `json:"grade"`

	modelCalls []*trajectory.ModelCall
}

// GroupRequest is the body of POST /v1/groups.
type GroupRequest struct {
	CreateRequest
	N int `json:"n"` // 1 to 512
	// Need, of a group with more members than are wanted: once so many have a reward, the others are
	// ended. 0 waits for all.
	Need int `json:"need,omitempty"`
	// Seeds are the members', in order. Left out, they are seed, seed+1 and so on.
	Seeds []int64 `json:"seeds,omitempty"`
}

// seed gives the seed of member i.
func (r *GroupRequest) seed(i int) int64 {
	if i < len(r.Seeds) {
		return r.Seeds[i]
	}
	return r.Seed + int64(i)
}

// GroupCreated answers it; a partial failure is told, not hidden.
type GroupCreated struct {
	ID       string        `json:"id"`
	TaskID   string        `json:"task_id"`
	N        int           `json:"n"`
	Rollouts []Created     `json:"rollouts"`
	Failed   []GroupFailed `json:"failed"`
	Snapshot *Snapshot     `json:"snapshot,omitempty"` // what they are forks of
}

// GroupFailed is one rollout of a group that could not be made.
type GroupFailed struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// GroupView is a group's results in one read.
type GroupView struct {
	ID       string         `json:"id"`
	TaskID   string         `json:"task_id"`
	N        int            `json:"n"`
	Need     int            `json:"need"`     // so many rewards end the rest; 0: all are waited for
	Rewarded int            `json:"rewarded"` // rollouts that have a reward
	Failed   []GroupFailed  `json:"failed"`   // that could not be made
	Status   string         `json:"status"`   // running, done
	Rollouts []GroupRollout `json:"rollouts"`
	HackRate float64        `json:"hack_rate"` // share of rollouts with at least one confirmed hack
}

// GroupRollout is one line of a GroupView.
type GroupRollout struct {
	ID           string   `json:"id"`
	Status       string   `json:"status"`
	Reward       *float64 `json:"reward"`
	FailureClass string   `json:"failure_class"`
	Calls        int      `json:"calls"`
	Blocked      int      `json:"blocked"`
	Flagged      int      `json:"flagged"`
}

// VerdictView is one judged call in a listing of verdicts.
type VerdictView struct {
	RolloutID string          `json:"rollout_id"`
	Ordinal   int             `json:"ordinal"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Verdict   monitor.Verdict `json:"verdict"`
	Review    *Review         `json:"review"`
}

// Review is what a person says of a verdict; it feeds the corpora.
type Review struct {
	Label string    `json:"label"` // hack, benign, unsure
	Note  string    `json:"note,omitempty"`
	At    time.Time `json:"at"`
}

// Error is a refusal with a stable code; the HTTP layer has the one table from code to status.
type Error struct {
	Code   string // not_found, task_not_found, image_not_found, bad_request, idempotency_conflict, rollout_ended, engine_unavailable, ...
	Detail string // what, and what to do
	Retry  bool   // the same request may succeed later
	After  time.Duration
	Err    error
}

// Error gives the detail, and the cause where there is one.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Detail + ": " + e.Err.Error()
	}
	return e.Detail
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }
