package diskwatch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	maxDepth = 1000
	maxFiles = 4_000_000
	perFile  = 512 // bytes that a file takes beside its content, at least: its inode and its name
	listed   = 512 // names read at once
)

// errUnmeasurable says that a tree is beyond all bounds.
var errUnmeasurable = errors.New("the tree cannot be measured")

// file names a file, whatever its names are.
type file struct{ dev, ino uint64 }

// meter adds up files, each once.
type meter struct {
	seen  map[file]bool // of those with several names, or none
	files int
	bytes int64
}

// measure gives the bytes that target takes on its file systems; more than any limit where it is beyond
// all bounds.
func measure(ctx context.Context, t Target) (int64, error) {
	m := &meter{seen: map[file]bool{}}
	for _, dir := range t.Dirs {
		if err := m.tree(ctx, dir); err != nil {
			if errors.Is(err, errUnmeasurable) {
				return math.MaxInt64, nil
			}
			return 0, err
		}
	}
	if t.Init != nil {
		if pid := t.Init(); pid > 0 {
			m.deleted(ctx, pid)
		}
	}
	return m.bytes, nil
}

// add counts a file.
func (m *meter) add(st *unix.Stat_t) {
	if st.Nlink != 1 && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		f := file{uint64(st.Dev), st.Ino}
		if m.seen[f] {
			return
		}
		m.seen[f] = true
	}
	m.files++
	m.bytes += st.Blocks*512 + perFile
}

// tree adds what lies below a folder. Links are not followed, and neither are mounts.
func (m *meter) tree(ctx context.Context, dir string) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("measure %s: %w", dir, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return fmt.Errorf("measure %s: %w", dir, err)
	}
	return m.below(ctx, fd, st.Dev, 0)
}

// below adds what lies below an open folder, which it closes. What vanishes meanwhile does not count.
func (m *meter) below(ctx context.Context, fd int, dev uint64, depth int) error {
	folder := os.NewFile(uintptr(fd), "")
	defer folder.Close()
	if depth > maxDepth {
		return errUnmeasurable
	}
	for {
		names, err := folder.Readdirnames(listed)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return nil // removed under us
		}
		for _, name := range names {
			if err := m.entry(ctx, fd, name, dev, depth); err != nil {
				return err
			}
		}
	}
}

func (m *meter) entry(ctx context.Context, parent int, name string, dev uint64, depth int) error {
	var st unix.Stat_t
	if unix.Fstatat(parent, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || uint64(st.Dev) != dev {
		return nil
	}
	m.add(&st)
	if m.files > maxFiles {
		return errUnmeasurable
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return nil
	}
	fd, err := unix.Openat(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	return m.below(ctx, fd, dev, depth+1)
}

// deleted adds the files without a name that processes of a sandbox hold. init is its first process.
func (m *meter) deleted(ctx context.Context, init int) {
	ns, err := os.Readlink(procPath(init, "ns/pid"))
	if err != nil {
		return
	}
	procs, err := os.Open("/proc")
	if err != nil {
		return
	}
	defer procs.Close()
	names, _ := procs.Readdirnames(-1)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || ctx.Err() != nil {
			continue
		}
		if in, err := os.Readlink(procPath(pid, "ns/pid")); err == nil && in == ns {
			m.held(procPath(pid, "fd"))
			m.held(procPath(pid, "map_files"))
		}
	}
}

// held adds the files without a name among the links of a folder of procfs. Those in memory take none of the
// disk: their file systems tell.
func (m *meter) held(dir string) {
	folder, err := os.Open(dir)
	if err != nil {
		return
	}
	defer folder.Close()
	for {
		names, err := folder.Readdirnames(listed)
		for _, name := range names {
			var st unix.Stat_t
			path := dir + "/" + name
			if unix.Stat(path, &st) != nil || st.Nlink != 0 || st.Mode&unix.S_IFMT != unix.S_IFREG || inMemory(path) {
				continue
			}
			m.add(&st)
		}
		if err != nil || len(names) == 0 {
			return
		}
	}
}

// inMemory reports whether a file lies in memory.
func inMemory(path string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(path, &fs) == nil && (fs.Type == unix.TMPFS_MAGIC || fs.Type == unix.HUGETLBFS_MAGIC)
}

func procPath(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }
