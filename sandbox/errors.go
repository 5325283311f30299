package sandbox

import (
	"errors"
	"fmt"
)

// Errors that callers branch on. Engines wrap them with what happened and what to do.
var (
	ErrUnavailable = errors.New("sandbox engine unavailable")
	ErrNoImage     = errors.New("no such image")
	ErrNoShell     = errors.New("image has no shell")
	ErrBadImage    = errors.New("image is broken or not for this machine")
	ErrCapacity    = errors.New("no capacity for another sandbox")
	ErrGone        = errors.New("no such sandbox")
	ErrStart       = errors.New("command could not be started")
)

// Failure classes: by whose doing something ended. Recorded with a rollout; reward is null exactly
// for infra, verifier and task.
const (
	FailureNone     = "none"
	FailureModel    = "model"
	FailureTask     = "task"
	FailureInfra    = "infra"
	FailureVerifier = "verifier"
	FailureGuard    = "guard"
)

// DeadError says that a sandbox is gone for good, and by whose doing. Class is FailureModel where
// the agent did it (its memory, processes, disk or signals), FailureInfra only with evidence from
// the host.
type DeadError struct {
	Class  string
	Reason string
}

func (e *DeadError) Error() string {
	return fmt.Sprintf("sandbox died (%s): %s", e.Class, e.Reason)
}
