package sets

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"proctor/tasks"
)

// version is part of every folder's name: raise it when loaders make other tasks of the same rows.
const version = "1"

// write puts a draft into a folder below dir whose name follows from its content, and gives the
// folder. One that is there is taken as it is.
func (d *draft) write(dir string) (string, error) {
	text, err := yaml.Marshal(&d.task)
	if err != nil {
		return "", err
	}
	name, err := d.digest(text)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(dir, name)
	if isFile(filepath.Join(folder, tasks.TaskFile)) {
		return folder, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	tmp, err := os.MkdirTemp(dir, "new-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	if err := d.writeTo(tmp, text); err != nil {
		return "", err
	}
	if err := os.Rename(tmp, folder); err != nil && !isFile(filepath.Join(folder, tasks.TaskFile)) { // another was quicker
		return "", err
	}
	return folder, nil
}

func (d *draft) digest(text []byte) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%d\n%s", version, len(text), text)
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		fmt.Fprintf(h, "\n%s %d\n%s", name, len(d.files[name]), d.files[name])
	}
	for _, name := range slices.Sorted(maps.Keys(d.links)) {
		info, err := os.Stat(d.links[name])
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "\n%s %s %d %d", name, d.links[name], info.Size(), info.ModTime().UnixNano())
	}
	return hex.EncodeToString(h.Sum(nil))[:32], nil
}

func (d *draft) writeTo(folder string, text []byte) error {
	for name, content := range d.files {
		if err := writeFile(filepath.Join(folder, filepath.FromSlash(name)), content); err != nil {
			return err
		}
	}
	for name, from := range d.links {
		if err := linkOrCopy(from, filepath.Join(folder, filepath.FromSlash(name))); err != nil {
			return err
		}
	}
	return writeFile(filepath.Join(folder, tasks.TaskFile), text)
}

func writeFile(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	return os.WriteFile(name, content, 0o600)
}

// linkOrCopy saves the disk a copy of a large file where both lie on one file system.
func linkOrCopy(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(from)
	if err != nil {
		return err
	}
	if os.Link(real, to) == nil {
		return nil
	}
	in, err := os.Open(real)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// rowField gives the row's name of a task's field: the longest origin that it starts with.
func (d *draft) rowField(field string) string {
	best, length := field, 0
	for from, to := range d.origin {
		rest, ok := strings.CutPrefix(field, from)
		if ok && len(from) > length && (rest == "" || rest[0] == '[' || rest[0] == '.') {
			best, length = to+rest, len(from)
		}
	}
	return best
}
