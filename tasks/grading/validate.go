package grading

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"time"

	"proctor/sandbox"
	"proctor/tasks"
)

// Validator proves tasks both ways: the solution is graded as resolved, and doing nothing is not.
type Validator struct {
	Engine sandbox.Engine
	// Prepare gives the hardened image of a task. (*tasks.Preparer).Prepare.
	Prepare  func(ctx context.Context, task *tasks.Task, hardening bool) (*tasks.Prepared, error)
	Runs     int // of each kind; at least 1
	Parallel int // gradings at once; at least 1
	// Progress, where set, is called after each grading, one call at a time.
	Progress func(task string, done, total int)
	Logger   *slog.Logger
}

// Validation is what became of one task.
type Validation struct {
	TaskID   string       `json:"task_id"`
	Gold     Outcomes     `json:"gold"`
	Empty    Outcomes     `json:"empty"`
	OK       bool         `json:"ok"`
	Flaky    []string     `json:"flaky"`    // tests that passed in one run and not in another of its kind
	Leaks    []tasks.Leak `json:"leaks"`    // in the raw image; hardening has taken them out
	Problems []string     `json:"problems"` // why it is not ok, in words
	Infra    bool         `json:"infra"`    // the machine failed, not the task: nothing is proven
	// DurationMS is the time from its first to its last step, other tasks' work beside it included.
	DurationMS int64 `json:"duration_ms"`
}

// Outcomes sums up the runs of one kind.
type Outcomes struct {
	Outcome string `json:"outcome"` // of all runs, or "mixed"; "" where none was made
	Runs    int    `json:"runs"`
}

// differing is the outcome of runs that differ.
const differing = "mixed"

// Validate validates tasks and gives their validations in the same order. What fails is in them;
// the error is ctx's own.
func (v *Validator) Validate(ctx context.Context, list []*tasks.Task) ([]Validation, error) {
	out := make([]Validation, len(list))
	slots := make(chan struct{}, max(v.Parallel, 1))
	p := &progress{total: len(list) * 2 * max(v.Runs, 1), tell: v.Progress}
	var wg sync.WaitGroup
	for i, task := range list {
		wg.Add(1)
		go func() {
			defer wg.Done()
			out[i] = v.one(ctx, task, slots, p)
		}()
	}
	wg.Wait()
	return out, ctx.Err()
}

// progress counts gradings.
type progress struct {
	mu    sync.Mutex
	done  int
	total int
	tell  func(task string, done, total int)
}

func (p *progress) add(task string, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	if p.tell != nil {
		p.tell(task, p.done, p.total)
	}
}

func (v *Validator) one(ctx context.Context, task *tasks.Task, slots chan struct{}, p *progress) (val Validation) {
	start := time.Now()
	val = Validation{TaskID: task.ID, Flaky: []string{}, Leaks: []tasks.Leak{}, Problems: []string{}}
	defer func() { val.DurationMS = time.Since(start).Milliseconds() }()
	runs := max(v.Runs, 1)
	subject, leaks, err := v.ready(ctx, task, slots)
	if err != nil {
		p.add(task.ID, 2*runs)
		val.Problems = append(val.Problems, err.Error())
		val.Infra = infraError(err)
		return val
	}
	val.Leaks = append(val.Leaks, leaks...)
	gold, empty := make([]tasks.Grade, runs), make([]tasks.Grade, runs)
	var wg sync.WaitGroup
	for i := range 2 * runs {
		wg.Add(1)
		go func() {
			defer wg.Done()
			slots <- struct{}{}
			defer func() { <-slots; p.add(task.ID, 1) }()
			if i < runs {
				gold[i] = v.solve(ctx, subject)
			} else {
				empty[i-runs] = v.nothing(ctx, subject)
			}
		}()
	}
	wg.Wait()
	val.weigh(gold, empty)
	return val
}

// ready prepares a task's image.
func (v *Validator) ready(ctx context.Context, task *tasks.Task, slots chan struct{}) (Subject, []tasks.Leak, error) {
	if err := gradable(task); err != nil {
		return Subject{}, nil, err
	}
	if task.Solution == "" {
		return Subject{}, nil, errors.New("solution: the task has none, so that nothing can be proven of its grader; name a patch or a script")
	}
	slots <- struct{}{}
	defer func() { <-slots }()
	prepared, err := v.Prepare(ctx, task, true)
	if err != nil {
		return Subject{}, nil, err
	}
	return Subject{Task: task, Image: prepared.Image.Ref, Raw: prepared.Raw.Ref}, prepared.Leaks, nil
}

// infraError reports whether an error is the machine's doing.
func infraError(err error) bool {
	return errors.Is(err, sandbox.ErrUnavailable) || errors.Is(err, sandbox.ErrCapacity) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// solve grades the task's own solution: a patch, or a script that is run where the agent would work.
func (v *Validator) solve(ctx context.Context, subject Subject) tasks.Grade {
	solution, err := os.ReadFile(filepath.Join(subject.Task.Dir, subject.Task.Solution))
	if err != nil {
		return blame(tasks.Grade{}, fmt.Errorf("%w: solution: %w", errTask, err))
	}
	opts := Options{Logger: v.Logger, RunEmpty: true}
	var grade tasks.Grade
	if strings.HasSuffix(subject.Task.Solution, ".sh") {
		grade, err = v.script(ctx, subject, solution, opts)
	} else {
		grade, err = GradePatch(ctx, v.Engine, subject, solution, opts)
	}
	if err != nil {
		return blame(tasks.Grade{}, err)
	}
	return grade
}

func (v *Validator) script(ctx context.Context, subject Subject, script []byte, opts Options) (tasks.Grade, error) {
	spec := graderSpec(subject)
	spec.Name = "solve-" + subject.Task.ID
	session, err := v.Engine.Create(ctx, spec)
	if err != nil {
		return tasks.Grade{}, err
	}
	defer func() { _ = session.Close(context.WithoutCancel(ctx)) }()
	res, err := session.Exec(ctx, sandbox.Exec{Argv: []string{"/bin/sh", "-s"}, Stdin: script, Dir: subject.Task.Workdir, Timeout: DefaultTimeout})
	if err != nil {
		return tasks.Grade{}, err
	}
	if res.Exit == nil || *res.Exit != 0 {
		return blame(tasks.Grade{}, fmt.Errorf("%w: the solution script failed: %s", errPatch, clip(string(res.Stderr), 300))), nil
	}
	return Grade(ctx, v.Engine, subject, session, opts)
}

func (v *Validator) nothing(ctx context.Context, subject Subject) tasks.Grade {
	grade, err := GradePatch(ctx, v.Engine, subject, nil, Options{Logger: v.Logger, RunEmpty: true})
	if err != nil {
		return blame(grade, err)
	}
	return grade
}

// weigh settles a validation from the grades of its runs.
func (val *Validation) weigh(gold, empty []tasks.Grade) {
	val.Gold, val.Empty = sumUp(gold), sumUp(empty)
	val.Flaky = append(flaky(gold), flaky(empty)...)
	for i, g := range gold {
		if g.Outcome != tasks.Resolved {
			lost := ""
			if g.Outcome == tasks.Unresolved {
				lost = listed("; failed ", append(append([]string(nil), g.Tests.FailToPass.Failed...), g.Tests.PassToPass.Failed...))
			}
			val.problem("gold run %d: %s%s%s", i+1, g.Outcome, lost, listed("; ", g.Notes))
		}
		val.Infra = val.Infra || machineFailed(g)
	}
	for i, g := range empty {
		switch {
		case g.Outcome != tasks.Unresolved:
			val.problem("empty run %d: %s, though nothing was done%s", i+1, g.Outcome, listed("; ", g.Notes))
		case len(g.Tests.FailToPass.Passed) > 0:
			val.problem("empty run %d: fail_to_pass holds tests that pass without the solution%s", i+1, listed(": ", g.Tests.FailToPass.Passed))
		case len(g.Tests.PassToPass.Failed) > 0:
			val.problem("empty run %d: pass_to_pass holds tests that fail without the solution%s", i+1, listed(": ", g.Tests.PassToPass.Failed))
		}
		val.Infra = val.Infra || machineFailed(g)
	}
	if len(val.Flaky) > 0 {
		val.problem("flaky%s", listed(": ", val.Flaky))
	}
	val.OK = len(val.Problems) == 0
}

// machineFailed reports whether a grade is missing for no fault of the task's.
func machineFailed(g tasks.Grade) bool {
	return g.Outcome == tasks.InfraFailure && g.FailureClass != sandbox.FailureTask
}

func (val *Validation) problem(format string, args ...any) {
	val.Problems = append(val.Problems, fmt.Sprintf(format, args...))
}

// listed gives the first few of a list, after a word; "" for none.
func listed(word string, list []string) string {
	const shown = 5
	if len(list) == 0 {
		return ""
	}
	if len(list) > shown {
		return word + strings.Join(list[:shown], ", ") + fmt.Sprintf(" and %d more", len(list)-shown)
	}
	return word + strings.Join(list, ", ")
}

func sumUp(grades []tasks.Grade) Outcomes {
	o := Outcomes{Runs: len(grades)}
	for i, g := range grades {
		if i > 0 && g.Outcome != o.Outcome {
			o.Outcome = differing
			break
		}
		o.Outcome = g.Outcome
	}
	return o
}

// flaky gives the tests that passed in one run and failed in another.
func flaky(grades []tasks.Grade) []string {
	good, bad := map[string]bool{}, map[string]bool{}
	for _, g := range grades {
		for _, l := range []tasks.TestList{g.Tests.FailToPass, g.Tests.PassToPass} {
			for _, id := range l.Passed {
				good[id] = true
			}
			for _, id := range l.Failed {
				bad[id] = true
			}
		}
	}
	both := []string{}
	for id := range good {
		if bad[id] {
			both = append(both, id)
		}
	}
	sort.Strings(both)
	return both
}
