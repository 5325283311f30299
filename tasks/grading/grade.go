package grading

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"proctor/sandbox"
	"proctor/tasks"
	"proctor/tasks/grading/testlog"
)

// ErrNoGrader: the task says nothing of how it is graded.
var ErrNoGrader = errors.New("the task has no grader")

// ErrKind: the grader's kind or report is not one that this version grades.
var ErrKind = errors.New("cannot grade")

// errTask: the task's own files are at fault.
var errTask = errors.New("the task is at fault")

// DefaultTimeout bounds the test command where a task sets no bound.
const DefaultTimeout = 600 * time.Second

// Grade grades what the agent left in its sandbox, in a fresh one. Trouble that is not the model's
// doing gives infra_failure, with a nil reward and the trouble in the notes, and no error; an error
// says that the task cannot be graded at all (ErrNoGrader, ErrKind).
func Grade(ctx context.Context, engine sandbox.Engine, subject Subject, session sandbox.Session, opts Options) (tasks.Grade, error) {
	return run(ctx, engine, subject, opts, func(g *grading) (tasks.Grade, error) {
		if subject.Task.Grader.Kind == "state" {
			return g.gradeState(ctx, session)
		}
		return g.gradePatch(ctx, func() ([]byte, error) { return g.patchOf(ctx, session) })
	})
}

// GradePatch grades a patch that came as text: a prediction, or a gold patch. A task whose container's
// state is the deliverable takes none; an empty one stands there for a container that nobody touched.
func GradePatch(ctx context.Context, engine sandbox.Engine, subject Subject, patch []byte, opts Options) (tasks.Grade, error) {
	if len(patch) > maxPatch && gradable(subject.Task) == nil {
		return refuse(subject.Task), nil
	}
	return run(ctx, engine, subject, opts, func(g *grading) (tasks.Grade, error) {
		switch {
		case subject.Task.Grader.Kind != "state":
			return g.gradePatch(ctx, func() ([]byte, error) { return patch, nil })
		case len(patch) > 0:
			return tasks.Grade{Tests: allFailed(subject.Task.Grader)}, fmt.Errorf("%w: the task is graded by the state of its container, which a patch does not give", errPatch)
		}
		return g.gradeUntouched(ctx)
	})
}

// gradable says in an error why a task cannot be graded.
func gradable(task *tasks.Task) error {
	g := task.Grader
	switch {
	case g == nil:
		return fmt.Errorf("task %s: %w", task.ID, ErrNoGrader)
	case g.Kind != "patch" && g.Kind != "state":
		return fmt.Errorf("task %s: %w: grader.kind %q; it is patch or state", task.ID, ErrKind, g.Kind)
	}
	if parser, ok := logParser(g.Report); ok {
		if !testlog.Known(parser) {
			return fmt.Errorf("task %s: %w: grader.report %q: no such parser; there are %s", task.ID, ErrKind, g.Report, strings.Join(testlog.Names(), ", "))
		}
	} else if !slices.Contains(reportKinds, g.Report) {
		return fmt.Errorf("task %s: %w: grader.report %q; it is log:<parser> or one of %s", task.ID, ErrKind, g.Report, strings.Join(reportKinds, ", "))
	}
	return nil
}

func run(ctx context.Context, engine sandbox.Engine, subject Subject, opts Options, grade func(*grading) (tasks.Grade, error)) (tasks.Grade, error) {
	start := time.Now()
	if err := gradable(subject.Task); err != nil {
		return tasks.Grade{}, err
	}
	out := tasks.Grade{Tests: allFailed(subject.Task.Grader)}
	ctx, cancel := context.WithTimeout(ctx, lifetime(subject.Task))
	defer cancel()
	g, err := newGrading(ctx, engine, subject, opts)
	if err == nil {
		out, err = safely(ctx, func() (tasks.Grade, error) { return grade(g) })
		out.Notes = append(g.notes.lines(), out.Notes...)
		g.close(ctx)
	}
	if err != nil {
		opts.logger().Error("grading failed", "task", subject.Task.ID, "err", err)
		out = blame(out, err)
	}
	out.DurationMS = time.Since(start).Milliseconds()
	return out, nil
}

// errVerifier says that grading itself failed: machine, image and task are well, and the work has no part in it.
var errVerifier = errors.New("the grader failed")

// safely turns a panic of the grader, and the end of its time, into an error that says whose doing that is.
func safely(ctx context.Context, grade func() (tasks.Grade, error)) (out tasks.Grade, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: it panicked: %v: %s", errVerifier, v, debug.Stack())
		}
	}()
	out, err = grade()
	var dead *sandbox.DeadError
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) && !errors.As(err, &dead) && !errors.Is(err, sandbox.ErrUnavailable) {
		err = fmt.Errorf("%w: its time is over: %w", errVerifier, err)
	}
	return out, err
}

// lifetime bounds a whole grading: its runs of the tests, and half an hour for sandboxes and files, which
// take seconds where the machine is well.
func lifetime(task *tasks.Task) time.Duration {
	return 30*time.Minute + 4*testTimeout(task)
}

// testTimeout bounds the test command.
func testTimeout(task *tasks.Task) time.Duration {
	if task.Grader.TimeoutS > 0 {
		return time.Duration(task.Grader.TimeoutS) * time.Second
	}
	return DefaultTimeout
}

// blame settles a grade that an error ended, by whose doing it was.
func blame(grade tasks.Grade, err error) tasks.Grade {
	grade.Notes = append(grade.Notes, clip(err.Error(), 1000))
	var dead *sandbox.DeadError
	switch {
	case errors.Is(err, errPatch), errors.Is(err, ErrTooBig), errors.As(err, &dead) && dead.Class == sandbox.FailureModel:
		grade.Outcome, grade.FailureClass, grade.Reward = tasks.PatchFailed, sandbox.FailureModel, reward(0)
	default:
		grade.Outcome, grade.FailureClass, grade.Reward = tasks.InfraFailure, sandbox.FailureInfra, nil
		if dead != nil && dead.Class != "" {
			grade.FailureClass = dead.Class
		}
		switch {
		case errors.Is(err, errTask):
			grade.FailureClass = sandbox.FailureTask
		case errors.Is(err, errVerifier):
			grade.FailureClass = sandbox.FailureVerifier
		}
	}
	return grade
}

func reward(r float64) *float64 { return &r }

// gradePatch grades a patch: made, reviewed, applied, tested.
func (g *grading) gradePatch(ctx context.Context, patchOf func() ([]byte, error)) (grade tasks.Grade, err error) {
	grade.Tests = allFailed(g.subject.Task.Grader)
	if err := g.readBase(ctx); err != nil {
		return grade, err
	}
	patch, err := patchOf()
	if err != nil {
		return grade, err
	}
	g.tell(ctx, patch, &grade)
	if len(patch) == 0 && !g.opts.RunEmpty {
		grade.Outcome, grade.FailureClass, grade.Reward = tasks.EmptyPatch, sandbox.FailureModel, reward(0)
		return grade, nil
	}
	if grade.ApplyStep, err = g.prepare(ctx, patch); err != nil {
		return grade, err
	}
	f, paid, err := g.test(ctx)
	if err == nil && f.outcome == tasks.Resolved && g.opts.Confirm && confirms(g.subject.Task.Grader) {
		f, err = g.confirm(ctx, patch, f)
	}
	if err != nil {
		return grade, err
	}
	g.settle(&grade, f, paid)
	return grade, nil
}

// tell gives the patch to those who want to see it before anything is made of it.
func (g *grading) tell(ctx context.Context, patch []byte, grade *tasks.Grade) {
	sum := sha256.Sum256(patch)
	grade.PatchSHA256 = hex.EncodeToString(sum[:])
	if g.opts.Patched != nil {
		g.opts.Patched(patch)
	}
	if g.opts.Review != nil && len(patch) > 0 {
		grade.Review = g.opts.Review(ctx, patch)
	}
}

// settle makes a finding a grade's.
func (g *grading) settle(grade *tasks.Grade, f finding, paid float64) {
	grade.Outcome, grade.FailureClass, grade.Tests, grade.Witnesses = f.outcome, f.failure, f.tests, f.witnesses
	grade.Notes = append(grade.Notes, f.notes...)
	grade.Components = components(f)
	grade.Reward = reward(score(g.subject.Task.Grader, f, grade.Components, paid))
}

// prepare brings the fresh sandbox to the patched state: patch applied on the host, protected and
// pinned paths taken from the base, the rest carried over.
func (g *grading) prepare(ctx context.Context, patch []byte) (step string, err error) {
	hidden, err := g.hidden(ctx)
	if err != nil {
		return "", err
	}
	files := g.files
	if len(patch) > 0 {
		if files, step, err = g.repo.apply(ctx, g.base, patch, fuzzIn(g.session)); err != nil {
			return "", err
		}
	}
	guard := newGuard(g.subject.Task, names(hidden))
	files, restored := restore(files, g.files, guard.holds)
	for _, name := range restored {
		g.notes.add("restored %s: a test path", name)
	}
	files, restored = restore(files, g.files, func(name string) bool { return pinned(name, g.files) != "" })
	for _, name := range restored {
		g.notes.add("pinned %s: %s", name, pinned(name, g.files))
	}
	if err := g.repo.pinMixed(ctx, files, g.files, &g.notes); err != nil {
		return "", err
	}
	g.present = append(slices.Collect(maps.Keys(files)), names(hidden)...)
	workdir := g.subject.Task.Workdir
	if err := carry(ctx, g.repo, g.session, workdir, g.files, files, &g.notes); err != nil {
		return "", err
	}
	if err := g.elsewhere(ctx); err != nil {
		return "", err
	}
	return step, push(ctx, g.session, workdir, hidden)
}

// hidden gives the files that go in before the tests run.
func (g *grading) hidden(ctx context.Context) ([]member, error) {
	var members []member
	if files := g.subject.Task.Grader.Files; files != "" && g.subject.Task.Grader.FilesTo == "" {
		found, err := hostFiles(g.beside(files))
		if err != nil {
			return nil, fmt.Errorf("%w: grader.files: %w", errTask, err)
		}
		members = found
	}
	kept, err := g.fromImage(ctx)
	if err != nil {
		return nil, err
	}
	patched, err := g.testPatch(ctx)
	return append(append(members, kept...), patched...), err
}

// elsewhere puts the grader's files where they do not belong into the working folder.
func (g *grading) elsewhere(ctx context.Context) error {
	grader := g.subject.Task.Grader
	if grader.Files == "" || grader.FilesTo == "" {
		return nil
	}
	found, err := hostFiles(g.beside(grader.Files))
	if err != nil {
		return fmt.Errorf("%w: grader.files: %w", errTask, err)
	}
	if err := must(ctx, g.session, []string{"rm", "-rf", "--", grader.FilesTo}); err != nil {
		return err
	}
	if err := must(ctx, g.session, []string{"mkdir", "-p", "--", grader.FilesTo}); err != nil {
		return err
	}
	return push(ctx, g.session, grader.FilesTo, found)
}

// beside gives the path of a file of the task's folder.
func (g *grading) beside(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(g.subject.Task.Dir, name)
}

// testPatch gives the files that the task's test patch makes of the start state. What it deletes is
// left: a test that is no more is asked about by nobody.
func (g *grading) testPatch(ctx context.Context) ([]member, error) {
	name := g.subject.Task.Grader.TestPatch
	if name == "" {
		return nil, nil
	}
	if g.repo == nil {
		return nil, fmt.Errorf("%w: grader.test_patch: grading in place takes grader.files only", errTask)
	}
	patch, err := os.ReadFile(g.beside(name))
	if err != nil {
		return nil, fmt.Errorf("%w: grader.test_patch: %w", errTask, err)
	}
	files, _, err := g.repo.apply(ctx, g.base, patch, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: grader.test_patch: %v", errTask, err)
	}
	var members []member
	for name, e := range files {
		if g.files[name] == e || e.mode == "160000" {
			continue
		}
		content, err := g.repo.blob(ctx, e.hash, maxFileBytes)
		if err != nil {
			return nil, err
		}
		members = append(members, member{name: name, mode: e.mode, content: content})
	}
	return members, nil
}

// test runs the test command and weighs what it left. paid is what a reward file says.
func (g *grading) test(ctx context.Context) (finding, float64, error) {
	task := g.subject.Task
	text, _, err := command(task)
	if err != nil {
		return finding{}, 0, err
	}
	var s sentinels
	if task.Grader.Kind == "patch" || task.Grader.FilesTo == "" {
		if s, err = newSentinels(task.Grader, text, g.present); err != nil {
			return finding{}, 0, err
		}
	}
	if s.file != "" {
		if err := push(ctx, g.session, task.Workdir, []member{{name: s.file, mode: "100644", content: s.content}}); err != nil {
			return finding{}, 0, err
		}
	}
	if g.plant {
		if err := g.plantIn(ctx, &s, text); err != nil {
			return finding{}, 0, err
		}
	}
	env := []string{"PYTHONDONTWRITEBYTECODE=1"}
	if task.Grader.Kind == "patch" {
		env = append(env, "PYTHONNOUSERSITE=1") // where state is graded, what the user installed may be the work
	}
	result, err := runTests(ctx, trial{session: g.session, task: task, sentinels: s, env: env})
	if err != nil {
		return finding{}, 0, err
	}
	if task.Grader.Report == "reward-file" {
		f, paid := byRewardFile(task.Grader, result)
		return f, paid, nil
	}
	return weigh(task, result), 0, nil
}
