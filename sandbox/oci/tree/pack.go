package tree

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Pack writes what is at name as a tar stream, whose names start with name's base. A link at the end of name is
// packed itself, unless name ends in a slash. Owners from shift up are written less it. Sockets and devices are left
// out. Errors wrap fs.ErrNotExist where nothing is there.
func (r *Root) Pack(ctx context.Context, w io.Writer, name string, shift int) error {
	fd, base, err := r.target(name)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	out := &packer{ctx: ctx, tar: tar.NewWriter(w), base: base, shift: shift, seen: map[inode]string{}}
	if err := walk(fd, "", 0, out.visit); err != nil {
		return fmt.Errorf("pack %s: %w", name, err)
	}
	return out.tar.Close()
}

// Exists is nil where something is at name; a link at its end is not followed.
func (r *Root) Exists(name string) error {
	fd, _, err := r.target(name)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// target opens what is at name, and gives the name that it has in a stream.
func (r *Root) target(name string) (int, string, error) {
	clean := path.Clean("/" + name)
	base := path.Base(clean)
	if base == "/" {
		base = "."
	}
	flags := uint64(unix.O_PATH | unix.O_NOFOLLOW)
	if strings.HasSuffix(name, "/") || strings.HasSuffix(name, "/.") {
		flags = unix.O_PATH | unix.O_DIRECTORY
	}
	fd, err := r.open(clean, flags)
	return fd, base, err
}

// packer is a Pack under way.
type packer struct {
	ctx   context.Context
	tar   *tar.Writer
	base  string
	shift int
	seen  map[inode]string // files with further names, by the name that was packed
}

// visit writes one entry.
func (p *packer) visit(rel string, fd int, st *unix.Stat_t) error {
	if err := p.ctx.Err(); err != nil {
		return err
	}
	head := &tar.Header{
		Name: path.Join(p.base, rel), Mode: int64(st.Mode & 0o7777), Format: tar.FormatPAX,
		Uid: max(int(st.Uid)-p.shift, 0), Gid: max(int(st.Gid)-p.shift, 0), ModTime: time.Unix(st.Mtim.Unix()),
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		head.Typeflag, head.Name = tar.TypeDir, head.Name+"/"
		return p.tar.WriteHeader(head)
	case unix.S_IFREG:
		return p.file(head, fd, st)
	case unix.S_IFIFO:
		head.Typeflag = tar.TypeFifo
		return p.tar.WriteHeader(head)
	case unix.S_IFLNK:
		text, err := linkText(fd)
		if err != nil {
			return err
		}
		head.Typeflag, head.Linkname = tar.TypeSymlink, text
		return p.tar.WriteHeader(head)
	}
	return nil
}

// file writes a regular file, or a hard link where it was written already.
func (p *packer) file(head *tar.Header, fd int, st *unix.Stat_t) error {
	if st.Nlink > 1 {
		id := inode{uint64(st.Dev), st.Ino}
		if first, again := p.seen[id]; again {
			head.Typeflag, head.Linkname = tar.TypeLink, first
			return p.tar.WriteHeader(head)
		}
		p.seen[id] = head.Name
	}
	open, err := reopen(fd, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return fmt.Errorf("%s: %w", head.Name, err)
	}
	f := os.NewFile(uintptr(open), head.Name)
	defer f.Close()
	head.Typeflag, head.Size = tar.TypeReg, st.Size
	if caps := fileCapabilities(fd); caps != "" {
		head.PAXRecords = map[string]string{xattrPrefix + "security.capability": caps}
	}
	if err := p.tar.WriteHeader(head); err != nil {
		return err
	}
	n, err := io.Copy(p.tar, io.LimitReader(&interruptible{p.ctx, f}, st.Size))
	if err != nil {
		return err
	}
	// Somebody cut it short meanwhile: the stream holds what was announced.
	_, err = io.CopyN(p.tar, zeros{}, st.Size-n)
	return err
}

// fileCapabilities gives the extended attribute of that name, or "".
func fileCapabilities(fd int) string {
	var buf [64]byte
	n, err := unix.Getxattr(fmt.Sprintf("/proc/self/fd/%d", fd), "security.capability", buf[:])
	if err != nil {
		return ""
	}
	return string(buf[:n])
}

// zeros reads as zero bytes without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// NotFound reports whether err says that a path leads nowhere: nothing there, or a file where a folder is needed.
func NotFound(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}
