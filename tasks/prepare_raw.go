package tasks

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"proctor/sandbox"
)

// Builder is what an engine has that can build from a Dockerfile.
type Builder interface {
	// BuildImage builds the Dockerfile (a path in the context) and keeps the image under ref. The
	// error carries the end of the build's output.
	BuildImage(ctx context.Context, context io.Reader, dockerfile, ref string, env map[string]string) (sandbox.Image, error)
}

// Time limits of the lines of a build, each.
const lineTimeout = 30 * time.Minute

// raw gives the image that a task names, or makes it.
func (p *Preparer) raw(ctx context.Context, task *Task) (sandbox.Image, error) {
	base, err := p.start(ctx, task)
	if err != nil || task.Build == nil && len(task.Setup) == 0 {
		return base, err
	}
	if task.Network.Setup == "allowlist" {
		return base, fmt.Errorf("%w: network.setup: allowlist is not kept during setup; write open or none", ErrSetup)
	}
	key, err := rawKey(base, task)
	if err != nil {
		return base, err
	}
	unlock, err := p.lock(ctx, "raw-"+key)
	if err != nil {
		return base, err
	}
	defer unlock()
	img, err := p.Engine.Image(ctx, rawRef(key))
	if !errors.Is(err, sandbox.ErrNoImage) {
		return img, err
	}
	return p.buildRaw(ctx, task, base, key)
}

// start gives the image that building or setup starts from; the zero Image for a Dockerfile.
func (p *Preparer) start(ctx context.Context, task *Task) (sandbox.Image, error) {
	switch {
	case task.Build == nil:
		return p.Engine.Image(ctx, task.Image)
	case task.Build.Dockerfile != "":
		return sandbox.Image{}, nil
	}
	return p.Engine.Image(ctx, task.Build.Base)
}

func (p *Preparer) buildRaw(ctx context.Context, task *Task, base sandbox.Image, key string) (sandbox.Image, error) {
	p.log().Info("building image", "task", task.ID, "image", rawRef(key))
	if b := task.Build; b != nil && b.Dockerfile != "" {
		img, err := p.dockerfile(ctx, task, key)
		if err != nil || len(task.Setup) == 0 {
			return img, err
		}
		base = img
	}
	network := "open"
	if task.Network.Setup == "none" {
		network = "none"
	}
	var img sandbox.Image
	err := p.withBox(ctx, task, base.Ref, network, func(box sandbox.Session) error {
		b := &builder{box: box, task: task, access: p.Build}
		if err := b.run(ctx); err != nil {
			return err
		}
		var err error
		img, err = p.Engine.Commit(ctx, box.ID(), rawRef(key))
		return err
	})
	return img, err
}

// dockerfile builds the task's Dockerfile. With setup lines to come it is kept under a name of its
// own, so that a crash between the two never passes for the whole.
func (p *Preparer) dockerfile(ctx context.Context, task *Task, key string) (sandbox.Image, error) {
	engine, ok := p.Engine.(Builder)
	if !ok {
		return sandbox.Image{}, fmt.Errorf("%w: build.dockerfile: the %s engine does not build Dockerfiles; write build: {base, run}", ErrSetup, p.Engine.Name())
	}
	ref := rawRef(key)
	if len(task.Setup) > 0 {
		ref += "-file"
	}
	read, write := io.Pipe()
	go func() { write.CloseWithError(tarBeside(write, task.Dir, ".", "")) }()
	img, err := engine.BuildImage(ctx, read, task.Build.Dockerfile, ref, p.Build.env())
	_ = read.CloseWithError(errors.New("the build stopped reading"))
	if err != nil {
		return img, fmt.Errorf("%w: build.dockerfile: %w", ErrSetup, err)
	}
	return img, nil
}

// builder runs a task's build and setup in a sandbox.
type builder struct {
	box    sandbox.Session
	task   *Task
	access BuildAccess
}

func (b *builder) run(ctx context.Context) error {
	done, err := b.access.lend(ctx, b.box)
	if err != nil {
		return err
	}
	if build := b.task.Build; build != nil && build.Dockerfile == "" {
		if err := b.build(ctx, build); err != nil {
			return err
		}
	}
	for i, line := range b.task.Setup {
		if err := b.line(ctx, fmt.Sprintf("setup[%d]", i), line); err != nil {
			return err
		}
	}
	return done(ctx)
}

func (b *builder) build(ctx context.Context, build *Build) error {
	if len(build.Apt) > 0 {
		line := "apt-get update -q && apt-get install -q -y --no-install-recommends " + quoteAll(build.Apt) + " && rm -rf /var/lib/apt/lists/*"
		if err := b.line(ctx, "build.apt", line); err != nil {
			return err
		}
	}
	if len(build.Pip) > 0 {
		if err := b.line(ctx, "build.pip", "python3 -m pip install --no-cache-dir "+quoteAll(build.Pip)); err != nil {
			return err
		}
	}
	if build.Bundle != "" {
		if err := b.bundle(ctx, build.Bundle); err != nil {
			return err
		}
	}
	if build.Files != "" {
		if err := b.push(ctx, build.Files); err != nil {
			return err
		}
	}
	for i, line := range build.Run {
		if err := b.line(ctx, fmt.Sprintf("build.run[%d]", i), line); err != nil {
			return err
		}
	}
	return nil
}

// line runs a shell line in the workdir as root. What it prints is told only where it fails.
func (b *builder) line(ctx context.Context, field, line string) error {
	res, err := b.box.Exec(ctx, sandbox.Exec{Argv: []string{"/bin/sh", "-c", line}, Dir: b.task.Workdir, User: "root", Env: b.access.lines(), Timeout: lineTimeout, Limit: 1 << 20})
	if err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	switch {
	case res.TimedOut:
		return fmt.Errorf("%w: %s: no end after %s: %.200s", ErrSetup, field, lineTimeout, line)
	case res.Exit == nil || *res.Exit != 0:
		return fmt.Errorf("%w: %s: exit %s: %.200s\n%s", ErrSetup, field, exitWord(res.Exit), line, tail(res.Stdout, res.Stderr))
	}
	return nil
}

func exitWord(exit *int) string {
	if exit == nil {
		return "unknown"
	}
	return fmt.Sprint(*exit)
}

// tail gives the end of what a line printed.
func tail(stdout, stderr []byte) string {
	text := strings.ToValidUTF8(strings.TrimSpace(string(stdout)+"\n"+string(stderr)), "?")
	if len(text) > 2000 {
		text = "..." + strings.ToValidUTF8(text[len(text)-2000:], "")
	}
	return text
}

// quoteAll quotes words for a shell.
func quoteAll(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return strings.Join(quoted, " ")
}

// bundleDir is where a bundle lies while it is cloned.
const bundleDir = "/tmp/.bundle"

// bundle clones a git bundle to the workdir: all its branches and tags, and no remote.
func (b *builder) bundle(ctx context.Context, name string) error {
	if err := b.line(ctx, "build.bundle", "mkdir -p "+bundleDir); err != nil {
		return err
	}
	if err := b.pushTo(ctx, bundleDir, name, "bundle"); err != nil {
		return err
	}
	return b.line(ctx, "build.bundle", strings.Join([]string{
		"git clone -q " + bundleDir + "/bundle .",
		"git fetch -q -f origin 'refs/tags/*:refs/tags/*'",
		"for r in $(git for-each-ref --format='%(refname:lstrip=3)' refs/remotes/origin); do [ \"$r\" = HEAD ] || git show-ref -q --verify \"refs/heads/$r\" || git branch -q --no-track \"$r\" \"refs/remotes/origin/$r\"; done",
		"git remote remove origin", "rm -rf " + bundleDir}, " && "))
}

// push copies a folder of the task over the workdir.
func (b *builder) push(ctx context.Context, name string) error {
	return b.pushTo(ctx, b.task.Workdir, name, "")
}

func (b *builder) pushTo(ctx context.Context, dir, name, as string) error {
	read, write := io.Pipe()
	go func() { write.CloseWithError(tarBeside(write, b.task.Dir, name, as)) }()
	err := b.box.Push(ctx, dir, read)
	_ = read.CloseWithError(errors.New("the sandbox stopped reading"))
	if err != nil {
		return fmt.Errorf("copying %s to %s: %w", name, dir, err)
	}
	return nil
}

// tarBeside writes a folder's content, or one file under the name as, as a tar stream owned by root.
// Links are carried as links; nothing is read through one that leads out of the task's folder.
func tarBeside(out io.Writer, dir, name, as string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	w := tar.NewWriter(out)
	start := path.Clean(name)
	err = fs.WalkDir(root.FS(), start, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel := strings.TrimPrefix(strings.TrimPrefix(p, start), "/")
		if start == "." {
			rel = p
		}
		if p == start {
			if d.IsDir() {
				return nil
			}
			rel = as
		}
		return tarEntry(w, root, p, rel, d)
	})
	if err != nil {
		return err
	}
	return w.Close()
}

func tarEntry(w *tar.Writer, root *os.Root, p, rel string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	link := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		if link, err = root.Readlink(p); err != nil {
			return err
		}
	}
	h, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	h.Name, h.Uid, h.Gid, h.Uname, h.Gname, h.Format = rel, 0, 0, "", "", tar.FormatPAX
	if info.IsDir() {
		h.Name += "/"
	}
	if err := w.WriteHeader(h); err != nil || !info.Mode().IsRegular() {
		return err
	}
	f, err := root.Open(p)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	_, err = io.Copy(w, f)
	return err
}

func oneFile(name string, data []byte) io.Reader {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	_ = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(data))}) // into memory: cannot fail
	_, _ = w.Write(data)
	_ = w.Close()
	return &b
}
