package tasks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"proctor/sandbox"
	"proctor/tasks/harden"
)

// ErrSetup says that a task's own build or setup lines failed: the task is at fault, not the machine.
var ErrSetup = errors.New("task setup failed")

// ErrNotClean says that an image or a sandbox holds what hardening takes out. It is never overridden.
var ErrNotClean = harden.ErrLeak

// Leak is one thing in a raw image that would have given the answer away.
type Leak = harden.Leak

// Preparer makes the images that rollouts start from, and keeps them: the image with the engine,
// and what the host has to know of it in a folder of Dir, both under a name that follows from all
// that goes in. Safe for concurrent use, by several processes too: an image is made once, and the
// others wait. A crash leaves nothing that a later call takes for a result.
type Preparer struct {
	Engine sandbox.Engine
	Dir    string       // the host's cache; made if it is not there
	Logger *slog.Logger // nil: silent
	Build  BuildAccess  // what build and setup lines may use of the host's network settings
	Egress Egress       // carries the connections of setup: allowlist; nil refuses it
	// Progress, where set, is told the step that a build is at; from several goroutines.
	Progress func(task, step string)

	mu    sync.Mutex
	locks map[string]chan struct{}
	kept  map[string]*record // what was read from Dir, by key
}

// Prepared is the image that a task's rollouts start from, and what the host knows of it. It is not
// changed after it was made, and safe for concurrent use.
type Prepared struct {
	Task     *Task
	Key      string        // names the result in the Preparer's cache; for Open
	Image    sandbox.Image // start rollouts from this
	Raw      sandbox.Image // built and set up, but not hardened
	Hardened bool
	Base     string // the start commit of the repository at the workdir; "" where there is none
	Leaks    []Leak // what gave, or without hardening gives, the answer away

	record *record
}

// Prepare gives the image of a task, from the cache where it is there: that takes milliseconds. With
// hardening it fails closed: ErrNotClean, or the reason why something could not be read. Without, the
// image is the raw one, untouched, and the leaks are told. Errors wrap ErrSetup where the task's own
// lines failed, and the engine's sentinels.
func (p *Preparer) Prepare(ctx context.Context, task *Task, hardening bool) (*Prepared, error) {
	prepared, err := p.prepare(ctx, task, hardening)
	if err != nil {
		return nil, fmt.Errorf("preparing task %s: %w", task.ID, err)
	}
	return prepared, nil
}

func (p *Preparer) prepare(ctx context.Context, task *Task, hardening bool) (*Prepared, error) {
	raw, err := p.raw(ctx, task)
	if err != nil {
		return nil, err
	}
	key := hardenKey(raw, task, hardening)
	unlock, err := p.lock(ctx, key)
	if err != nil {
		return nil, err
	}
	defer unlock()
	rec, err := p.lookup(ctx, task, key)
	if err != nil {
		return nil, err
	}
	if rec == nil {
		if rec, err = p.make(ctx, task, raw, key, hardening); err != nil {
			return nil, err
		}
	}
	return rec.prepared(task, key), nil
}

// Open gives what an earlier Prepare gave, by its key, without a look at the task's sources: for a
// rollout that outlived its server. fs.ErrNotExist where the cache does not have it.
func (p *Preparer) Open(_ context.Context, task *Task, key string) (*Prepared, error) {
	rec, err := p.read(key)
	if err != nil {
		return nil, fmt.Errorf("prepared image of task %s: %w", task.ID, err)
	}
	return rec.prepared(task, key), nil
}

func (r *record) prepared(task *Task, key string) *Prepared {
	out := &Prepared{Task: task, Key: key, Image: r.Image, Raw: r.Raw, Hardened: r.Hardened, Leaks: r.Leaks, record: r}
	if main := r.main(); main != nil {
		out.Base = main.Base
	}
	return out
}

// Verify proves cheaply that a fresh sandbox of the image is what was audited, before the agent gets
// it. It fails closed; errors wrap ErrNotClean where something differs. Without hardening there is
// nothing to prove.
func (pr *Prepared) Verify(ctx context.Context, sess sandbox.Session) error {
	if !pr.Hardened {
		return nil
	}
	if err := pr.record.Manifest.Verify(ctx, sess); err != nil {
		return fmt.Errorf("sandbox of task %s: %w", pr.Task.ID, err)
	}
	return nil
}

// make hardens the raw image, or only looks at it, and keeps the result.
func (p *Preparer) make(ctx context.Context, task *Task, raw sandbox.Image, key string, hardening bool) (*record, error) {
	started := time.Now()
	p.sweep()
	scratch, err := os.MkdirTemp(p.Dir, "scratch-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	rec := &record{Hardened: hardening, Image: raw, Raw: raw}
	if hardening {
		err = p.hardenImage(ctx, task, rec, key, scratch)
	} else {
		err = p.withBox(ctx, task, raw.Ref, "none", func(box sandbox.Session) error {
			found, err := harden.Look(ctx, box, aboutOf(task), scratch)
			rec.take(found)
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	if err := p.keep(key, rec); err != nil {
		return nil, err
	}
	p.log().Info("prepared image", "task", task.ID, "image", rec.Image.Ref, "hardened", hardening, "leaks", len(rec.Leaks), "took", time.Since(started))
	return rec, nil
}

func (p *Preparer) hardenImage(ctx context.Context, task *Task, rec *record, key, scratch string) error {
	err := p.withBox(ctx, task, rec.Raw.Ref, "none", func(box sandbox.Session) error {
		found, err := harden.Run(ctx, box, aboutOf(task), scratch)
		if err != nil {
			return err
		}
		rec.take(found)
		rec.Image, err = p.Engine.Commit(ctx, box.ID(), preparedRef(key))
		return err
	})
	if err != nil {
		return err
	}
	return p.audit(ctx, task, rec)
}

// audit proves that the record's image is clean, on a sandbox of the image itself and not on the one
// that was hardened, and takes the manifest.
func (p *Preparer) audit(ctx context.Context, task *Task, rec *record) error {
	scratch, err := os.MkdirTemp(p.Dir, "scratch-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	return p.withBox(ctx, task, rec.Image.Ref, "none", func(box sandbox.Session) error {
		manifest, err := harden.Audit(ctx, box, aboutOf(task), rec.Repos, rec.Gone, scratch)
		if err != nil {
			return err
		}
		rec.Manifest = manifest
		rec.renameGit()
		return nil
	})
}

// leftoverAge is when a folder that a crash left in Dir is taken for one: no preparation runs so long.
const leftoverAge = 24 * time.Hour

// sweep removes what crashes left in Dir.
func (p *Preparer) sweep() {
	for _, pattern := range []string{"scratch-*", "new-*"} {
		found, _ := filepath.Glob(filepath.Join(p.Dir, pattern)) // fails for a broken pattern only
		for _, dir := range found {
			if info, err := os.Stat(dir); err == nil && time.Since(info.ModTime()) > leftoverAge {
				_ = os.RemoveAll(dir)
			}
		}
	}
}

func aboutOf(task *Task) harden.Task {
	return harden.Task{Workdir: task.Workdir, Hidden: task.HiddenPaths, Solved: solvedFiles(task), Squash: task.Squash,
		Package: task.Vars.Package, BaseVersion: task.Vars.BaseVersion, FixVersion: task.Vars.FixVersion, Fix: solutionPatch(task)}
}

// withBox runs use in a sandbox of image, and removes it whatever happens.
func (p *Preparer) withBox(ctx context.Context, task *Task, image, network string, use func(sandbox.Session) error) (err error) {
	box, err := p.Engine.Create(ctx, prepareSpec(task, image, network))
	if err != nil {
		return err
	}
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		err = errors.Join(err, box.Close(clean))
	}()
	return use(box)
}

// Limits of a sandbox that builds, at least: compilers and package managers need more than an agent.
const (
	buildMemoryMB = 4096
	buildPids     = 2048
	buildLifetime = 3 * time.Hour
)

func prepareSpec(task *Task, image, network string) sandbox.Spec {
	limits := task.Limits.WithDefaults()
	limits.MemoryMB = max(limits.MemoryMB, buildMemoryMB)
	limits.Pids = max(limits.Pids, buildPids)
	limits.Lifetime = buildLifetime
	return sandbox.Spec{Name: "prepare-" + task.ID, Image: image, Workdir: task.Workdir, User: "root", Env: task.Env,
		Limits: limits, Network: sandbox.Network{Mode: network}}
}

func (p *Preparer) log() *slog.Logger {
	if p.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return p.Logger
}
