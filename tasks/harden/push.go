package harden

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"proctor/sandbox"
)

// pushDir puts a folder of the host into a sandbox as the folder `to`, owned as told.
func pushDir(ctx context.Context, box Box, from, to string, uid, gid int) error {
	read, write := io.Pipe()
	go func() { write.CloseWithError(writeTar(write, from, path.Base(to), uid, gid)) }()
	err := box.Push(ctx, path.Dir(to), read)
	_ = read.CloseWithError(errors.New("the sandbox stopped reading"))
	return err
}

func writeTar(out io.Writer, from, base string, uid, gid int) error {
	w := tar.NewWriter(out)
	err := filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		h := &tar.Header{Name: path.Join(base, filepath.ToSlash(rel)), Uid: uid, Gid: gid, ModTime: info.ModTime(), Format: tar.FormatPAX}
		if d.IsDir() {
			h.Typeflag, h.Mode, h.Name = tar.TypeDir, 0o755, h.Name+"/"
			return w.WriteHeader(h)
		}
		h.Typeflag, h.Mode, h.Size = tar.TypeReg, 0o644, info.Size()
		if strings.HasSuffix(p, ".pack") || strings.HasSuffix(p, ".idx") {
			h.Mode = 0o444
		}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		return copyFile(w, p)
	})
	if err != nil {
		return err
	}
	return w.Close()
}

// remove deletes paths for good.
func (h *hardener) remove(ctx context.Context, paths ...string) error {
	if err := h.clear(ctx, paths...); err != nil {
		return err
	}
	for _, p := range paths {
		h.gone[p] = true
	}
	return nil
}

// clear deletes paths in the sandbox and makes sure that they are gone. It refuses those that would
// take the work tree along.
func (h *hardener) clear(ctx context.Context, paths ...string) error {
	for _, p := range paths {
		if p == "/" || within(h.task.Workdir, p) {
			return fmt.Errorf("%s cannot be removed: it holds the work tree", p)
		}
	}
	if len(paths) == 0 {
		return nil
	}
	for start := 0; start < len(paths); start += 200 {
		batch := paths[start:min(start+200, len(paths))]
		res, err := h.box.Exec(ctx, sandbox.Exec{Argv: append([]string{"rm", "-rf", "--"}, batch...), Dir: "/", User: "root"})
		if err != nil {
			return fmt.Errorf("removing %s: %w", batch[0], err)
		}
		if res.Exit == nil || *res.Exit != 0 {
			return fmt.Errorf("removing %s: rm failed: %.200s", batch[0], res.Stderr)
		}
		for _, p := range batch {
			if err := absent(ctx, h.box, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// absent fails unless the sandbox says that there is nothing at path.
func absent(ctx context.Context, box Box, path string) error {
	_, err := box.Stat(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = errors.New("is still there")
	}
	return fmt.Errorf("%s: %w", path, err)
}
