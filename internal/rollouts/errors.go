package rollouts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"proctor/internal/store"
	"proctor/sandbox"
)

// Codes of Error, in the four ranges of the HTTP surface.
const (
	// The caller's doing.
	CodeNotFound     = "not_found"
	CodeBadRequest   = "bad_request"
	CodeInvalidField = "invalid_field"
	CodeConflict     = "idempotency_conflict"
	CodeEnded        = "rollout_ended"
	CodeAtCapacity   = "at_capacity"
	CodeDraining     = "draining"
	CodeUnsupported  = "unsupported"
	// The agent's tool.
	CodeInvalidCall = "invalid_call"
	CodeSandboxDead = "sandbox_dead"
	// Task and grader.
	CodeTaskNotFound  = "task_not_found"
	CodeTaskInvalid   = "task_invalid"
	CodeNotGradable   = "task_not_gradable"
	CodeImageNotFound = "image_not_found"
	CodeImageNoShell  = "image_no_shell"
	CodeImageBad      = "image_bad"
	CodePrepareFailed = "prepare_failed"
	CodeGradingFailed = "grading_failed"
	CodePackInvalid   = "pack_invalid"
	// Infrastructure.
	CodeEngine      = "engine_unavailable"
	CodeStoreFull   = "store_full"
	CodeStore       = "store_failed"
	CodeInterrupted = "interrupted"
	CodeUnknown     = "outcome_unknown"
	CodeInternal    = "internal"
)

func refuse(code, format string, args ...any) *Error {
	return &Error{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// errNoRollout is the one answer for a rollout that does not exist, was deleted, or is not the
// caller's.
func errNoRollout() *Error {
	return refuse(CodeNotFound, "there is no such rollout, or the key given does not open it")
}

// asError gives err the code that its cause stands for; code is the one where nothing is known.
func asError(code, detail string, err error) *Error {
	var known *Error
	var dead *sandbox.DeadError
	e := &Error{Code: code, Detail: detail, Err: err}
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, store.ErrFull):
		e.Code, e.Retry, e.After = CodeStoreFull, true, 10*time.Second
		e.Detail = "the data folder's disk is full; free some space and repeat the request; nothing recorded is lost"
	case errors.As(err, &dead):
		e.Code = CodeSandboxDead
	case errors.Is(err, sandbox.ErrNoImage):
		e.Code = CodeImageNotFound
	case errors.Is(err, sandbox.ErrNoShell):
		e.Code = CodeImageNoShell
	case errors.Is(err, sandbox.ErrBadImage):
		e.Code = CodeImageBad
	case errors.Is(err, sandbox.ErrCapacity):
		e.Code, e.Retry, e.After = CodeAtCapacity, true, 5*time.Second
	case errors.Is(err, sandbox.ErrUnavailable):
		e.Code, e.Retry, e.After = CodeEngine, true, 5*time.Second
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		e.Code, e.Retry = CodeInterrupted, true
	case code == CodeStore:
		e.Retry = true
	}
	return e
}

func storeError(what string, err error) *Error {
	if errors.Is(err, store.ErrNotFound) {
		return errNoRollout()
	}
	return asError(CodeStore, "the store failed to "+what, err)
}
