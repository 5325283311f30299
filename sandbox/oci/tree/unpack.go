package tree

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Unpacking says how Unpack reads a stream.
type Unpacking struct {
	// Dir is the folder inside that names are relative to; it must exist.
	Dir string
	// Layer reads the stream as an image's layer, written for an overlay: whiteouts become the overlay's own marks,
	// and a later entry takes the place of an earlier one whatever that is. Without it whiteouts are ordinary files,
	// and no folder takes the place of a file or the other way round.
	Layer bool
	// Shift is added to every owner, for a sandbox in a user namespace; owners from 65,536 up are refused then.
	Shift int
	// MaxBytes and MaxEntries bound what is made; 0 means 64 GiB and 8 million.
	MaxBytes, MaxEntries int64
}

// Errors of Unpack besides the kernel's, wrapped in an EntryError.
var (
	ErrDevice   = errors.New("device nodes are refused")
	ErrTooLarge = errors.New("more than the limit")
	ErrKind     = errors.New("a folder would take the place of a file, or the other way round")
	ErrName     = errors.New("not a usable name")
	ErrOwner    = errors.New("an owner beyond the user namespace")
	ErrStream   = errors.New("broken tar stream")
)

// EntryError says which entry of a stream could not be unpacked. Name is "" where none had been read.
type EntryError struct {
	Name string
	Err  error
}

func (e *EntryError) Error() string { return fmt.Sprintf("entry %.300q: %v", e.Name, e.Err) }
func (e *EntryError) Unwrap() error { return e.Err }

// Unpack makes what a tar stream holds inside the root. It gives the bytes that files took. What it made before an
// error stays. Errors are *EntryError, or ctx's.
func (r *Root) Unpack(ctx context.Context, stream io.Reader, u Unpacking) (int64, error) {
	if u.MaxBytes == 0 {
		u.MaxBytes = 64 << 30
	}
	if u.MaxEntries == 0 {
		u.MaxEntries = 8e6
	}
	if u.Dir == "" {
		u.Dir = "/"
	}
	dir, err := r.folder(path.Clean("/"+u.Dir), 0, false)
	if err != nil {
		return 0, &EntryError{Name: "", Err: err}
	}
	unix.Close(dir)
	w := &unpacker{Root: r, Unpacking: u, last: -1, times: map[string]time.Time{}}
	defer w.forget()
	in := tar.NewReader(&interruptible{ctx, stream})
	for entries := int64(0); ; entries++ {
		head, err := in.Next()
		if errors.Is(err, io.EOF) {
			return w.bytes, w.finish()
		}
		if ctx.Err() != nil {
			return w.bytes, ctx.Err()
		}
		if err != nil {
			return w.bytes, &EntryError{Name: w.name, Err: fmt.Errorf("%w after it: %w", ErrStream, err)}
		}
		if entries >= u.MaxEntries {
			return w.bytes, &EntryError{Name: head.Name, Err: fmt.Errorf("%w of %d entries", ErrTooLarge, u.MaxEntries)}
		}
		w.name = head.Name
		if err := w.entry(head, in); err != nil {
			if ctx.Err() != nil {
				return w.bytes, ctx.Err()
			}
			return w.bytes, &EntryError{Name: head.Name, Err: err}
		}
	}
}

// interruptible ends a stream with its context.
type interruptible struct {
	ctx context.Context
	io.Reader
}

func (i *interruptible) Read(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	return i.Reader.Read(p)
}

// unpacker is an Unpack under way.
type unpacker struct {
	*Root
	Unpacking
	name  string // of the entry at hand
	bytes int64

	last  int    // descriptor of the folder of the entry before, -1 for none
	path  string // its path
	times map[string]time.Time
}

// maxFolders bounds the folders whose times are remembered until the end: those beyond keep the time of unpacking.
const maxFolders = 1 << 20

// forget closes the folder of the entry before.
func (w *unpacker) forget() {
	if w.last >= 0 {
		unix.Close(w.last)
	}
	w.last, w.path = -1, ""
}

// parent gives a descriptor of a folder, good until the next call.
func (w *unpacker) parent(dir string) (int, error) {
	if w.last >= 0 && w.path == dir {
		return w.last, nil
	}
	w.forget()
	fd, err := w.folder(dir, w.Shift, true)
	if err == nil {
		w.last, w.path = fd, dir
	}
	return fd, err
}

// entry makes one entry.
func (w *unpacker) entry(head *tar.Header, content io.Reader) error {
	if head.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	name := path.Join("/", w.Dir, path.Clean("/"+head.Name))
	if strings.ContainsRune(head.Name, 0) || strings.ContainsRune(head.Linkname, 0) {
		return ErrName
	}
	if head.Uid < 0 || head.Gid < 0 || w.Shift > 0 && (head.Uid > 0xffff || head.Gid > 0xffff) {
		return fmt.Errorf("%w: %d:%d", ErrOwner, head.Uid, head.Gid)
	}
	if path.Clean("/"+head.Name) == "/" {
		return w.top(name, head)
	}
	dir, err := w.parent(path.Dir(name))
	if err != nil {
		return err
	}
	base := path.Base(name)
	if rest, found := strings.CutPrefix(base, ".wh."); found && w.Layer {
		return whiteout(dir, rest)
	}
	if err := w.makeRoom(dir, base, head.Typeflag); err != nil {
		return err
	}
	err = w.make(dir, name, head, content)
	if errors.Is(err, errSkip) {
		return nil
	}
	if err != nil || head.Typeflag == tar.TypeLink {
		return err
	}
	return w.attributes(dir, name, head)
}

// top sets the attributes of the folder itself, where the stream has an entry for it: a layer's root, not the
// folder that files are pushed to.
func (w *unpacker) top(name string, head *tar.Header) error {
	if head.Typeflag != tar.TypeDir || !w.Layer {
		return nil
	}
	return w.attributes(w.fd, name, head)
}

// makeRoom takes away what has the name, but for a folder where a folder comes.
func (w *unpacker) makeRoom(dir int, base string, kind byte) error {
	var there unix.Stat_t
	err := unix.Fstatat(dir, base, &there, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	isFolder := there.Mode&unix.S_IFMT == unix.S_IFDIR
	switch {
	case isFolder && kind == tar.TypeDir:
		return nil
	case isFolder != (kind == tar.TypeDir) && !w.Layer:
		return ErrKind
	case isFolder:
		w.forgetBelow()
		return removeAt(dir, base)
	}
	return unix.Unlinkat(dir, base, 0)
}

// forgetBelow makes sure that no descriptor of a folder that is about to go is used again.
func (w *unpacker) forgetBelow() { w.path = "" }

// make makes the entry, without its attributes.
func (w *unpacker) make(dir int, name string, head *tar.Header, content io.Reader) error {
	base := path.Base(name)
	switch head.Typeflag {
	case tar.TypeDir:
		if err := unix.Mkdirat(dir, base, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
			return err
		}
		return nil
	case tar.TypeReg, tar.TypeGNUSparse:
		return w.file(dir, base, head, content)
	case tar.TypeSymlink:
		return unix.Symlinkat(head.Linkname, dir, base)
	case tar.TypeLink:
		return w.link(dir, base, head.Linkname)
	case tar.TypeFifo:
		return unix.Mknodat(dir, base, unix.S_IFIFO|0o600, 0)
	case tar.TypeChar, tar.TypeBlock:
		// What an image has in /dev is hidden by the runtime's own /dev.
		if w.Layer && strings.HasPrefix(name, "/dev/") {
			return errSkip
		}
		return ErrDevice
	}
	return fmt.Errorf("%w: an entry of type %q", ErrStream, head.Typeflag)
}

// errSkip says that an entry is left out.
var errSkip = errors.New("left out")

// file writes a regular file.
func (w *unpacker) file(dir int, base string, head *tar.Header, content io.Reader) error {
	if head.Size > w.MaxBytes-w.bytes {
		return fmt.Errorf("%w of %d bytes", ErrTooLarge, w.MaxBytes)
	}
	fd, err := unix.Openat(dir, base, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	n, err := io.Copy(descriptor(fd), content)
	w.bytes += n
	if err != nil {
		var errno unix.Errno
		if !errors.As(err, &errno) {
			err = fmt.Errorf("%w: %w", ErrStream, err)
		}
	}
	return err
}

// link makes a hard link to an earlier entry.
func (w *unpacker) link(dir int, base, target string) error {
	name := path.Join("/", w.Dir, path.Clean("/"+target))
	from, err := w.folder(path.Dir(name), w.Shift, false)
	if err != nil {
		return fmt.Errorf("hard link to %.300q: %w", target, err)
	}
	defer unix.Close(from)
	if err := unix.Linkat(from, path.Base(name), dir, base, 0); err != nil {
		return fmt.Errorf("hard link to %.300q: %w", target, err)
	}
	return nil
}

// finish sets the times of folders, which making things in them has changed.
func (w *unpacker) finish() error {
	for name, at := range w.times {
		fd, err := w.open(name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
			continue // a later entry took its place
		}
		if err != nil {
			return &EntryError{Name: name, Err: err}
		}
		err = unix.UtimesNanoAt(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), times(at), 0)
		unix.Close(fd)
		if err != nil {
			return &EntryError{Name: name, Err: err}
		}
	}
	return nil
}

// descriptor writes to a file descriptor.
type descriptor int

func (d descriptor) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		n, err := unix.Write(int(d), p[done:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}
