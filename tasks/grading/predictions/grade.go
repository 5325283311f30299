package predictions

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"proctor/sandbox"
	"proctor/tasks"
	"proctor/tasks/grading"
)

// Classes of rows that came to no grade.
const (
	ClassRow       = "bad_row"    // no prediction: field or form
	ClassUnknown   = "unknown_id" // for no task of the set
	ClassDuplicate = "duplicate"  // the model's second for its task; the first was graded
)

// Result is what became of a row.
type Result struct {
	InstanceID string       `json:"instance_id"`
	Model      string       `json:"model_name_or_path"`
	Key        string       `json:"key,omitempty"`   // of patch and task: what has it was graded
	Class      string       `json:"class,omitempty"` // where there is no grade
	Error      string       `json:"error,omitempty"`
	Place      string       `json:"place"` // where the row stands
	NoPatch    bool         `json:"no_patch,omitempty"`
	Known      bool         `json:"known,omitempty"` // taken from the journal
	Grade      *tasks.Grade `json:"grade,omitempty"`
}

// keyVersion is part of every key: a grader that judges otherwise takes another.
const keyVersion = "proctor.grade/1"

// Runner grades predictions.
type Runner struct {
	Engine sandbox.Engine
	Tasks  []*tasks.Task
	// Prepare gives the hardened image of a task. (*tasks.Preparer).Prepare.
	Prepare func(ctx context.Context, task *tasks.Task, hardening bool) (*tasks.Prepared, error)
	// Review reads a patch for its grade; nil for none.
	Review func(ctx context.Context, task *tasks.Task, patch []byte) *tasks.Review
	// Known gives the result of a key that was graded before; nil where there is none.
	Known func(key string) *tasks.Grade
	// Done is told every result as it comes, with its patch, one call at a time. Its error ends the run.
	Done     func(res Result, patch []byte) error
	Parallel int // gradings at once; at least 1
	Once     bool
	Logger   *slog.Logger
}

// work is a run under way.
type work struct {
	*Runner
	tasks map[string]*tasks.Task
	seen  map[string]string // place of the first row, by model and id

	mu      sync.Mutex
	results []Result
	err     error
}

// Grade grades the rows that next gives until it is done, and gives what became of each, in the order in
// which they ended. What fails is in the results; an error is ctx's, next's or Done's.
func (r *Runner) Grade(ctx context.Context, next func(each func(Row) error) error) ([]Result, error) {
	w := &work{Runner: r, tasks: map[string]*tasks.Task{}, seen: map[string]string{}}
	for _, t := range r.Tasks {
		w.tasks[t.ID] = t
	}
	slots := make(chan struct{}, max(r.Parallel, 1))
	var wg sync.WaitGroup
	err := next(func(row Row) error {
		if bad := w.refused(row); bad != nil {
			return w.done(*bad, nil)
		}
		select {
		case slots <- struct{}{}: // a patch is held only while it is graded
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := w.failed(); err != nil {
			return err
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer func() { <-slots }()
			if res := w.one(ctx, row); ctx.Err() == nil {
				_ = w.done(res, row.Patch) // kept; the next row ends the run with it
			}
		}()
		return nil
	})
	wg.Wait()
	return w.results, errors.Join(err, w.failed(), ctx.Err())
}

func (w *work) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

func (w *work) done(res Result, patch []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.results = append(w.results, res)
	if w.Done != nil && w.err == nil {
		w.err = w.Done(res, patch)
	}
	return w.err
}

// refused gives the result of a row that is not graded; nil for others.
func (w *work) refused(row Row) *Result {
	res := &Result{InstanceID: row.InstanceID, Model: row.Model, Place: row.Place()}
	key := row.Model + "\x00" + row.InstanceID
	first, again := w.seen[key]
	switch {
	case row.Err != nil:
		res.Class, res.Error = ClassRow, row.Err.Error()
	case w.tasks[row.InstanceID] == nil:
		res.Class, res.Error = ClassUnknown, fmt.Sprintf("no task of the set is called %q", row.InstanceID)
	case again:
		res.Class, res.Error = ClassDuplicate, "the model has a prediction for this task at "+first+"; that one was graded"
	default:
		w.seen[key] = res.Place
		return nil
	}
	return res
}

// Key names a grading: the patch, and the task with all that it is graded by.
func Key(task *tasks.Task, patch []byte) (string, error) {
	digest, err := task.Digest()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%s\n", keyVersion, digest)
	sum.Write(patch)
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func (w *work) one(ctx context.Context, row Row) Result {
	task := w.tasks[row.InstanceID]
	res := Result{InstanceID: row.InstanceID, Model: row.Model, Place: row.Place(), NoPatch: row.Patch == nil}
	start := time.Now()
	key, err := Key(task, row.Patch)
	if err != nil {
		res.Grade = broken(task, sandbox.FailureTask, err)
		return res
	}
	res.Key = key
	if w.Known != nil {
		if res.Grade = w.Known(key); res.Grade != nil {
			res.Known = true
			return res
		}
	}
	res.Grade = w.grade(ctx, task, row.Patch)
	res.Grade.DurationMS = time.Since(start).Milliseconds()
	return res
}

func (w *work) grade(ctx context.Context, task *tasks.Task, patch []byte) *tasks.Grade {
	if len(patch) == 0 {
		zero, grade := 0.0, broken(task, sandbox.FailureModel, nil)
		grade.Outcome, grade.Reward = tasks.EmptyPatch, &zero
		return grade
	}
	prepared, err := w.Prepare(ctx, task, true)
	if err != nil {
		class := sandbox.FailureInfra
		if errors.Is(err, tasks.ErrSetup) || errors.Is(err, tasks.ErrNotClean) || errors.Is(err, sandbox.ErrNoImage) {
			class = sandbox.FailureTask
		}
		return broken(task, class, err)
	}
	opts := grading.Options{Logger: w.Logger, Confirm: !w.Once}
	if w.Review != nil {
		opts.Review = func(ctx context.Context, patch []byte) *tasks.Review { return w.Review(ctx, task, patch) }
	}
	grade, err := grading.GradePatch(ctx, w.Engine, grading.Subject{Task: task, Image: prepared.Image.Ref, Raw: prepared.Raw.Ref}, patch, opts)
	if err != nil {
		return broken(task, sandbox.FailureTask, err)
	}
	return &grade
}

// broken is the grade of what could not be graded.
func broken(task *tasks.Task, class string, err error) *tasks.Grade {
	g := &tasks.Grade{Outcome: tasks.InfraFailure, FailureClass: class, Tests: grading.NoneRan(task)}
	if err != nil {
		g.Notes = []string{err.Error()}
	}
	return g
}
