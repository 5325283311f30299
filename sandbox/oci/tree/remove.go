package tree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// maxDepth is how deep Remove goes by itself. Whoever made the tree may have nested folders a million deep, and
// each level holds a descriptor: what is deeper is first moved up.
const maxDepth = 64

// Remove removes the folder at path of the host and all in it, following no link. Nobody else may be writing to it.
// One that is not there is fine.
func Remove(path string) error {
	dir, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return &fs.PathError{Op: "remove", Path: path, Err: err}
	}
	defer unix.Close(dir)
	if err := removeAt(dir, filepath.Base(path)); err != nil {
		return &fs.PathError{Op: "remove", Path: path, Err: err}
	}
	return nil
}

// removeAt removes a name in a folder and all below it.
func removeAt(dir int, base string) error {
	err := unix.Unlinkat(dir, base, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) {
		return err
	}
	top, err := openFolder(dir, base)
	if err != nil {
		return err
	}
	defer top.Close()
	r := &remover{top: int(top.Fd())}
	return r.folder(dir, base, top, 0)
}

// remover empties a tree.
type remover struct {
	top  int
	next int
}

// empty removes all in a folder, or moves it up.
func (r *remover) empty(dir *os.File, depth int) error {
	fd := int(dir.Fd())
	for {
		names, err := dir.Readdirnames(512)
		for _, name := range names {
			if err := r.remove(fd, name, depth); err != nil {
				return err
			}
		}
		if len(names) == 0 || err != nil {
			break
		}
	}
	return nil
}

// remove removes one name.
func (r *remover) remove(fd int, name string, depth int) error {
	err := unix.Unlinkat(fd, name, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) {
		return err
	}
	if depth >= maxDepth {
		return r.moveUp(fd, name)
	}
	sub, err := openFolder(fd, name)
	if err != nil {
		return err
	}
	defer sub.Close()
	return r.folder(fd, name, sub, depth+1)
}

// folder removes an open folder, by its name in its parent. While names go, or come at the top, a listing may leave
// some out: then it looks again.
func (r *remover) folder(parent int, name string, open *os.File, depth int) error {
	for {
		if err := r.empty(open, depth); err != nil {
			return err
		}
		err := unix.Unlinkat(parent, name, unix.AT_REMOVEDIR)
		if !errors.Is(err, unix.ENOTEMPTY) {
			return err
		}
		if _, err := open.Seek(0, 0); err != nil {
			return err
		}
	}
}

// moveUp moves a folder to the top, under a name that is free.
func (r *remover) moveUp(fd int, name string) error {
	for {
		r.next++
		err := unix.Renameat2(fd, name, r.top, ".deep-"+strconv.Itoa(r.next), unix.RENAME_NOREPLACE)
		if errors.Is(err, unix.EEXIST) {
			continue
		}
		return err
	}
}

// openFolder opens a folder for listing, following no link.
func openFolder(dir int, base string) (*os.File, error) {
	fd, err := unix.Openat(dir, base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), base), nil
}
