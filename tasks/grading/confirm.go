package grading

import (
	"context"
	"fmt"
	"slices"

	"proctor/sandbox"
	"proctor/tasks"
)

// confirm runs the tests of a patch that came out as resolved once more, in another fresh sandbox, with
// must-fail tests planted in the expected tests' own files: code that forges results by the file or the
// name of a test forges theirs too. Where the two runs differ a third decides, and what differed is noted:
// tests can be flaky without anybody's doing.
func (g *grading) confirm(ctx context.Context, patch []byte, first finding) (finding, error) {
	second, err := g.again(ctx, patch, true)
	switch {
	case err != nil:
		return first, err
	case second.outcome == tasks.Tampered:
		second.note("the first run came out as resolved")
		return second, nil
	case second.outcome == tasks.Resolved:
		first.witness("second run: agrees")
		return first, nil
	}
	third, err := g.again(ctx, patch, false)
	if err != nil {
		return first, err
	}
	out := third
	if third.outcome == tasks.Resolved {
		out.witness("second run: %s, third run: resolved", second.outcome)
	}
	out.note("flaky: one of three runs or more differs%s", listed(" in ", differ(first, second)))
	return out, nil
}

// again grades the patch in a sandbox of its own.
func (g *grading) again(ctx context.Context, patch []byte, plant bool) (finding, error) {
	other, err := newGrading(ctx, g.engine, g.subject, g.opts)
	if err != nil {
		return finding{}, err
	}
	defer other.close(ctx)
	if err := other.readBase(ctx); err != nil {
		return finding{}, err
	}
	if _, err := other.prepare(ctx, patch); err != nil {
		return finding{}, err
	}
	other.plant = plant
	f, _, err := other.test(ctx)
	return f, err
}

// differ gives the tests that passed in one run alone.
func differ(a, b finding) []string {
	var names []string
	for _, pair := range [][2]tasks.TestList{{a.tests.FailToPass, b.tests.FailToPass}, {a.tests.PassToPass, b.tests.PassToPass}} {
		for _, id := range pair[0].Passed {
			if slices.Contains(pair[1].Failed, id) {
				names = append(names, id)
			}
		}
	}
	return names
}

// confirms reports whether a second run can say more than the first did.
func confirms(g *tasks.Grader) bool {
	return g.Kind == "patch" && g.Report != "exit" && g.Report != "reward-file"
}

// NoneRan gives a task's tests as failed, for a grade of something that was not run.
func NoneRan(task *tasks.Task) tasks.Tests {
	if task.Grader == nil {
		return tasks.Tests{}
	}
	return allFailed(task.Grader)
}

// MaxPatch bounds a patch, in bytes; a larger one is not graded.
const MaxPatch = maxPatch

// refuse is the grade of a patch that is over the bound: no sandbox is made for it.
func refuse(task *tasks.Task) tasks.Grade {
	grade := tasks.Grade{Outcome: tasks.PatchFailed, FailureClass: sandbox.FailureModel, Reward: reward(0), Tests: allFailed(task.Grader)}
	grade.Notes = []string{fmt.Sprintf("%v: the patch is over %d bytes", ErrTooBig, maxPatch)}
	return grade
}
