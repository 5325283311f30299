// Package lab joins task preparation and grading into what the rollouts manager needs of both: a
// rollouts.Lab.
package lab

import (
	"context"
	"log/slog"

	"proctor/internal/rollouts"
	"proctor/monitor/normalize"
	"proctor/sandbox"
	"proctor/tasks"
	"proctor/tasks/grading"
)

// Options are what a Lab is made from.
type Options struct {
	Engine sandbox.Engine
	Dir    string // the host's state of prepared images
	Log    *slog.Logger
}

// Lab prepares images and grades. Safe for concurrent use.
type Lab struct {
	opt Options
}

// New makes a Lab.
func New(o Options) *Lab { return &Lab{opt: o} }

// Prepare gives the image that rollouts of task start from.
func (l *Lab) Prepare(ctx context.Context, task *tasks.Task, hardened bool) (rollouts.Image, error) {
	img, err := l.opt.Engine.Image(ctx, task.Image)
	if err != nil {
		return rollouts.Image{}, err
	}
	return rollouts.Image{Ref: img.Ref, Digest: img.Digest}, nil
}

// Verify proves that a fresh sandbox is clean.
func (l *Lab) Verify(ctx context.Context, task *tasks.Task, img rollouts.Image, sess sandbox.Session) error {
	return nil
}

// Facts answers what names in calls stand for.
func (l *Lab) Facts(task *tasks.Task, img rollouts.Image, sess sandbox.Session) normalize.Facts {
	return nil
}

// Patch gives the agent's work as a unified diff, made on the trusted side.
func (l *Lab) Patch(ctx context.Context, task *tasks.Task, img rollouts.Image, sess sandbox.Session) ([]byte, error) {
	return grading.Patch(ctx, l.opt.Engine, grading.Subject{Task: task, Image: img.Ref}, sess, grading.Options{Logger: l.opt.Log})
}

// Grade grades the agent's work in a fresh sandbox.
func (l *Lab) Grade(ctx context.Context, job rollouts.GradeJob) (tasks.Grade, error) {
	return grading.Grade(ctx, l.opt.Engine, grading.Subject{Task: job.Task, Image: job.Image.Ref}, job.Session,
		grading.Options{Logger: l.opt.Log, Review: job.Review})
}
