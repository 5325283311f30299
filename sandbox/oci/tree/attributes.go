package tree

import (
	"archive/tar"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// attributes sets owner, mode, extended attributes and time of a new entry, by the folder that it was made in and
// its name; of the root itself where that is the name.
func (w *unpacker) attributes(dir int, name string, head *tar.Header) error {
	base := path.Base(name)
	if name == "/" {
		base = "."
	}
	// The owner first: a change of owner clears the set-id bits.
	if err := chown(dir, base, head.Uid+w.Shift, head.Gid+w.Shift); err != nil {
		return fmt.Errorf("its owner %d:%d: %w", head.Uid, head.Gid, err)
	}
	if head.Typeflag != tar.TypeSymlink {
		if err := w.modeAndXattrs(dir, base, head); err != nil {
			return err
		}
	}
	if head.Typeflag == tar.TypeDir {
		if len(w.times) < maxFolders {
			w.times[name] = head.ModTime
		}
		return nil
	}
	return unix.UtimesNanoAt(dir, base, times(head.ModTime), unix.AT_SYMLINK_NOFOLLOW)
}

// modeAndXattrs works on what the name is at this moment, which whoever writes to the tree may have changed: so
// by a descriptor that follows no link.
func (w *unpacker) modeAndXattrs(dir int, base string, head *tar.Header) error {
	fd, err := unix.Openat(dir, base, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var now unix.Stat_t
	if err := unix.Fstat(fd, &now); err != nil {
		return err
	}
	if now.Mode&unix.S_IFMT == unix.S_IFLNK {
		return unix.ELOOP
	}
	self := fmt.Sprintf("/proc/self/fd/%d", fd)
	if err := unix.Chmod(self, uint32(head.Mode)&0o7777); err != nil {
		return err
	}
	return setXattrs(self, head.PAXRecords)
}

// xattrPrefix is in front of an extended attribute's name in a PAX header.
const xattrPrefix = "SCHILY.xattr."

// setXattrs sets those extended attributes that a layer may bring: the user's, a file's capabilities (which
// no-new-privileges keeps from working) and access lists. An overlay's marks are ours to make: one that redirects
// would lead a layer's folder elsewhere.
func setXattrs(path string, records map[string]string) error {
	for key, value := range records {
		name, found := strings.CutPrefix(key, xattrPrefix)
		if !found || !carried(name) {
			continue
		}
		if err := unix.Setxattr(path, name, []byte(value), 0); err != nil && !unkept(err) {
			return fmt.Errorf("extended attribute %.100q: %w", name, err)
		}
	}
	return nil
}

// carried reports whether an extended attribute comes along.
func carried(name string) bool {
	switch name {
	case "security.capability", "system.posix_acl_access", "system.posix_acl_default":
		return true
	}
	return strings.HasPrefix(name, "user.") && !strings.HasPrefix(name, "user.overlay.")
}

// unkept reports whether the file system, or who we are, keeps no such attribute: files do without.
func unkept(err error) bool {
	return errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EPERM) && os.Geteuid() != 0 || errors.Is(err, unix.EINVAL)
}

// times gives access and modification time as the kernel takes them.
func times(at time.Time) []unix.Timespec {
	ts, err := unix.TimeToTimespec(at)
	if err != nil || at.Unix() < 0 {
		ts = unix.Timespec{}
	}
	return []unix.Timespec{ts, ts}
}

// Marks of an overlay.
const (
	opaqueXattr = "trusted.overlay.opaque"
	opaqueMark  = ".wh..opq" // what follows .wh. in the name of an opaque folder's mark
)

// whiteout makes the overlay's own mark of a layer's: the name is gone, or, for the opaque mark, all that lower
// layers have in the folder. A layer's own files stay.
func whiteout(dir int, rest string) error {
	switch {
	case rest == opaqueMark:
		self := fmt.Sprintf("/proc/self/fd/%d", dir)
		return unix.Setxattr(self, opaqueXattr, []byte("y"), 0)
	case strings.HasPrefix(rest, ".wh."):
		return nil // aufs's own records
	case rest == "" || rest == "." || rest == "..":
		return fmt.Errorf("%w for a whiteout", ErrName)
	}
	err := unix.Mknodat(dir, rest, unix.S_IFCHR, 0)
	if errors.Is(err, unix.EEXIST) {
		return nil // a whiteout speaks of lower layers
	}
	return err
}
