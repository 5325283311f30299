package tasks

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	// BuildImage builds a Dockerfile and keeps the image under its Ref. Errors: sandbox.ErrBuild where
	// the Dockerfile is at fault, with the step and the end of its output; the engine's own.
	BuildImage(ctx context.Context, build sandbox.ImageBuild) (sandbox.Image, error)
}

// Time limits of the lines of a build, each.
const lineTimeout = 30 * time.Minute

// raw gives the image that a task names, or makes it.
func (p *Preparer) raw(ctx context.Context, task *Task) (sandbox.Image, error) {
	if task.Build == nil && len(task.Setup) == 0 {
		return p.Engine.Image(ctx, task.Image)
	}
	if task.Network.Setup == allowlist && p.Egress == nil {
		return sandbox.Image{}, fmt.Errorf("%w: network.setup: allowlist needs an egress proxy, which this command does not open; write open or none", ErrSetup)
	}
	start, err := p.start(ctx, task)
	if err != nil {
		return start, err
	}
	return p.stages(ctx, task, start)
}

// start gives the image that stages start from.
func (p *Preparer) start(ctx context.Context, task *Task) (sandbox.Image, error) {
	switch {
	case task.Build == nil:
		return p.Engine.Image(ctx, task.Image)
	case task.Build.Dockerfile != "":
		if task.Network.Setup == allowlist {
			return sandbox.Image{}, fmt.Errorf("%w: network.setup: allowlist is not kept while the engine builds a Dockerfile; write open or none, or build from `build: {base, apt, pip, run}`", ErrSetup)
		}
		return p.dockerfile(ctx, task)
	}
	return p.Engine.Image(ctx, task.Build.Base)
}

// dockerfile builds the task's Dockerfile, or finds what an earlier build of the same files made.
func (p *Preparer) dockerfile(ctx context.Context, task *Task) (sandbox.Image, error) {
	engine, ok := p.Engine.(Builder)
	if !ok {
		return sandbox.Image{}, fmt.Errorf("%w: build.dockerfile: the %s engine does not build Dockerfiles; write build: {base, run}", ErrSetup, p.Engine.Name())
	}
	file := path.Clean(task.Build.Dockerfile)
	h := sha256.New()
	fmt.Fprintln(h, hashOf("dockerfile", buildVersion, path.Base(file), task.Network.Setup))
	read, write := io.Pipe()
	go func() { write.CloseWithError(tarContext(write, task, path.Dir(file))) }()
	if err := hashContext(h, read); err != nil {
		return sandbox.Image{}, fmt.Errorf("%w: build.dockerfile: %w", ErrSetup, err)
	}
	key := hex.EncodeToString(h.Sum(nil))
	unlock, err := p.lock(ctx, "built-"+key)
	if err != nil {
		return sandbox.Image{}, err
	}
	defer unlock()
	img, err := p.Engine.Image(ctx, builtRef(key))
	if !errors.Is(err, sandbox.ErrNoImage) {
		return img, err
	}
	p.log().Info("building image", "task", task.ID, "stage", "build.dockerfile", "image", builtRef(key))
	read, write = io.Pipe()
	go func() { write.CloseWithError(tarContext(write, task, path.Dir(file))) }()
	img, err = engine.BuildImage(ctx, sandbox.ImageBuild{Context: read, Dockerfile: path.Base(file), Ref: builtRef(key), NoNetwork: task.Network.Setup == "none",
		Env: p.Build.Env, CA: p.Build.CA, Progress: func(step string) {
			if p.Progress != nil {
				p.Progress(task.ID, step)
			}
		}})
	_ = read.CloseWithError(errors.New("the build stopped reading"))
	if errors.Is(err, sandbox.ErrBuild) {
		return img, fmt.Errorf("%w: build.dockerfile: %w", ErrSetup, err)
	}
	return img, err
}

// hashContext writes what a context holds to h: not its times, which a fresh checkout has others of.
func hashContext(h io.Writer, context io.Reader) error {
	for in := tar.NewReader(context); ; {
		e, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%q %o %d %q %d\n", e.Name, e.Mode, e.Typeflag, e.Linkname, e.Size)
		if _, err := io.Copy(h, in); err != nil {
			return err
		}
	}
}

// builder runs a task's build and setup in a sandbox.
type builder struct {
	box    sandbox.Session
	task   *Task
	access BuildAccess
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
	return tarSome(out, dir, name, as, func(string) bool { return true })
}

// tarSome is tarBeside without the names that keep refuses, and what lies below them.
func tarSome(out io.Writer, dir, name, as string, keep func(name string) bool) error {
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
		if !keep(p) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
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
	h.AccessTime, h.ChangeTime = time.Time{}, time.Time{} // they change when nothing does
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
