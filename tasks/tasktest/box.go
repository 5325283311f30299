package tasktest

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"proctor/sandbox"
)

// Box is a sandbox that is a folder: Root stands for "/".
type Box struct {
	Root   string
	Spec   sandbox.Spec
	id     string
	engine *Engine
}

// NewBox gives a sandbox over a folder that is already there, without an engine.
func NewBox(root string) *Box { return &Box{Root: root, id: "box"} }

// host gives the host's path of a path in the sandbox, its links resolved inside the sandbox.
func (b *Box) host(p string) string { return filepath.Join(b.Root, b.real(p)) }

// real resolves links as the sandbox would see them; names that are not there stay as they are.
func (b *Box) real(p string) string {
	done, rest := "/", strings.Trim(path.Clean("/"+p), "/")
	for hops := 0; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		next := path.Join(done, name)
		target, err := os.Readlink(filepath.Join(b.Root, next))
		if err != nil || hops > 40 {
			done = next
			continue
		}
		hops++
		if path.IsAbs(target) {
			done = "/"
		}
		rest = strings.Trim(path.Join(strings.Trim(target, "/"), rest), "/")
		for strings.HasPrefix(rest, "../") || rest == ".." {
			done, rest = path.Dir(done), strings.TrimPrefix(strings.TrimPrefix(rest, ".."), "/")
		}
	}
	return done
}

// ID is the engine's id.
func (b *Box) ID() string { return b.id }

// Do is not supported.
func (b *Box) Do(context.Context, sandbox.Call) (sandbox.Result, error) {
	return sandbox.Result{}, errUnsupported
}

// State knows no calls.
func (b *Box) State(context.Context, string) (sandbox.CallState, error) {
	return sandbox.CallUnknown, nil
}

// Exec runs a program of the host in the folder. Absolute paths among the arguments are taken for
// the sandbox's, but those of a shell's script are not: use relative ones.
func (b *Box) Exec(ctx context.Context, e sandbox.Exec) (sandbox.ExecResult, error) {
	argv := append([]string{}, e.Argv...)
	for i := 1; i < len(argv); i++ {
		if strings.HasPrefix(argv[i], "/") {
			argv[i] = filepath.Join(b.Root, argv[i])
		}
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	dir := e.Dir
	if dir == "" {
		dir = b.Spec.Workdir
	}
	cmd.Dir = b.host(dir)
	cmd.Env = append(os.Environ(), e.Env...)
	cmd.Stdin = bytes.NewReader(e.Stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return sandbox.ExecResult{}, fmt.Errorf("%w: %w", sandbox.ErrStart, err)
	}
	code := cmd.ProcessState.ExitCode()
	out := bytes.ReplaceAll(stdout.Bytes(), []byte(b.Root+"/"), []byte("/"))
	return sandbox.ExecResult{Stdout: out, Stderr: stderr.Bytes(), Exit: &code}, nil
}

// ReadFile reads a regular file.
func (b *Box) ReadFile(_ context.Context, p string, limit int64) ([]byte, error) {
	info, err := os.Stat(b.host(p))
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: p, Err: fs.ErrInvalid}
	}
	data, err := os.ReadFile(b.host(p))
	if int64(len(data)) > limit {
		data = data[:limit]
	}
	return data, err
}

// Stat describes what a path leads to.
func (b *Box) Stat(_ context.Context, p string) (sandbox.FileInfo, error) {
	info, err := os.Stat(b.host(p))
	if err != nil {
		return sandbox.FileInfo{}, err
	}
	out := sandbox.FileInfo{Path: p, Real: b.real(p), Mode: info.Mode(), Size: info.Size(), Time: info.ModTime()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		out.UID, out.GID = int(st.Uid), int(st.Gid)
	}
	return out, nil
}

// Pull gives a tar stream.
func (b *Box) Pull(_ context.Context, p string) (io.ReadCloser, error) {
	from := b.host(p)
	if _, err := os.Lstat(from); err != nil {
		return nil, err
	}
	read, write := io.Pipe()
	go func() { write.CloseWithError(tarTree(write, from, path.Base(p))) }()
	return read, nil
}

func tarTree(out io.Writer, from, base string) error {
	w := tar.NewWriter(out)
	err := filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		link := ""
		if info.Mode()&fs.ModeSymlink != 0 {
			if link, err = os.Readlink(p); err != nil {
				return err
			}
		}
		h, err := tar.FileInfoHeader(info, link)
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(from, p)
		h.Name = path.Join(base, rel)
		if err := w.WriteHeader(h); err != nil || !info.Mode().IsRegular() {
			return err
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	})
	if err != nil {
		return err
	}
	return w.Close()
}

// Push unpacks a tar stream of plain files and folders.
func (b *Box) Push(_ context.Context, dir string, stream io.Reader) error {
	if info, err := os.Stat(b.host(dir)); err != nil || !info.IsDir() {
		return fmt.Errorf("push: %s is no folder", dir)
	}
	in := tar.NewReader(stream)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		to := filepath.Join(b.host(dir), path.Clean("/"+h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(to, 0o755)
		} else {
			var data []byte
			if data, err = io.ReadAll(in); err == nil {
				err = os.WriteFile(to, data, fs.FileMode(h.Mode)&0o777)
			}
			if err == nil {
				err = os.Chtimes(to, h.ModTime, h.ModTime)
			}
		}
		if err != nil {
			return err
		}
	}
}

// Alive is always so.
func (b *Box) Alive(context.Context) error { return nil }

// Detach does nothing.
func (b *Box) Detach() error { return nil }

// Close removes the sandbox.
func (b *Box) Close(ctx context.Context) error {
	if b.engine == nil {
		return nil
	}
	return b.engine.Remove(ctx, b.id)
}
