package grading

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"proctor/sandbox"
	"proctor/tasks"
)

// imageRemover is an engine that can remove what Commit made. One that cannot leaves the images of states
// to whoever tidies up.
type imageRemover interface {
	RemoveImage(ctx context.Context, ref string) error
}

// gradeState grades what the agent made of its container: the files go into a new sandbox as an image,
// its processes do not; what steers a verifier is put back; then the verifier runs.
func (g *grading) gradeState(ctx context.Context, session sandbox.Session) (grade tasks.Grade, err error) {
	grade.Tests = allFailed(g.subject.Task.Grader)
	if dead := session.Alive(ctx); dead != nil {
		return grade, fmt.Errorf("the agent's sandbox: %w", dead)
	}
	g.reviewWork(ctx, session, &grade)
	ref := "proctor/state:" + randomName()
	if _, err := g.engine.Commit(ctx, session.ID(), ref); err != nil {
		return grade, fmt.Errorf("keeping the agent's files: %w", err)
	}
	defer g.tidy(ctx, "image "+ref, func(ctx context.Context) error {
		if remover, ok := g.engine.(imageRemover); ok {
			return remover.RemoveImage(ctx, ref)
		}
		return nil
	})
	spec := graderSpec(g.subject)
	spec.Image = ref
	state, err := g.engine.Create(ctx, spec)
	if err != nil && ctx.Err() == nil && !errors.Is(err, sandbox.ErrUnavailable) && !errors.Is(err, sandbox.ErrCapacity) {
		// A sandbox of the task's own image came up just before: it is what was left that does not.
		return grade, fmt.Errorf("%w: nothing starts from what the agent left: %w", errPatch, err)
	}
	if err != nil {
		return grade, fmt.Errorf("sandbox of the agent's files: %w", err)
	}
	image := g.session
	g.session = state
	defer g.tidy(ctx, "sandbox "+state.ID(), state.Close)
	defer func() { g.session = image }()
	f, paid, err := g.verify(ctx, image, state)
	if errors.Is(err, errExit) { // a full disk, a file in the place of /tmp: what was left is at fault, not the machine
		err = fmt.Errorf("%w: the verifier cannot be brought in: %w", errPatch, err)
	}
	if errors.Is(err, errForged) {
		f, err = finding{outcome: tasks.Tampered, failure: sandbox.FailureModel, tests: grade.Tests, notes: []string{"tampered: " + err.Error()}}, nil
	}
	if err != nil {
		return grade, err
	}
	g.settle(&grade, f, paid)
	return grade, nil
}

// verify resets the state and runs the verifier in it.
func (g *grading) verify(ctx context.Context, image, state sandbox.Session) (finding, float64, error) {
	task := g.subject.Task
	known, err := g.engine.Image(ctx, g.subject.Image)
	if err != nil {
		return finding{}, 0, err
	}
	policy := newStatePolicy(task, searchPath(known.Env, task.Env))
	if err := policy.reset(ctx, image, state, &g.notes); err != nil {
		return finding{}, 0, err
	}
	if err := g.clearWorkdir(ctx, image); err != nil {
		return finding{}, 0, err
	}
	hidden, err := g.hidden(ctx)
	if err != nil {
		return finding{}, 0, err
	}
	if err := g.bringVerifier(ctx, hidden); err != nil {
		return finding{}, 0, err
	}
	g.present = names(hidden)
	return g.test(ctx)
}

// clearWorkdir takes out of the working folder what a runner started there would read before the tests, or
// in place of its own modules, and that the image does not have. The image's programs are back by now.
func (g *grading) clearWorkdir(ctx context.Context, image sandbox.Session) error {
	workdir := g.subject.Task.Workdir
	names, _, err := entriesOf(ctx, g.session, workdir, `printf '%s\0' "$f"`) // none where it is gone: the verifier will say so
	if err != nil {
		return err
	}
	var gone []string
	for _, name := range names {
		why := steers(name)
		if why == "" || below(strings.TrimPrefix(path.Join(workdir, name), "/"), newStatePolicy(g.subject.Task, "").keep) {
			continue
		}
		if _, err := image.Stat(ctx, path.Join(workdir, name)); errors.Is(err, fs.ErrNotExist) {
			gone = append(gone, name)
			g.notes.add("took out %s: %s", path.Join(workdir, name), why)
		}
	}
	return remove(ctx, g.session, workdir, gone)
}

// steers says why an entry of the working folder is taken out; "" for others.
func steers(name string) string {
	if isJunk(name) || strings.HasSuffix(name, ".egg-info") || name == "site-packages" {
		return ""
	}
	if why := pinned(name, nil); why != "" {
		return why
	}
	if !strings.Contains(name, ".") && runnerModules[name] {
		return "takes the place of a module that the runner imports"
	}
	return ""
}

// gradeUntouched grades a container that nobody worked in.
func (g *grading) gradeUntouched(ctx context.Context) (tasks.Grade, error) {
	session, err := g.engine.Create(ctx, graderSpec(g.subject))
	if err != nil {
		return tasks.Grade{Tests: allFailed(g.subject.Task.Grader)}, fmt.Errorf("fresh sandbox: %w", err)
	}
	defer g.tidy(ctx, "sandbox "+session.ID(), session.Close)
	return g.gradeState(ctx, session)
}

// tidy removes what a grading made, also where ctx is done. That it stays is no reason to give no grade.
func (g *grading) tidy(ctx context.Context, what string, remove func(context.Context) error) {
	if err := remove(context.WithoutCancel(ctx)); err != nil {
		g.opts.logger().Error("something that grading made could not be removed", "what", what, "err", err)
	}
}

// bringVerifier puts the verifier's files in their places, and an empty folder for its reward.
func (g *grading) bringVerifier(ctx context.Context, hidden []member) error {
	for _, argv := range [][]string{{"rm", "-rf", "--", "/logs/verifier"}, {"mkdir", "-p", "-m", "0777", "/logs/verifier"}} {
		if err := must(ctx, g.session, argv); err != nil {
			return err
		}
	}
	if err := g.elsewhere(ctx); err != nil {
		return err
	}
	if len(hidden) == 0 {
		return nil
	}
	// What stands in the way of a file that is to come, a link or a folder, goes first.
	if err := remove(ctx, g.session, g.subject.Task.Workdir, names(hidden)); err != nil {
		return err
	}
	return push(ctx, g.session, g.subject.Task.Workdir, hidden)
}

// reviewWork reads what changed in the working folder, for the record and the review. Where it cannot be
// read that is noted, and nothing more: the state is what is graded.
func (g *grading) reviewWork(ctx context.Context, session sandbox.Session, grade *tasks.Grade) {
	if g.subject.Task.Workdir == "/" || (g.opts.Review == nil && g.opts.Patched == nil) {
		return
	}
	patch, err := g.workPatch(ctx, session)
	if err != nil {
		g.notes.add("the changes of the working folder could not be read: %v", err)
		return
	}
	g.tell(ctx, patch, grade)
}

func (g *grading) workPatch(ctx context.Context, session sandbox.Session) ([]byte, error) {
	var err error
	if g.base, err = g.pull(ctx, g.session, "base"); err != nil {
		return nil, err
	}
	return g.patchOf(ctx, session)
}

// searchPath gives the PATH of a sandbox: the task's, the image's, or the usual one.
func searchPath(image []string, task map[string]string) string {
	if p := task["PATH"]; p != "" {
		return p
	}
	for _, line := range image {
		if p, ok := strings.CutPrefix(line, "PATH="); ok {
			return p
		}
	}
	return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
}

func randomName() string {
	var token [8]byte
	_, _ = rand.Read(token[:]) // never fails
	return hex.EncodeToString(token[:])
}
