package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// Root is a folder that is the whole world to those who use it. Safe for concurrent use until Close.
type Root struct {
	fd int
}

// Open opens the folder at path of the host.
func Open(path string) (*Root, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return &Root{fd: fd}, nil
}

// Close lets go of the folder.
func (r *Root) Close() error { return unix.Close(r.fd) }

// inside are the ways of looking up that lead nowhere else.
const inside = unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS

// open looks path up inside, links followed unless flags say O_NOFOLLOW.
func (r *Root) open(name string, flags uint64) (int, error) {
	how := &unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: inside}
	for {
		fd, err := unix.Openat2(r.fd, "./"+strings.TrimPrefix(name, "/"), how)
		// EAGAIN: something was renamed meanwhile and the kernel could not tell whether it stayed inside.
		if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN) {
			if err != nil {
				return -1, &fs.PathError{Op: "open", Path: name, Err: err}
			}
			return fd, nil
		}
	}
}

// folder opens a folder inside for use as a parent; with make, what is missing of it is made, as root's with
// mode 0755.
func (r *Root) folder(name string, owner int, make bool) (int, error) {
	fd, err := r.open(name, unix.O_PATH|unix.O_DIRECTORY)
	if err == nil || !make || !errors.Is(err, fs.ErrNotExist) || name == "/" {
		return fd, err
	}
	parent, err := r.folder(path.Dir(name), owner, true)
	if err != nil {
		return -1, err
	}
	defer unix.Close(parent)
	base := path.Base(name)
	if err := unix.Mkdirat(parent, base, 0o755); err != nil && !errors.Is(err, unix.EEXIST) {
		return -1, &fs.PathError{Op: "mkdir", Path: name, Err: err}
	}
	if err := chown(parent, base, owner, owner); err != nil {
		return -1, &fs.PathError{Op: "chown", Path: name, Err: err}
	}
	return r.open(name, unix.O_PATH|unix.O_DIRECTORY)
}

// chown gives a name, not what it links to, to its owner; nothing for who may not.
func chown(dir int, base string, uid, gid int) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return unix.Fchownat(dir, base, uid, gid, unix.AT_SYMLINK_NOFOLLOW)
}

// reopen gives an open file for what an O_PATH descriptor stands for.
func reopen(fd, flags int) (int, error) {
	return unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), flags|unix.O_CLOEXEC, 0)
}

// WriteFile writes a small file of root's inside, in place of what has its name; its folder must be there.
func (r *Root) WriteFile(name string, data []byte, mode fs.FileMode, owner int) error {
	dir, err := r.folder(path.Dir(name), owner, false)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	base := path.Base(name)
	if err := unix.Unlinkat(dir, base, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return &fs.PathError{Op: "replace", Path: name, Err: err}
	}
	fd, err := unix.Openat(dir, base, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, uint32(mode.Perm()))
	if err != nil {
		return &fs.PathError{Op: "create", Path: name, Err: err}
	}
	f := os.NewFile(uintptr(fd), name)
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode.Perm()), chown(dir, base, owner, owner), f.Close())
	return err
}
