// Package lab joins task preparation and grading into what the rollouts manager needs of both: a
// rollouts.Lab.
package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"proctor/internal/rollouts"
	"proctor/monitor/normalize"
	"proctor/rules"
	"proctor/sandbox"
	"proctor/tasks"
	"proctor/tasks/grading"
)

// Options are what a Lab is made from.
type Options struct {
	Engine sandbox.Engine
	Data   string       // the data folder, with the host's state of prepared images
	Egress tasks.Egress // carries the connections of setup: allowlist; nil refuses it
	Log    *slog.Logger
}

// Lab prepares images and grades. Safe for concurrent use.
type Lab struct {
	engine   sandbox.Engine
	log      *slog.Logger
	preparer *tasks.Preparer
}

// New makes a Lab.
func New(o Options) *Lab {
	return &Lab{engine: o.Engine, log: o.Log, preparer: NewPreparer(o.Engine, o.Data, o.Egress, o.Log)}
}

// NewPreparer gives the Preparer of a data folder, which every command on that folder shares the
// images of. Build and setup lines get this host's proxy, certificates and index settings.
func NewPreparer(engine sandbox.Engine, data string, carrier tasks.Egress, log *slog.Logger) *tasks.Preparer {
	return &tasks.Preparer{Engine: engine, Egress: carrier, Dir: filepath.Join(data, "images"), Logger: log, Build: tasks.HostAccess(os.Getenv)}
}

// kept is what a rollout keeps of its prepared image.
type kept struct {
	Key string `json:"key"`           // names the result in the Preparer's cache
	Raw string `json:"raw,omitempty"` // the image before hardening
}

// Prepare gives the image that rollouts of task start from.
func (l *Lab) Prepare(ctx context.Context, task *tasks.Task, hardened bool) (rollouts.Image, error) {
	p, err := l.preparer.Prepare(ctx, task, hardened)
	if err != nil {
		return rollouts.Image{}, err
	}
	data, err := json.Marshal(kept{Key: p.Key, Raw: p.Raw.Ref})
	if err != nil {
		return rollouts.Image{}, err
	}
	return rollouts.Image{Ref: p.Image.Ref, Digest: p.Image.Digest, Data: data}, nil
}

// prepared finds what the host knows of an image.
func (l *Lab) prepared(ctx context.Context, task *tasks.Task, img rollouts.Image) (*tasks.Prepared, error) {
	var k kept
	if err := json.Unmarshal(img.Data, &k); err != nil || k.Key == "" {
		return nil, errors.Join(errors.New("the rollout's record does not name its prepared image"), err)
	}
	return l.preparer.Open(ctx, task, k.Key)
}

// Verify proves that a fresh sandbox is clean. It fails closed.
func (l *Lab) Verify(ctx context.Context, task *tasks.Task, img rollouts.Image, sess sandbox.Session) error {
	p, err := l.prepared(ctx, task, img)
	if err != nil {
		return err
	}
	return p.Verify(ctx, sess)
}

// Facts answers what names in calls stand for. Where the host's record of the image is lost, nothing
// can be told, and every fact is unknown.
func (l *Lab) Facts(task *tasks.Task, img rollouts.Image, sess sandbox.Session) normalize.Facts {
	p, err := l.prepared(context.Background(), task, img)
	if err != nil {
		l.log.Error("the facts of a prepared image are lost; names in calls stay unknown", "task", task.ID, "err", err)
		return nil
	}
	return facts{p.Facts(sess)}
}

// facts gives a prepared image's facts the normaliser's types.
type facts struct{ *tasks.Facts }

// PerCall implements what the normaliser asks for each call.
func (f facts) PerCall() normalize.Facts { return facts{f.Facts.PerCall()} }

func (f facts) Ref(ctx context.Context, dir, text string) rules.Standing {
	return rules.Standing(f.Facts.Ref(ctx, dir, text))
}

func (f facts) Path(ctx context.Context, path string) normalize.PathState {
	return normalize.PathState(f.Facts.Path(ctx, path))
}

// Patch gives the agent's work as a unified diff, made on the trusted side.
func (l *Lab) Patch(ctx context.Context, task *tasks.Task, img rollouts.Image, sess sandbox.Session) ([]byte, error) {
	patch, err := grading.Patch(ctx, l.engine, subject(task, img), sess, grading.Options{Logger: l.log})
	if err != nil {
		return nil, fmt.Errorf("patch of a rollout of %s: %w", task.ID, err)
	}
	return patch, nil
}

// Grade grades the agent's work in a fresh sandbox.
func (l *Lab) Grade(ctx context.Context, job rollouts.GradeJob) (tasks.Grade, error) {
	return grading.Grade(ctx, l.engine, subject(job.Task, job.Image), job.Session,
		grading.Options{Logger: l.log, Review: job.Review, Patched: job.Patched, Confirm: true})
}

// InPlace grades as naive harnesses do, in the agent's own sandbox, where every forgery pays. For
// comparison alone.
func (l *Lab) InPlace(ctx context.Context, job rollouts.GradeJob) (tasks.Grade, error) {
	return grading.InPlace(ctx, subject(job.Task, job.Image), job.Session, grading.Options{Logger: l.log})
}

func subject(task *tasks.Task, img rollouts.Image) grading.Subject {
	var k kept
	_ = json.Unmarshal(img.Data, &k) // without it the raw image is not known, which a grader that needs it says
	return grading.Subject{Task: task, Image: img.Ref, Raw: k.Raw}
}
