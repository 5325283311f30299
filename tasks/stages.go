package tasks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"proctor/sandbox"
	"proctor/sandbox/egress"
)

// A build goes in stages, each an image of its own that the next starts from. A stage's key follows
// from the image before it and from its own lines and files, so that two tasks which begin alike share
// what they begin with: ten tasks of one project make its environment once, and a change of the last
// line builds the last stage alone. Stages are kept under "proctor/built:<key>".
//
//	apt     packages of the distribution
//	venv    a Python environment
//	pip     lines before, and packages of PyPI
//	source  the bundle and the files
//	run     the build's last lines, and setup

// buildVersion is part of every stage's key: raise it when stages of the same lines come out otherwise.
const buildVersion = 1

// stage is one step of a build.
type stage struct {
	name  string
	text  string   // all that its outcome follows from, beside the image before it and the files
	files []string // of the task's folder, by name; hashed by content
	needs bool     // it needs the task's own workdir: stages before it are shared by tasks that differ there
	do    func(ctx context.Context, b *builder) error
}

// stagesOf gives the steps of a task's build and setup. A Dockerfile is no stage: see dockerfile.
func stagesOf(task *Task) []stage {
	var list []stage
	if b := task.Build; b != nil && b.Dockerfile == "" {
		list = append(list, environmentStages(b)...)
		if b.Bundle != "" || b.Files != "" {
			list = append(list, stage{name: "source", text: hashOf(b.Bundle != "", b.Files != ""), files: []string{b.Bundle, b.Files}, needs: true,
				do: func(ctx context.Context, x *builder) error { return x.source(ctx, b) }})
		}
		if len(b.Run) > 0 {
			list = append(list, linesStage("build.run", b.Run))
		}
	}
	if len(task.Setup) > 0 {
		list = append(list, linesStage("setup", task.Setup))
	}
	return list
}

func environmentStages(b *Build) []stage {
	var list []stage
	if len(b.Apt) > 0 {
		line := "apt-get update -q && apt-get install -q -y --no-install-recommends " + quoteAll(b.Apt) + " && apt-get clean && rm -rf /var/lib/apt/lists/*"
		list = append(list, stage{name: "build.apt", text: line, do: func(ctx context.Context, x *builder) error { return x.line(ctx, "build.apt", line) }})
	}
	if b.Venv != "" {
		line := "python3 -m venv " + quoteAll([]string{b.Venv})
		list = append(list, stage{name: "build.venv", text: line, do: func(ctx context.Context, x *builder) error { return x.line(ctx, "build.venv", line) }})
	}
	if len(b.Pre)+len(b.Pip) > 0 {
		list = append(list, stage{name: "build.pip", text: hashOf(b.Venv, b.Pre, b.Pip), do: func(ctx context.Context, x *builder) error {
			for i, line := range b.Pre {
				if err := x.line(ctx, fmt.Sprintf("build.pre[%d]", i), line); err != nil {
					return err
				}
			}
			if len(b.Pip) == 0 {
				return nil
			}
			return x.line(ctx, "build.pip", b.python()+" -m pip install --no-cache-dir "+quoteAll(b.Pip))
		}})
	}
	return list
}

// python gives the interpreter that packages go to.
func (b *Build) python() string {
	if b.Venv != "" {
		return path.Join(b.Venv, "bin/python")
	}
	return "python3"
}

func linesStage(field string, lines []string) stage {
	return stage{name: field, text: hashOf(lines), needs: true, do: func(ctx context.Context, x *builder) error {
		for i, line := range lines {
			if err := x.line(ctx, fmt.Sprintf("%s[%d]", field, i), line); err != nil {
				return err
			}
		}
		return nil
	}}
}

// key names a stage's image.
func (s stage) key(before sandbox.Image, task *Task) (string, error) {
	workdir := ""
	if s.needs {
		workdir = task.Workdir
	}
	h := sha256.New()
	fmt.Fprintln(h, hashOf("stage", buildVersion, before.Digest, s.name, s.text, workdir, task.Env, task.Network.Setup))
	if policy, listed := task.SetupReach(); listed {
		fmt.Fprintln(h, hashOf(policy))
	}
	if err := hashBeside(h, task.Dir, s.files); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// builtRef is the reference under which a stage is kept with the engine.
func builtRef(key string) string { return "proctor/built:" + key[:32] }

// stages runs the stages that are not there yet, one after another, and gives the last one's image.
func (p *Preparer) stages(ctx context.Context, task *Task, img sandbox.Image) (sandbox.Image, error) {
	for _, s := range stagesOf(task) {
		key, err := s.key(img, task)
		if err != nil {
			return img, fmt.Errorf("%w: %s: %w", ErrSetup, s.name, err)
		}
		if img, err = p.stage(ctx, task, img, s, key); err != nil {
			return img, err
		}
	}
	return img, nil
}

func (p *Preparer) stage(ctx context.Context, task *Task, before sandbox.Image, s stage, key string) (sandbox.Image, error) {
	unlock, err := p.lock(ctx, "built-"+key)
	if err != nil {
		return before, err
	}
	defer unlock()
	img, err := p.Engine.Image(ctx, builtRef(key))
	if !errors.Is(err, sandbox.ErrNoImage) {
		return img, err
	}
	p.log().Info("building image", "task", task.ID, "stage", s.name, "image", builtRef(key))
	if p.Progress != nil {
		p.Progress(task.ID, s.name)
	}
	network := "open"
	if task.Network.Setup != "open" && task.Network.Setup != "" {
		network = "none" // an allowlist goes through a relay
	}
	spec := *task
	if !s.needs {
		spec.Workdir = "/"
	}
	err = p.withBox(ctx, &spec, before.Ref, network, func(box sandbox.Session) error {
		b := &builder{box: box, task: &spec, access: p.Build}
		if err := p.relay(ctx, b); err != nil {
			return err
		}
		done, err := b.access.lend(ctx, box)
		if err != nil {
			return err
		}
		if err := s.do(ctx, b); err != nil {
			return err
		}
		if err := done(ctx); err != nil {
			return err
		}
		img, err = p.Engine.Commit(ctx, box.ID(), builtRef(key))
		return err
	})
	return img, err
}

// relay lets the sandbox of build lines reach what an allowlist names. The host's own proxy and index are
// not lent then: they lie outside it.
func (p *Preparer) relay(ctx context.Context, b *builder) error {
	policy, listed := b.task.SetupReach()
	if !listed {
		return nil
	}
	b.access.Env = nil
	if policy.Index != nil && p.Egress != nil {
		b.access.Env = p.Egress.IndexEnv()
	}
	record := func(e egress.Event) { p.log().Info("network", "task", b.task.ID, "event", e) }
	if err := OpenRelay(ctx, b.box, p.Egress, egress.Client{Name: "prepare-" + b.task.ID, Policy: policy, Record: record}); err != nil {
		return fmt.Errorf("network.setup: allowlist: %w", err)
	}
	return nil
}

// source puts the bundle and the files into the workdir.
func (b *builder) source(ctx context.Context, build *Build) error {
	if build.Bundle != "" {
		if err := b.bundle(ctx, build.Bundle); err != nil {
			return err
		}
	}
	if build.Files != "" {
		return b.push(ctx, build.Files)
	}
	return nil
}

// tarContext writes a Dockerfile's folder without what only the grader may see.
func tarContext(out io.Writer, task *Task, dir string) error {
	keep := func(name string) bool {
		for _, hidden := range task.graderOnly() {
			if name == hidden || strings.HasPrefix(name, hidden+"/") {
				return false
			}
		}
		return true
	}
	return tarSome(out, task.Dir, dir, "", keep)
}

// graderOnly names the files and folders of the task's folder that no image may hold.
func (t *Task) graderOnly() []string {
	names := []string{TaskFile}
	if t.Solution != "" {
		names = append(names, path.Clean(t.Solution))
	}
	if g := t.Grader; g != nil {
		for _, n := range []string{g.Files, g.TestPatch, g.Script} {
			if n != "" {
				names = append(names, path.Clean(n))
			}
		}
	}
	return names
}
