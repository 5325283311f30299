package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// DefaultSocket is where the agent listens, seen from inside: an engine mounts a folder of its own at
// the socket's folder. Where that folder is missing the agent speaks over stdin and stdout instead.
const DefaultSocket = "/run/init/ctl"

const (
	spareThreads = 16              // at most, made at once: a fork bomb may leave no room for one more
	relisten     = 2 * time.Second // how often the socket is looked after
)

// Main is the agent's life: it comes back only where it cannot work at all, or, over stdio, when the
// host has hung up.
func Main(ctx context.Context, socket string) error {
	harden()
	s := NewServer()
	if _, err := os.Stat(filepath.Dir(socket)); err != nil {
		return s.Serve(stdio{os.Stdin, os.Stdout})
	}
	return s.listen(ctx, socket)
}

// harden makes this process hard to harm from inside. No step is fatal: what could not be done here, an
// engine's own tests notice.
func harden() {
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) // closes /proc/1/{mem,environ,maps,fd} and ptrace
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	signal.Notify(make(chan os.Signal, 1))                     // all of them; caught rather than ignored, which children would inherit
	signal.Reset(syscall.SIGCHLD)                              // does nothing anyway, and would wake a thread at each child's end
	_ = unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC) // what our parent left open is not for commands
	syscall.Umask(0o022)
	debug.SetGCPercent(50)
	raiseLimits()
	spare(min(spareThreads, pidsLimit("/sys/fs/cgroup")/8))
}

// raiseLimits undoes what `prlimit --pid 1` from inside may have done, as far as the hard limit allows.
func raiseLimits() {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) == nil && l.Cur < l.Max {
		l.Cur = l.Max
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &l)
	}
}

// pidsLimit gives the cgroup's limit on processes and threads, where it can be seen.
func pidsLimit(root string) int {
	for _, name := range []string{"pids.max", "pids/pids.max"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if n, numErr := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && numErr == nil {
			return n
		}
	}
	return math.MaxInt
}

// spare makes n threads and leaves them to the runtime, which ends the process where it needs one and
// cannot make it.
func spare(n int) {
	var all, each sync.WaitGroup
	all.Add(n)
	each.Add(n)
	for range n {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			all.Done()
			all.Wait() // until each has a thread of its own
			each.Done()
		}()
	}
	each.Wait()
}

// listen accepts hosts. The socket is looked after: one that was removed or replaced is made again, with
// the connections there are living on.
func (s *Server) listen(ctx context.Context, path string) error {
	l, err := listenUnix(path)
	if err != nil {
		return err
	}
	for {
		_ = l.SetDeadline(time.Now().Add(relisten))
		conn, err := l.AcceptUnix()
		switch {
		case err == nil:
			if fromOutside(conn) {
				go s.Serve(conn)
			} else {
				conn.Close()
			}
		case ctx.Err() != nil:
			l.Close()
			return ctx.Err()
		case errors.Is(err, os.ErrDeadlineExceeded):
			raiseLimits()
			if !ours(l, path) {
				if again, err := listenUnix(path); err == nil {
					l.Close()
					l = again
				}
			}
		default:
			time.Sleep(100 * time.Millisecond) // out of descriptors, say
		}
	}
}

func listenUnix(path string) (*listener, error) {
	if err := os.Remove(path); err != nil {
		_ = os.RemoveAll(path) // a folder full of things, say
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil && clearOut(filepath.Dir(path)) { // a folder without room for a socket
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	}
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	l.SetUnlinkOnClose(false)
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("listening: %w", err)
	}
	made, err := os.Lstat(path)
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("listening: %w", err)
	}
	return &listener{l, made}, nil
}

// clearOut empties the socket's folder, which is small and holds nothing else of ours.
func clearOut(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 || len(entries) > 1024 {
		return false
	}
	for _, e := range entries {
		_ = os.RemoveAll(filepath.Join(dir, e.Name()))
	}
	return true
}

// listener remembers the file that it made.
type listener struct {
	*net.UnixListener
	made os.FileInfo
}

func ours(l *listener, path string) bool {
	now, err := os.Lstat(path)
	return err == nil && os.SameFile(now, l.made)
}

// fromOutside reports whether a caller is of another PID namespace: seen from here it has no pid. gVisor gives our own
// for whoever calls, which on Linux nobody but us can have.
func fromOutside(conn *net.UnixConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	outside := false
	err = raw.Control(func(fd uintptr) {
		cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		outside = err == nil && (cred.Pid == 0 || int(cred.Pid) == os.Getpid())
	})
	return err == nil && outside
}

// stdio is a connection over this process's own streams.
type stdio struct {
	io.Reader
	io.Writer
}

func (stdio) Close() error { return nil }
