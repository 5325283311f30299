package tree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// Copy copies the folder from to a new folder to, both of the host: an overlay's upper folder, with what it says of
// layers below (whiteouts, opaque folders), with owners, modes, times, extended attributes and hard links. Files
// share their blocks where the file system can; holes stay holes. Sockets are left out. It gives the bytes of files.
// Nobody else may be writing to either.
func Copy(ctx context.Context, from, to string) (int64, error) {
	source, err := Open(from)
	if err != nil {
		return 0, err
	}
	defer source.Close()
	if err := os.Mkdir(to, 0o700); err != nil {
		return 0, err
	}
	target, err := Open(to)
	if err != nil {
		return 0, err
	}
	defer target.Close()
	c := &copier{ctx: ctx, to: target, seen: map[inode]string{}}
	if err := walk(source.fd, "", 0, c.visit); err != nil {
		return c.bytes, fmt.Errorf("copy %s: %w", from, err)
	}
	// Making things in folders has changed their times: the deepest last.
	for i := len(c.folders) - 1; i >= 0; i-- {
		f := c.folders[i]
		if err := unix.UtimesNanoAt(target.fd, f.name, f.times, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return c.bytes, fmt.Errorf("copy %s: %w", f.name, err)
		}
	}
	return c.bytes, nil
}

// copier is a Copy under way.
type copier struct {
	ctx     context.Context
	to      *Root
	seen    map[inode]string
	folders []copied
	bytes   int64
}

// copied is a folder whose times are still to be set.
type copied struct {
	name  string
	times []unix.Timespec
}

// visit copies one file or folder.
func (c *copier) visit(rel string, fd int, st *unix.Stat_t) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	name, dir := rel, c.to.fd
	if rel == "" {
		name = "."
	} else {
		parent, err := c.to.open(path.Dir("/"+rel), unix.O_PATH|unix.O_DIRECTORY)
		if err != nil {
			return err
		}
		defer unix.Close(parent)
		name, dir = path.Base(rel), parent
	}
	made, err := c.make(dir, name, rel, fd, st)
	if err != nil || !made {
		return err
	}
	return c.attributes(dir, name, rel, fd, st)
}

// make makes a file or folder without its attributes; false where it needs none.
func (c *copier) make(dir int, name, rel string, fd int, st *unix.Stat_t) (bool, error) {
	kind := st.Mode & unix.S_IFMT
	if kind != unix.S_IFDIR && st.Nlink > 1 {
		id := inode{uint64(st.Dev), st.Ino}
		if first, again := c.seen[id]; again {
			return false, unix.Linkat(c.to.fd, first, dir, name, 0)
		}
		c.seen[id] = rel
	}
	switch kind {
	case unix.S_IFDIR:
		if rel == "" {
			return true, nil
		}
		return true, unix.Mkdirat(dir, name, 0o700)
	case unix.S_IFREG:
		n, err := copyFile(c.ctx, dir, name, fd, st.Size)
		c.bytes += n
		return true, err
	case unix.S_IFLNK:
		text, err := linkText(fd)
		if err != nil {
			return false, err
		}
		return true, unix.Symlinkat(text, dir, name)
	case unix.S_IFIFO:
		return true, unix.Mknodat(dir, name, unix.S_IFIFO|0o600, 0)
	case unix.S_IFCHR:
		if st.Rdev == 0 { // a whiteout
			return true, unix.Mknodat(dir, name, unix.S_IFCHR, 0)
		}
	}
	return false, nil
}

// attributes sets owner, mode, extended attributes and times as they were.
func (c *copier) attributes(dir int, name, rel string, fd int, st *unix.Stat_t) error {
	if err := unix.Fchownat(dir, name, int(st.Uid), int(st.Gid), unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	at := []unix.Timespec{st.Atim, st.Mtim}
	if st.Mode&unix.S_IFMT != unix.S_IFLNK {
		made, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(made)
		self := fmt.Sprintf("/proc/self/fd/%d", made)
		if err := unix.Chmod(self, st.Mode&0o7777); err != nil {
			return err
		}
		if err := copyXattrs(fmt.Sprintf("/proc/self/fd/%d", fd), self); err != nil {
			return err
		}
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		if rel == "" {
			rel = "."
		}
		c.folders = append(c.folders, copied{rel, at})
		return nil
	}
	return unix.UtimesNanoAt(dir, name, at, unix.AT_SYMLINK_NOFOLLOW)
}

// copyXattrs copies extended attributes. Of the overlay's own, only the mark of opaque folders: the others speak of
// the mount that they were made under.
func copyXattrs(from, to string) error {
	buf := make([]byte, 64<<10)
	n, err := unix.Listxattr(from, buf)
	if err != nil && !errors.Is(err, unix.ENOTSUP) {
		return err
	}
	for name := range strings.SplitSeq(string(buf[:max(n, 0)]), "\x00") {
		if name != opaqueXattr && !carried(name) {
			continue
		}
		value := make([]byte, 64<<10)
		n, err := unix.Getxattr(from, name, value)
		if err == nil {
			err = unix.Setxattr(to, name, value[:n], 0)
		}
		if err != nil && !unkept(err) {
			return fmt.Errorf("extended attribute %.100q: %w", name, err)
		}
	}
	return nil
}

// copyFile copies a regular file's bytes into a new file.
func copyFile(ctx context.Context, dir int, name string, fd int, size int64) (int64, error) {
	in, err := reopen(fd, unix.O_RDONLY)
	if err != nil {
		return 0, err
	}
	defer unix.Close(in)
	out, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return 0, err
	}
	defer unix.Close(out)
	if size == 0 || unix.IoctlFileClone(out, in) == nil {
		return size, nil
	}
	if err := unix.Ftruncate(out, size); err != nil {
		return 0, err
	}
	return size, copyExtents(ctx, in, out, size)
}

// copyExtents copies what is not a hole.
func copyExtents(ctx context.Context, in, out int, size int64) error {
	for at := int64(0); at < size; {
		if err := ctx.Err(); err != nil {
			return err
		}
		data, err := unix.Seek(in, at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return nil // holes to the end
		}
		if err != nil {
			return err
		}
		hole, err := unix.Seek(in, data, unix.SEEK_HOLE)
		if err != nil {
			return err
		}
		if at, err = copyRange(in, out, data, min(hole, size)); err != nil {
			return err
		}
	}
	return nil
}

// copyRange copies bytes from one offset up to another, inside the kernel where it can, and gives where it came to.
func copyRange(in, out int, from, to int64) (int64, error) {
	for from < to {
		src, dst := from, from
		n, err := unix.CopyFileRange(in, &src, out, &dst, int(min(to-from, 1<<30)), 0)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return from, err
		case n == 0:
			return to, io.ErrUnexpectedEOF
		}
		from += int64(n)
	}
	return from, nil
}
