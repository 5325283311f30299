package grading

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"proctor/sandbox"
	"proctor/tasks"
)

// Subject is what a rollout worked on: a task and the image that its sandbox was made from.
type Subject struct {
	Task  *tasks.Task
	Image string
	Raw   string // the image before hardening; "" where it is not known. For Grader.FromImage.
}

// Options of grading. The zero value holds.
type Options struct {
	// Review reads the final patch; what it says becomes part of the grade, never of the reward.
	Review func(ctx context.Context, patch []byte) *tasks.Review
	// Patched is told the patch as soon as it is made, before it is applied anywhere.
	Patched func(patch []byte)
	// Logger gets what went wrong underneath; slog.Default() where nil.
	Logger *slog.Logger
	// Scratch is the folder for temporary repositories; "" for the system's.
	Scratch string
	// RunEmpty runs the tests on an empty patch too, which is otherwise graded without them.
	RunEmpty bool
	// Confirm runs the tests of what came out as resolved once more, with must-fail tests planted among the
	// expected ones, and a third time where the two differ.
	Confirm bool
}

func (o Options) logger() *slog.Logger {
	if o.Logger == nil {
		return slog.Default()
	}
	return o.Logger
}

// Patch gives what the agent changed in its working folder, against the same folder of a fresh
// sandbox: committed or not, staged, untracked, deleted, renamed, binary, and modes. Empty where
// nothing changed. Errors: ErrTooBig, *sandbox.DeadError, those of the engine.
func Patch(ctx context.Context, engine sandbox.Engine, subject Subject, session sandbox.Session, opts Options) ([]byte, error) {
	g, err := newGrading(ctx, engine, subject, opts)
	if err != nil {
		return nil, err
	}
	defer g.close(ctx)
	if err := g.readBase(ctx); err != nil {
		return nil, err
	}
	return g.patchOf(ctx, session)
}

// grading is one grading under way: a fresh sandbox and a repository that holds its working folder.
type grading struct {
	engine  sandbox.Engine
	subject Subject
	opts    Options
	repo    *repo
	session sandbox.Session
	base    string   // tree of the fresh working folder
	files   listing  // of the fresh working folder
	present []string // files of the working folder as the tests find it
	plant   bool     // must-fail tests among the expected ones
	notes   noteList
}

// newGrading makes the fresh sandbox and an empty repository.
func newGrading(ctx context.Context, engine sandbox.Engine, subject Subject, opts Options) (_ *grading, err error) {
	g := &grading{engine: engine, subject: subject, opts: opts}
	defer func() {
		if err != nil {
			g.close(ctx)
		}
	}()
	if g.repo, err = newRepo(ctx, opts.Scratch); err != nil {
		return nil, err
	}
	if g.session, err = engine.Create(ctx, graderSpec(subject)); err != nil {
		return nil, fmt.Errorf("fresh sandbox: %w", err)
	}
	return g, nil
}

// readBase reads the working folder of the fresh sandbox.
func (g *grading) readBase(ctx context.Context) (err error) {
	if g.base, err = g.pull(ctx, g.session, "base"); err != nil {
		return fmt.Errorf("fresh sandbox: %w", err)
	}
	g.files, err = g.repo.list(ctx, g.base)
	return err
}

// graderSpec is the sandbox of a grading: the task's own limits, and no network.
func graderSpec(subject Subject) sandbox.Spec {
	t := subject.Task
	return sandbox.Spec{
		Name: "grade-" + t.ID, Image: subject.Image, Workdir: t.Workdir, User: t.User, Env: t.Env,
		Limits: t.Limits.Limits, Network: sandbox.Network{Mode: "none"}, Labels: map[string]string{"role": "grader"},
	}
}

// close removes the sandbox, also where ctx is done.
func (g *grading) close(ctx context.Context) {
	if g.session != nil {
		if err := g.session.Close(context.WithoutCancel(ctx)); err != nil {
			g.opts.logger().Error("a grader's sandbox could not be removed", "sandbox", g.session.ID(), "err", err)
		}
	}
	if g.repo != nil {
		if err := g.repo.close(); err != nil {
			g.opts.logger().Error("a grader's scratch folder could not be removed", "dir", g.repo.dir, "err", err)
		}
	}
}

// pull reads the working folder of a sandbox into the repository.
func (g *grading) pull(ctx context.Context, session sandbox.Session, branch string) (string, error) {
	stream, err := session.Pull(ctx, g.subject.Task.Workdir)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	tree, notes, err := g.repo.importTar(ctx, stream, branch)
	if branch != "base" {
		for _, n := range notes {
			g.notes.add("%s", n)
		}
	}
	if errors.Is(err, errTar) {
		if dead := session.Alive(ctx); dead != nil {
			return "", dead
		}
	}
	return tree, err
}

// patchOf makes the patch of the agent's sandbox.
func (g *grading) patchOf(ctx context.Context, session sandbox.Session) ([]byte, error) {
	tree, err := g.pull(ctx, session, "agent")
	if err != nil {
		return nil, fmt.Errorf("the agent's working folder: %w", err)
	}
	return g.repo.diff(ctx, g.base, tree, maxPatch)
}
