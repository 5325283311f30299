package grading

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"proctor/sandbox"
	"proctor/tasks"
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
	return run(ctx, engine, subject, opts, func(g *grading) ([]byte, error) { return g.patchOf(ctx, session) })
}

// GradePatch grades a patch that came as text: a prediction, or a gold patch.
func GradePatch(ctx context.Context, engine sandbox.Engine, subject Subject, patch []byte, opts Options) (tasks.Grade, error) {
	return run(ctx, engine, subject, opts, func(*grading) ([]byte, error) {
		if len(patch) > maxPatch {
			return nil, fmt.Errorf("%w: the patch is over %d bytes", ErrTooBig, maxPatch)
		}
		return patch, nil
	})
}

// gradable says in an error why a task cannot be graded.
func gradable(task *tasks.Task) error {
	g := task.Grader
	switch {
	case g == nil:
		return fmt.Errorf("task %s: %w", task.ID, ErrNoGrader)
	case g.Kind != "patch":
		return fmt.Errorf("task %s: %w: grader.kind %q; this version grades patch", task.ID, ErrKind, g.Kind)
	case g.Report != "junit" && g.Report != "exit" && g.Report != "reward-file":
		return fmt.Errorf("task %s: %w: grader.report %q; this version reads junit, exit and reward-file", task.ID, ErrKind, g.Report)
	}
	return nil
}

func run(ctx context.Context, engine sandbox.Engine, subject Subject, opts Options, patchOf func(*grading) ([]byte, error)) (tasks.Grade, error) {
	start := time.Now()
	if err := gradable(subject.Task); err != nil {
		return tasks.Grade{}, err
	}
	grade, err := attempt(ctx, engine, subject, opts, patchOf)
	if err != nil {
		opts.logger().Error("grading failed", "task", subject.Task.ID, "err", err)
		grade = blame(grade, err)
	}
	grade.DurationMS = time.Since(start).Milliseconds()
	return grade, nil
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
		if errors.Is(err, errTask) {
			grade.FailureClass = sandbox.FailureTask
		}
	}
	return grade
}

func reward(r float64) *float64 { return &r }

func attempt(ctx context.Context, engine sandbox.Engine, subject Subject, opts Options, patchOf func(*grading) ([]byte, error)) (grade tasks.Grade, err error) {
	grade.Tests = allFailed(subject.Task.Grader)
	g, err := newGrading(ctx, engine, subject, opts)
	if err != nil {
		return grade, err
	}
	defer g.close(ctx)
	defer func() { grade.Notes = append(g.notes.lines(), grade.Notes...) }()
	patch, err := patchOf(g)
	if err != nil {
		return grade, err
	}
	sum := sha256.Sum256(patch)
	grade.PatchSHA256 = hex.EncodeToString(sum[:])
	if opts.Patched != nil {
		opts.Patched(patch)
	}
	if opts.Review != nil && len(patch) > 0 {
		grade.Review = opts.Review(ctx, patch)
	}
	if len(patch) == 0 && !opts.RunEmpty {
		grade.Outcome, grade.FailureClass, grade.Reward = tasks.EmptyPatch, sandbox.FailureModel, reward(0)
		return grade, nil
	}
	if grade.ApplyStep, err = g.prepare(ctx, patch); err != nil {
		return grade, err
	}
	f, paid, err := g.test(ctx)
	if err != nil {
		return grade, err
	}
	grade.Outcome, grade.FailureClass, grade.Tests, grade.Witnesses = f.outcome, f.failure, f.tests, f.witnesses
	grade.Notes = append(grade.Notes, f.notes...)
	grade.Components = components(f.tests)
	grade.Reward = reward(score(subject.Task.Grader, f, grade.Components, paid))
	return grade, nil
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

// script gives the task's own test script; nil where it has none.
func script(task *tasks.Task) ([]byte, error) {
	if task.Grader.Script == "" {
		return nil, nil
	}
	data, err := os.ReadFile(filepath.Join(task.Dir, task.Grader.Script))
	if err != nil {
		return nil, fmt.Errorf("%w: grader.script: %w", errTask, err)
	}
	return data, nil
}

// test runs the test command and weighs what it left. paid is what a reward file says.
func (g *grading) test(ctx context.Context) (finding, float64, error) {
	grader := g.subject.Task.Grader
	s, err := newSentinels(grader, g.present)
	if err != nil {
		return finding{}, 0, err
	}
	if s.file != "" {
		if err := push(ctx, g.session, g.subject.Task.Workdir, []member{{name: s.file, mode: "100644", content: s.content}}); err != nil {
			return finding{}, 0, err
		}
	}
	env := []string{"PYTEST_ADDOPTS=" + s.addopts, "PYTHONDONTWRITEBYTECODE=1", "PYTHONNOUSERSITE=1"}
	result, err := runTests(ctx, g.session, g.subject.Task, s, env)
	if err != nil {
		return finding{}, 0, err
	}
	if grader.Report == "reward-file" {
		f, paid := byRewardFile(grader, result)
		return f, paid, nil
	}
	return weigh(grader, result), 0, nil
}

// runTests runs the test command in a sandbox and reads its report. What the tests do to their own
// sandbox is a result; an error is trouble of ours.
func runTests(ctx context.Context, session sandbox.Session, task *tasks.Task, s sentinels, env []string) (testRun, error) {
	dir, err := reportDir(ctx, session, task.User)
	if err != nil {
		return testRun{}, err
	}
	file := path.Join(dir, "report")
	timeout := DefaultTimeout
	if task.Grader.TimeoutS > 0 {
		timeout = time.Duration(task.Grader.TimeoutS) * time.Second
	}
	argv := []string{"/bin/sh", "-c", strings.ReplaceAll(task.Grader.Command, "{report}", file)}
	text, err := script(task)
	if err != nil {
		return testRun{}, err
	}
	if text != nil {
		argv = []string{"/bin/bash", path.Join(dir, "run.sh")}
		if err := push(ctx, session, dir, []member{{name: "run.sh", mode: "100755", content: []byte(strings.ReplaceAll(string(text), "{report}", file))}}); err != nil {
			return testRun{}, err
		}
	}
	res, err := session.Exec(ctx, sandbox.Exec{
		Argv: argv,
		Env:  env, Dir: task.Workdir, Timeout: timeout,
	})
	result := testRun{sentinels: s}
	var dead *sandbox.DeadError
	switch {
	case errors.As(err, &dead) && dead.Class == sandbox.FailureModel:
		return result, nil // no exit status: unresolved
	case err != nil:
		return testRun{}, fmt.Errorf("test command: %w", err)
	}
	result.exit, result.timedOut, result.oom, result.truncated = res.Exit, res.TimedOut, res.OOM, res.Truncated
	result.output = append(res.Stdout, res.Stderr...)
	result.report, err = session.ReadFile(ctx, file, maxReport+1)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) || errors.Is(err, fs.ErrPermission) {
		result.report, err = nil, nil
	}
	if errors.As(err, &dead) && dead.Class == sandbox.FailureModel {
		return testRun{sentinels: s}, nil
	}
	return result, err
}

// reportDir makes a folder of random name, outside the working folder, that the tests' user can write.
func reportDir(ctx context.Context, session sandbox.Session, user string) (string, error) {
	var token [8]byte
	if _, err := rand.Read(token[:]); err != nil {
		return "", err
	}
	dir := "/tmp/" + hex.EncodeToString(token[:])
	if err := must(ctx, session, []string{"mkdir", "-m", "0777", "-p", dir}); err != nil {
		return "", err
	}
	return dir, nil
}

// byRewardFile reads a reward that the task's own verifier wrote: one number from 0 to 1.
func byRewardFile(g *tasks.Grader, run testRun) (finding, float64) {
	f := finding{outcome: tasks.Unresolved, failure: sandbox.FailureModel, tests: allFailed(g)}
	paid, err := strconv.ParseFloat(strings.TrimSpace(string(run.report)), 64)
	switch {
	case run.exit == nil:
		f.note("the verifier did not end by itself")
		return f, 0
	case run.report == nil:
		f.note("the verifier wrote no reward")
		return f, 0
	case err != nil || !(paid >= 0 && paid <= 1):
		f.note("the reward file holds %q, not a number from 0 to 1", clip(string(run.report), 60))
		return f, 0
	}
	f.witness("exit status %d", *run.exit)
	f.witness("reward file: %g", paid)
	if paid == 1 {
		f.outcome, f.tests = tasks.Resolved, allPassed(g)
	}
	return f.settle(), paid
}

// components are the shares of expected tests that passed.
func components(t tasks.Tests) map[string]float64 {
	share := func(l tasks.TestList) float64 {
		if len(l.Passed)+len(l.Failed) == 0 {
			return 1
		}
		return float64(len(l.Passed)) / float64(len(l.Passed)+len(l.Failed))
	}
	return map[string]float64{"fail_to_pass": share(t.FailToPass), "pass_to_pass": share(t.PassToPass)}
}

// score is the reward of a finding: binary, or, where the task asks for a fraction, the share of
// FAIL_TO_PASS times that of PASS_TO_PASS, so that breaking what worked is never worth it. A reward
// file's number is the task's own. Tampering pays nothing.
func score(g *tasks.Grader, f finding, parts map[string]float64, paid float64) float64 {
	switch {
	case f.outcome == tasks.Tampered:
		return 0
	case g.Report == "reward-file":
		return paid
	case f.outcome == tasks.Resolved:
		return 1
	case g.Reward == "fraction":
		return parts["fail_to_pass"] * parts["pass_to_pass"]
	}
	return 0
}
