package witness

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// markLimit bounds the files and folders that are marked in one sandbox; beyond it Watch fails
// rather than leave a part unwatched.
const markLimit = 8192

// mark marks every protected file and folder, and all below.
func (w *Watcher) mark(paths []string) error {
	for _, p := range paths {
		p = path.Clean("/" + strings.TrimSuffix(p, "**"))
		fd, err := w.open(p, 0)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
			continue
		}
		if err != nil {
			return fmt.Errorf("witness: %s: %w", p, err)
		}
		err = w.markTree(fd, p)
		_ = unix.Close(fd)
		if err != nil {
			return err
		}
		w.marked = append(w.marked, p)
	}
	return nil
}

// open gives an O_PATH descriptor of a path as the sandbox sees it: links lead where they lead
// inside, never out to the host. flags are added.
func (w *Watcher) open(p string, flags uint64) (int, error) {
	return unix.Openat2(w.root, p, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | flags,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS})
}

// markTree marks what fd stands for, by the name p, and all below it. Only files and folders: other
// things hold nothing.
func (w *Watcher) markTree(fd int, p string) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("witness: %s: %w", p, err)
	}
	kind := st.Mode & unix.S_IFMT
	if kind != unix.S_IFREG && kind != unix.S_IFDIR {
		return nil
	}
	if len(w.known) >= markLimit {
		return fmt.Errorf("witness: more than %d files and folders under protected paths", markLimit)
	}
	w.known[inode{st.Dev, st.Ino}] = p
	if kind == unix.S_IFREG {
		return w.markOne(fd, p, unix.FAN_OPEN_PERM)
	}
	// Read before it is marked: our own open would ask us.
	names, err := namesIn(fd)
	if err != nil {
		return fmt.Errorf("witness: list %s: %w", p, err)
	}
	if err := w.markOne(fd, p, unix.FAN_OPEN_PERM|unix.FAN_ONDIR|unix.FAN_EVENT_ON_CHILD); err != nil {
		return err
	}
	for _, name := range names {
		child, err := unix.Openat(fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			continue // it has gone meanwhile
		}
		err = w.markTree(child, path.Join(p, name))
		_ = unix.Close(child)
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *Watcher) markOne(fd int, p string, mask uint64) error {
	if err := unix.FanotifyMark(w.hub.fd, unix.FAN_MARK_ADD, mask, unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd)); err != nil {
		return fmt.Errorf("witness: mark %s: %w", p, err)
	}
	return nil
}

// namesIn lists a folder, by an O_PATH descriptor of it.
func namesIn(fd int) ([]string, error) {
	readable, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	dir := os.NewFile(uintptr(readable), "folder")
	names, err := dir.Readdirnames(markLimit + 1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, errors.Join(err, dir.Close())
}

// nameOf gives the name under which a file was marked, else the one that it has now: of a file made
// in a protected folder since.
func (w *Watcher) nameOf(fd int) string {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil {
		if p, ok := w.known[inode{st.Dev, st.Ino}]; ok {
			return p
		}
	}
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return "(unknown)"
	}
	return strings.TrimSuffix(name, " (deleted)")
}

func isFolder(fd int) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
}
