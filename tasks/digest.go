package tasks

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
)

// Digest pins what a task is: every field and every file that it names, by content. Two tasks of
// one digest are prepared and graded alike. It reads the files anew each time.
func (t *Task) Digest() (string, error) {
	h := sha256.New()
	if err := json.NewEncoder(h).Encode(t); err != nil {
		return "", fmt.Errorf("digest of task %s: %w", t.ID, err)
	}
	names := []string{t.Solution}
	if t.Grader != nil {
		names = append(names, t.Grader.Files, t.Grader.TestPatch, t.Grader.Script)
	}
	if t.Build != nil {
		names = append(names, t.Build.inputs()...)
	}
	if err := hashBeside(h, t.Dir, names); err != nil {
		return "", fmt.Errorf("digest of task %s: %w", t.ID, err)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

// inputs names what a build reads from the task's folder. A Dockerfile can copy any of it.
func (b *Build) inputs() []string {
	if b.Dockerfile != "" {
		return []string{path.Dir(path.Clean(b.Dockerfile))}
	}
	return []string{b.Files, b.Bundle}
}

// hashBeside writes names, modes and contents of files and folders below dir to h, in order.
func hashBeside(h io.Writer, dir string, names []string) error {
	root, err := os.OpenRoot(dir)
	if dir == "" || err != nil {
		for _, n := range names {
			if n != "" {
				return fmt.Errorf("%s: the task has no folder", n)
			}
		}
		return nil
	}
	defer func() { _ = root.Close() }()
	for _, name := range names {
		if name == "" {
			continue
		}
		err := fs.WalkDir(root.FS(), path.Clean(name), func(p string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return hashEntry(h, root, p, d)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func hashEntry(h io.Writer, root *os.Root, p string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(h, "%q %o %d\n", p, info.Mode()&(fs.ModeType|0o777), info.Size()*btoi(info.Mode().IsRegular())); err != nil {
		return err
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := root.Readlink(p)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(h, "%q\n", target)
		return err
	case info.Mode().IsRegular():
		f, err := root.Open(p)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		_, err = io.Copy(h, f)
		return err
	}
	return nil
}

func btoi(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
