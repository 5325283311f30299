package agent

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"proctor/sandbox"
	"proctor/sandbox/box/wire"
)

// place is what a path leads to, held by a descriptor that can neither read nor write: nothing that
// happens to the path after the checks changes what is opened then.
type place struct {
	fd   int
	real string // after all links
	stat unix.Stat_t
	proc bool // on procfs
}

// ofProcess are the entries of procfs that tell of one process. Through our eyes /proc/self is PID 1.
var ofProcess = regexp.MustCompile(`^/proc/(\d+|self|thread-self)(/|$)`)

var errOfProcess = fmt.Errorf("%w: an entry of a process", fs.ErrInvalid)

// find resolves a path without opening what it leads to. Magic links (/proc/<pid>/fd/1, root, cwd, exe)
// are not followed.
func findPath(path string) (*place, error) {
	if path == "" || strings.ContainsRune(path, 0) {
		return nil, fmt.Errorf("%w: a path that is empty or holds a NUL byte", fs.ErrInvalid)
	}
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &how)
	if err == unix.ENOSYS || err == unix.EPERM { // an old kernel, or a filter that does not know it
		fd, err = unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return nil, pathError(err)
	}
	p := &place{fd: fd}
	var fsys unix.Statfs_t
	if err := errors.Join(unix.Fstat(fd, &p.stat), unix.Fstatfs(fd, &fsys)); err != nil {
		p.close()
		return nil, pathError(err)
	}
	p.real, err = os.Readlink(p.self())
	if err != nil {
		p.close()
		return nil, pathError(err)
	}
	p.proc = fsys.Type == unix.PROC_SUPER_MAGIC
	if p.proc && ofProcess.MatchString(p.real) {
		p.close()
		return nil, errOfProcess
	}
	return p, nil
}

func (p *place) close()       { unix.Close(p.fd) }
func (p *place) self() string { return "/proc/self/fd/" + strconv.Itoa(p.fd) }
func (p *place) isDir() bool  { return p.stat.Mode&unix.S_IFMT == unix.S_IFDIR }
func (p *place) isFile() bool { return p.stat.Mode&unix.S_IFMT == unix.S_IFREG }

// open opens what was found, for reading or for both.
func (p *place) open(flags int) (*os.File, error) {
	fd, err := unix.Open(p.self(), flags|unix.O_CLOEXEC|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, pathError(err)
	}
	return os.NewFile(uintptr(fd), p.real), nil
}

// pathError makes an errno one that fs errors match.
func pathError(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return err
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	default:
		return fmt.Errorf("%w: %w", fs.ErrInvalid, err)
	}
}

// readFile gives at most limit bytes of a regular file, as root.
func readFile(path string, limit int64) ([]byte, error) {
	p, err := findPath(path)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", path, err)
	}
	defer p.close()
	if !p.isFile() || p.proc {
		return nil, fmt.Errorf("%q: %w: not a regular file", path, fs.ErrInvalid)
	}
	f, err := p.open(unix.O_RDONLY)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", path, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, max(0, min(limit, wire.MaxStream))))
	if err != nil {
		return nil, fmt.Errorf("%q: %w", path, pathError(err))
	}
	return b, nil
}

// statFile describes what a path leads to.
func statFile(path string) (sandbox.FileInfo, error) {
	p, err := findPath(path)
	if err != nil {
		return sandbox.FileInfo{}, fmt.Errorf("%q: %w", path, err)
	}
	defer p.close()
	return sandbox.FileInfo{Path: path, Real: p.real, Mode: fileMode(p.stat.Mode), Size: p.stat.Size,
		UID: int(p.stat.Uid), GID: int(p.stat.Gid), Time: time.Unix(p.stat.Mtim.Unix())}, nil
}

func fileMode(m uint32) fs.FileMode {
	mode := fs.FileMode(m & 0o777)
	switch m & unix.S_IFMT {
	case unix.S_IFDIR:
		mode |= fs.ModeDir
	case unix.S_IFIFO:
		mode |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		mode |= fs.ModeSocket
	case unix.S_IFBLK:
		mode |= fs.ModeDevice
	case unix.S_IFCHR:
		mode |= fs.ModeDevice | fs.ModeCharDevice
	}
	for bit, flag := range map[uint32]fs.FileMode{unix.S_ISUID: fs.ModeSetuid, unix.S_ISGID: fs.ModeSetgid, unix.S_ISVTX: fs.ModeSticky} {
		if m&bit != 0 {
			mode |= flag
		}
	}
	return mode
}
