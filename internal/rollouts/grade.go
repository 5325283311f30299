package rollouts

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"proctor/internal/store"
	"proctor/sandbox"
	"proctor/tasks"
)

// grading is a grading under way.
type grading struct {
	done  chan struct{}
	grade *tasks.Grade
	err   error
}

// Grade starts the grading of a rollout, or joins it; with wait it gives the grade, else nil while
// it runs. A rollout that still runs is submitted first. One that failed has the grade that its
// failure stands for. Grading that fails can be asked for again, since the sandbox stays.
func (m *Manager) Grade(ctx context.Context, id string, wait bool) (*tasks.Grade, error) {
	r := m.find(id)
	if r == nil {
		return m.storedGrade(ctx, id)
	}
	g, err := r.startGrading()
	if err != nil {
		return nil, err
	}
	if g == nil { // it ended without one, at this moment
		select {
		case <-r.gone:
		case <-ctx.Done():
			return nil, asError(CodeInterrupted, "the caller left", ctx.Err())
		}
		return m.storedGrade(ctx, id)
	}
	if !wait {
		select {
		case <-g.done:
			return g.grade, g.err
		default:
			return nil, nil
		}
	}
	select {
	case <-g.done:
		return g.grade, g.err
	case <-ctx.Done():
		return nil, asError(CodeInterrupted, "the caller left; grading goes on", ctx.Err())
	}
}

// startGrading starts grading unless it runs; nil where the rollout is over.
func (r *rollout) startGrading() (*grading, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = r.m.opt.Clock()
	switch {
	case r.grading != nil:
		return r.grading, nil
	case r.over:
		return nil, nil
	case r.doc.Task.Grader == nil:
		return nil, refuse(CodeNotGradable, "task %s has no grader; add one to its task file", r.doc.Task.ID)
	}
	g := &grading{done: make(chan struct{})}
	r.grading = g
	r.m.work.Add(1)
	go func() {
		defer r.m.work.Done()
		r.runGrading(g)
	}()
	return g, nil
}

// runGrading grades once no call runs any more.
func (r *rollout) runGrading(g *grading) {
	defer close(g.done)
	started := time.Now()
	r.submitted("graded")
	for running := r.running(); running != nil; running = r.running() {
		<-running
	}
	ctx, span := r.m.opt.Tracer.Start(r.ctx, "rollout.grade")
	defer span.End()
	if r.deadAlready(ctx, g) {
		return
	}
	keep := func(patch []byte) {
		if err := r.m.opt.Store.PutPatch(ctx, r.id, patch); err != nil {
			r.m.opt.Log.Error("keep a patch", "rollout", r.id, "err", err)
		}
	}
	grade, err := r.m.opt.Lab.Grade(ctx, GradeJob{
		ID: r.id, Task: r.doc.Task, Image: r.doc.Image, Session: r.box.sess, Patched: keep,
		Review: func(ctx context.Context, patch []byte) *tasks.Review {
			keep(patch)
			return r.reviewPatch(ctx, patch)
		},
	})
	if err == nil {
		err = r.graded(ctx, g, grade)
	}
	r.m.opt.Observer.graded(grade, err, time.Since(started))
	if err == nil || r.deadAlready(ctx, g) {
		return
	}
	r.m.opt.Log.Error("grading failed", "rollout", r.id, "err", err)
	g.err = asError(CodeGradingFailed, "the rollout could not be graded; ask again", err)
	r.mu.Lock()
	r.grading = nil
	r.seen = r.m.opt.Clock()
	r.mu.Unlock()
}

// deadAlready ends a rollout whose sandbox died before it could be graded, and gives the grade that
// stands for that.
func (r *rollout) deadAlready(ctx context.Context, g *grading) bool {
	var dead *sandbox.DeadError
	if !errors.As(r.box.sess.Alive(ctx), &dead) {
		return false
	}
	r.die(dead)
	g.grade = failedGrade(r.view())
	return true
}

// graded keeps a grade and ends the rollout with it.
func (r *rollout) graded(ctx context.Context, g *grading, grade tasks.Grade) error {
	if grade.FailureClass == "" {
		grade.FailureClass = classNone
	}
	doc, err := json.Marshal(grade)
	if err != nil {
		return err
	}
	if err := r.m.opt.Store.PutGrade(ctx, r.id, doc); err != nil {
		return err
	}
	g.grade = &grade
	r.end(ending{
		status: StatusGraded, class: grade.FailureClass, reward: grade.Reward, outcome: grade.Outcome,
		data: map[string]any{"outcome": grade.Outcome, "reward": grade.Reward, "failure_class": grade.FailureClass},
	})
	return nil
}

// storedGrade gives the grade of a rollout that has no sandbox any more.
func (m *Manager) storedGrade(ctx context.Context, id string) (*tasks.Grade, error) {
	view, err := m.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	grade, err := m.gradeOf(ctx, view)
	if err != nil {
		return nil, err
	}
	if grade == nil {
		return nil, refuse(CodeEnded, "the rollout was ended (%s) before it was graded", view.StopReason)
	}
	return grade, nil
}

// gradeOf gives a rollout's grade: the one kept, or the one that its failure stands for; nil where
// it has none.
func (m *Manager) gradeOf(ctx context.Context, view View) (*tasks.Grade, error) {
	doc, err := m.opt.Store.Grade(ctx, view.ID)
	switch {
	case err == nil:
		var g tasks.Grade
		if err := json.Unmarshal(doc, &g); err != nil {
			return nil, asError(CodeStore, "the grade is damaged", err)
		}
		return &g, nil
	case !errors.Is(err, store.ErrNotFound):
		return nil, storeError("read the grade", err)
	case view.Status == StatusFailed:
		return failedGrade(view), nil
	}
	return nil, nil
}

// Patch gives the work of a rollout as a unified diff, made on the trusted side; of one that was
// graded, the patch that was graded.
func (m *Manager) Patch(ctx context.Context, id string) ([]byte, error) {
	if r := m.find(id); r != nil {
		r.touch()
		patch, err := m.opt.Lab.Patch(ctx, r.doc.Task, r.doc.Image, r.box.sess)
		if err != nil {
			return nil, asError(CodeGradingFailed, "the patch could not be made", err)
		}
		return patch, nil
	}
	if _, err := m.Get(ctx, id); err != nil {
		return nil, err
	}
	patch, err := m.opt.Store.Patch(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, refuse(CodeEnded, "the rollout ended before its patch was made, and its sandbox is gone")
	}
	if err != nil {
		return nil, storeError("read the patch", err)
	}
	return patch, nil
}
