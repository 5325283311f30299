package grading

import (
	"context"
	"fmt"
	"time"

	"proctor/sandbox"
	"proctor/tasks"
)

// InPlace grades as naive harnesses do, and is here to be compared with, never to be trusted: the
// hidden tests are copied into the agent's own sandbox, over whatever it made of the test folder, and
// the command runs there, on the agent's PATH, with its conftest and its daemons. Exit status 0 is a
// pass unless a report says otherwise; where the status is another, a report that holds passes for all
// expected tests is believed. Every forgery that Grade is built against pays here.
func InPlace(ctx context.Context, subject Subject, session sandbox.Session, opts Options) (tasks.Grade, error) {
	start := time.Now()
	if err := gradable(subject.Task); err != nil {
		return tasks.Grade{}, err
	}
	grade, err := inPlace(ctx, subject, session)
	if err != nil {
		opts.logger().Error("grading in place failed", "task", subject.Task.ID, "err", err)
		grade = blame(grade, err)
	}
	grade.Notes = append(grade.Notes, "graded in place, in the agent's own sandbox: forgeries are believed")
	grade.DurationMS = time.Since(start).Milliseconds()
	return grade, nil
}

func inPlace(ctx context.Context, subject Subject, session sandbox.Session) (tasks.Grade, error) {
	task := subject.Task
	grade := tasks.Grade{Tests: allFailed(task.Grader)}
	g := &grading{subject: subject}
	hidden, err := g.hidden(ctx)
	if err != nil {
		return grade, err
	}
	if err := push(ctx, session, task.Workdir, hidden); err != nil {
		return grade, fmt.Errorf("copying tests into the agent's sandbox: %w", err)
	}
	g.session = session
	if err := g.elsewhere(ctx); err != nil {
		return grade, fmt.Errorf("copying tests into the agent's sandbox: %w", err)
	}
	result, err := runTests(ctx, trial{session: session, task: task, plain: true})
	if err != nil {
		return grade, err
	}
	believed(task, result, &grade)
	return grade, nil
}

// believed takes a run at its word.
func believed(task *tasks.Task, run testRun, grade *tasks.Grade) {
	g := task.Grader
	grade.Outcome, grade.FailureClass, grade.Reward = tasks.Unresolved, sandbox.FailureModel, reward(0)
	if run.exit == nil {
		return
	}
	grade.Witnesses = []string{fmt.Sprintf("exit status %d", *run.exit)}
	if g.Report == "reward-file" {
		f, paid := byRewardFile(g, run)
		grade.Outcome, grade.FailureClass, grade.Tests, grade.Reward = f.outcome, f.failure, f.tests, reward(paid)
		return
	}
	clean := *run.exit == 0
	_, isLog := logParser(g.Report)
	if tests, found, err := readReport(task, run); err == nil && found && g.Report != "exit" {
		good := func(id string) bool {
			s := tests.of(id)
			return s == passed || (s == absent && *run.exit == 0 && !isLog)
		}
		grade.Tests = split(g, good)
		clean = len(grade.Tests.FailToPass.Failed)+len(grade.Tests.PassToPass.Failed) == 0
		grade.Witnesses = append(grade.Witnesses, fmt.Sprintf("report: %d tests, %d failed", len(tests.tests), tests.failures()))
	} else if clean {
		grade.Tests = allPassed(g)
	}
	if clean {
		grade.Outcome, grade.FailureClass, grade.Reward = tasks.Resolved, sandbox.FailureNone, reward(1)
	}
}
