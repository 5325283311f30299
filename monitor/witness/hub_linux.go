package witness

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// metadataLen is the size of an event without extra records (fanotify(7): FAN_EVENT_METADATA_LEN).
const metadataLen = 24

// Hub is the one fanotify group of this process, and answers the kernel for all its sandboxes. Close
// it; the kernel then lets go on whoever waits. Safe for concurrent use.
type Hub struct {
	fd    int      // for marks; the same description as file
	file  *os.File // for events and answers
	ended chan struct{}
	log   *slog.Logger

	mu       sync.Mutex
	watchers map[string]*Watcher // by the mount namespace of their sandbox
	closed   bool
}

// NewHub opens a fanotify group. It fails where this process lacks CAP_SYS_ADMIN in the first user
// namespace, or the kernel was built without fanotify or its permission events.
func NewHub(log *slog.Logger) (*Hub, error) {
	flags := uint(unix.FAN_CLASS_CONTENT | unix.FAN_CLOEXEC | unix.FAN_NONBLOCK | unix.FAN_UNLIMITED_QUEUE | unix.FAN_UNLIMITED_MARKS)
	// O_NONBLOCK: the kernel opens what was opened for us too, and a FIFO must not hold us.
	fd, err := unix.FanotifyInit(flags, unix.O_RDONLY|unix.O_LARGEFILE|unix.O_CLOEXEC|unix.O_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("fanotify: %w (it needs CAP_SYS_ADMIN in the host's user namespace)", err)
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	h := &Hub{fd: fd, file: os.NewFile(uintptr(fd), "fanotify"), ended: make(chan struct{}), log: log, watchers: map[string]*Watcher{}}
	go h.serve()
	return h, nil
}

// Close stops watching, everywhere.
func (h *Hub) Close() error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil
	}
	h.closed = true
	h.mu.Unlock()
	err := h.file.Close()
	<-h.ended
	return err
}

// serve answers the kernel until the group is closed.
func (h *Hub) serve() {
	defer close(h.ended)
	buf := make([]byte, 128*metadataLen)
	for {
		n, err := h.file.Read(buf)
		switch {
		case errors.Is(err, os.ErrClosed), errors.Is(err, io.EOF):
			return
		case err != nil:
			// Of one event whose file could not be opened for us: the kernel has answered it.
			h.log.Warn("read fanotify events", "err", err)
			time.Sleep(10 * time.Millisecond)
			continue
		}
		for rest := buf[:n]; len(rest) >= metadataLen; {
			size := int(binary.NativeEndian.Uint32(rest))
			if size < metadataLen || size > len(rest) {
				break
			}
			h.event(binary.NativeEndian.Uint64(rest[8:]), int32(binary.NativeEndian.Uint32(rest[16:])), int(int32(binary.NativeEndian.Uint32(rest[20:]))))
			rest = rest[size:]
		}
	}
}

// event looks at one open, and answers the kernel, which holds the opener until then. A panic in
// what looks is logged, and the opener goes on.
func (h *Hub) event(mask uint64, fd int32, pid int) {
	if fd < 0 {
		return
	}
	answer := uint32(unix.FAN_ALLOW)
	defer func() {
		if v := recover(); v != nil {
			h.log.Error("the witness panicked", "panic", v)
			answer = unix.FAN_ALLOW
		}
		if mask&unix.FAN_OPEN_PERM != 0 {
			var response [8]byte
			binary.NativeEndian.PutUint32(response[:], uint32(fd))
			binary.NativeEndian.PutUint32(response[4:], answer)
			if _, err := h.file.Write(response[:]); err != nil && !errors.Is(err, os.ErrClosed) && !errors.Is(err, unix.ENOENT) {
				h.log.Warn("answer the kernel", "err", err) // ENOENT: the opener was killed meanwhile
			}
		}
		_ = unix.Close(int(fd)) // a descriptor that the kernel made for us to look at
	}()
	if pid == os.Getpid() {
		return
	}
	space, err := namespaceOf(pid)
	if err != nil {
		return
	}
	h.mu.Lock()
	w := h.watchers[space]
	h.mu.Unlock()
	if w != nil && w.opened(int(fd), pid) {
		answer = unix.FAN_DENY
	}
}

// namespaceOf gives the mount namespace of a process, as the kernel names it.
func namespaceOf(pid int) (string, error) {
	return os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid))
}
