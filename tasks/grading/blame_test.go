package grading

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"proctor/sandbox"
	"proctor/tasks"
)

// Every class that a grade can have is given where it should be: by whose doing an error is.
func TestBlameByWhoseDoing(t *testing.T) {
	late, cancel := context.WithDeadline(context.Background(), time.Now())
	defer cancel()
	fails := func(err error) func() (tasks.Grade, error) {
		return func() (tasks.Grade, error) { return tasks.Grade{}, err }
	}
	died := func(class string) error { return fmt.Errorf("run: %w", &sandbox.DeadError{Class: class, Reason: "x"}) }
	for name, c := range map[string]struct {
		ctx     context.Context
		grade   func() (tasks.Grade, error)
		outcome string
		class   string
		reward  bool
	}{
		"the patch":                         {context.Background(), fails(errPatch), tasks.PatchFailed, sandbox.FailureModel, true},
		"a patch that is too large":         {context.Background(), fails(ErrTooBig), tasks.PatchFailed, sandbox.FailureModel, true},
		"the state that was left":           {context.Background(), fails(died(sandbox.FailureModel)), tasks.PatchFailed, sandbox.FailureModel, true},
		"the host":                          {context.Background(), fails(died(sandbox.FailureInfra)), tasks.InfraFailure, sandbox.FailureInfra, false},
		"the engine":                        {context.Background(), fails(sandbox.ErrUnavailable), tasks.InfraFailure, sandbox.FailureInfra, false},
		"the engine, until time was over":   {late, fails(sandbox.ErrUnavailable), tasks.InfraFailure, sandbox.FailureInfra, false},
		"the host, until time was over":     {late, fails(died(sandbox.FailureInfra)), tasks.InfraFailure, sandbox.FailureInfra, false},
		"the task":                          {context.Background(), fails(fmt.Errorf("x: %w", errTask)), tasks.InfraFailure, sandbox.FailureTask, false},
		"the grader, which panics":          {context.Background(), func() (tasks.Grade, error) { panic("at the disco") }, tasks.InfraFailure, sandbox.FailureVerifier, false},
		"the grader, which has no end":      {late, fails(context.DeadlineExceeded), tasks.InfraFailure, sandbox.FailureVerifier, false},
		"a caller that left is no grader's": {context.Background(), fails(context.Canceled), tasks.InfraFailure, sandbox.FailureInfra, false},
		"nobody knows":                      {context.Background(), fails(errors.New("odd")), tasks.InfraFailure, sandbox.FailureInfra, false},
	} {
		out, err := safely(c.ctx, c.grade)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		got := blame(out, err)
		if got.Outcome != c.outcome || got.FailureClass != c.class || got.Reward != nil != c.reward || len(got.Notes) == 0 {
			t.Errorf("%s: %+v, want %s by %s", name, got, c.outcome, c.class)
		}
	}
}
