package witness

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// markLimit bounds the folders that are marked under protected paths; beyond it Open fails rather
// than leave a part unwatched.
const markLimit = 4096

// metadataLen is the size of an event without extra records (fanotify(7): FAN_EVENT_METADATA_LEN).
const metadataLen = 24

// Watcher watches one sandbox's protected files. Close it; it is of no use after its sandbox is gone.
// Safe for concurrent use.
type Watcher struct {
	root   string // /proc/PID/root
	paths  []string
	ignore []int32
	done   chan struct{}
	ended  chan struct{}

	mu   sync.Mutex
	fd   int // -1 when closed
	seen map[string]bool
}

// Open marks the protected paths, absolute as the sandbox sees them, of the sandbox whose init has the
// pid on this host. Paths that are not there are passed over. Ignored pids are the init's and our own:
// they read for the harness. Errors: no CAP_SYS_ADMIN, no fanotify, too many folders.
func Open(pid int, paths []string) (*Watcher, error) {
	w := &Watcher{root: fmt.Sprintf("/proc/%d/root", pid), ignore: []int32{int32(pid), int32(os.Getpid())},
		fd: -1, seen: map[string]bool{}, done: make(chan struct{}), ended: make(chan struct{})}
	for _, p := range paths {
		w.paths = append(w.paths, filepath.Clean("/"+strings.TrimSuffix(p, "**")))
	}
	fd, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF|unix.FAN_CLOEXEC|unix.FAN_NONBLOCK, unix.O_RDONLY|unix.O_LARGEFILE|unix.O_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("fanotify: %w (it needs CAP_SYS_ADMIN in the host's user namespace)", err)
	}
	w.fd = fd
	if err := w.markAll(); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	go w.drainAlong()
	return w, nil
}

// markAll marks every protected file, and every folder below a protected one.
func (w *Watcher) markAll() error {
	n := 0
	for _, p := range w.paths {
		err := filepath.WalkDir(w.root+p, func(at string, d fs.DirEntry, err error) error {
			if err != nil {
				if errors.Is(err, fs.ErrNotExist) {
					return nil
				}
				return err
			}
			if at != w.root+p && !d.IsDir() {
				return nil // its folder's mark sees it
			}
			if n++; n > markLimit {
				return fmt.Errorf("more than %d folders under protected paths", markLimit)
			}
			mask := uint64(unix.FAN_OPEN)
			if d.IsDir() {
				mask |= unix.FAN_EVENT_ON_CHILD | unix.FAN_ONDIR
			}
			if err := unix.FanotifyMark(w.fd, unix.FAN_MARK_ADD|unix.FAN_MARK_DONT_FOLLOW, mask, unix.AT_FDCWD, at); err != nil && err != unix.ENOENT {
				return fmt.Errorf("fanotify mark %s: %w", strings.TrimPrefix(at, w.root), err)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// drainAlong empties the kernel's queue now and then, so that a call with very many opens does not
// overflow it (16,384 events).
func (w *Watcher) drainAlong() {
	defer close(w.ended)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			w.mu.Lock()
			w.drain()
			w.mu.Unlock()
		case <-w.done:
			return
		}
	}
}

// Begin implements monitor.Witness. What was opened before it counts for no call.
func (w *Watcher) Begin(int) func() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drain()
	clear(w.seen)
	return w.end
}

// end gives the protected paths opened since Begin, sorted, each once.
func (w *Watcher) end() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drain()
	out := make([]string, 0, len(w.seen))
	for p := range w.seen {
		out = append(out, p)
	}
	slices.Sort(out)
	return out
}

// Kind implements monitor.Witness.
func (w *Watcher) Kind() string { return Full }

// Close stops watching.
func (w *Watcher) Close() error {
	w.mu.Lock()
	if w.fd < 0 {
		w.mu.Unlock()
		return nil
	}
	fd := w.fd
	w.fd = -1
	w.mu.Unlock()
	close(w.done)
	<-w.ended
	return unix.Close(fd)
}

// drain takes what is queued. The lock is held.
func (w *Watcher) drain() {
	buf := make([]byte, 64*metadataLen)
	for w.fd >= 0 {
		n, err := unix.Read(w.fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n < metadataLen {
			return
		}
		for rest := buf[:n]; len(rest) >= metadataLen; {
			size := int(binary.NativeEndian.Uint32(rest))
			if size < metadataLen || size > len(rest) {
				return
			}
			w.take(binary.NativeEndian.Uint64(rest[8:]), int32(binary.NativeEndian.Uint32(rest[16:])), int32(binary.NativeEndian.Uint32(rest[20:])))
			rest = rest[size:]
		}
	}
}

// take notes one event and closes its descriptor.
func (w *Watcher) take(mask uint64, fd, pid int32) {
	if mask&unix.FAN_Q_OVERFLOW != 0 {
		w.seen["(more opens than the kernel keeps)"] = true
		return
	}
	if fd < 0 {
		return
	}
	defer unix.Close(int(fd))
	if slices.Contains(w.ignore, pid) {
		return
	}
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return
	}
	w.seen[w.inside(name)] = true
}

// inside gives a path as the sandbox sees it. The kernel names a file of another mount namespace from
// the root of its mount; where that does not lead to a protected path, the host's prefix is cut off.
func (w *Watcher) inside(name string) string {
	name = strings.TrimSuffix(name, " (deleted)")
	for _, p := range w.paths {
		if name == p || strings.HasPrefix(name, p+"/") {
			return name
		}
	}
	for _, p := range w.paths {
		if i := strings.LastIndex(name, p+"/"); i >= 0 {
			return name[i:]
		}
		if strings.HasSuffix(name, p) {
			return p
		}
	}
	return name
}
