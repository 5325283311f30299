package witness

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// openingLimit bounds what is kept of one call. More tell nothing new.
const openingLimit = 64

// Options say what is watched.
type Options struct {
	// Paths are the protected ones, absolute as the sandbox sees them. Those that are not there are
	// passed over: what is made there later is the agent's own.
	Paths []string
	// Deny refuses opens, rather than only telling of them.
	Deny bool
}

// Watcher watches one sandbox's protected files. Close it. Safe for concurrent use.
type Watcher struct {
	hub    *Hub
	pid    int // of the sandbox's first process
	root   int // O_PATH descriptor of the sandbox's root
	space  string
	deny   bool
	marked []string         // of Options.Paths, those that are there
	known  map[inode]string // what was marked

	mu      sync.Mutex
	spans   []*span // open ones, in the order of their beginning
	between []Opening
	harness map[int]int64 // windows in which the harness runs something, by number: when each began
	next    int
	closed  bool
}

type inode struct{ dev, ino uint64 }

// span is a call that runs.
type span struct {
	Span
	began int64 // clock ticks since the machine started
	seen  []Opening
}

// Watch marks the protected files of the sandbox whose first process has the pid on this host. An
// error means that nothing is watched.
func (h *Hub) Watch(pid int, o Options) (*Watcher, error) {
	space, err := namespaceOf(pid)
	if err != nil {
		return nil, fmt.Errorf("witness: %w", err)
	}
	if own, err := namespaceOf(unix.Getpid()); err != nil || own == space {
		return nil, fmt.Errorf("witness: process %d is no sandbox: it shares our files", pid)
	}
	root, err := unix.Open(fmt.Sprintf("/proc/%d/root", pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("witness: open the sandbox's root: %w", err)
	}
	w := &Watcher{hub: h, pid: pid, root: root, space: space, deny: o.Deny, known: map[inode]string{}, harness: map[int]int64{}}
	if err := w.mark(o.Paths); err != nil {
		_ = unix.Close(root)
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.watchers[space] != nil {
		_ = unix.Close(root)
		return nil, fmt.Errorf("witness: process %d is watched already, or watching has ended", pid)
	}
	h.watchers[space] = w
	return w, nil
}

// Marked gives those of the protected paths that were there.
func (w *Watcher) Marked() []string { return slices.Clone(w.marked) }

// Kind implements monitor.Witness.
func (w *Watcher) Kind() string { return Full }

// Begin implements monitor.Witness: opens from now on belong to the call, until the function is
// called, which gives them, each once. An agent's call is also given what was opened since the last
// one ended, by processes that were left behind.
func (w *Watcher) Begin(s Span) func() []Opening {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := &span{Span: s, began: ticks()}
	if !s.Harness {
		now.seen, w.between = w.between, nil
	}
	w.spans = append(w.spans, now)
	return func() []Opening {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.spans = slices.DeleteFunc(w.spans, func(o *span) bool { return o == now })
		return now.seen
	}
}

// Harness says that the harness runs something of its own in the sandbox, until the function is
// called. What it opens is no call's.
func (w *Watcher) Harness() func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next++
	n := w.next
	w.harness[n] = ticks()
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.harness, n)
	}
}

// Close stops watching this sandbox. Its marks go with its file system.
func (w *Watcher) Close() error {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return nil
	}
	w.closed = true
	w.mu.Unlock()
	w.hub.mu.Lock()
	delete(w.hub.watchers, w.space)
	w.hub.mu.Unlock()
	return unix.Close(w.root)
}

// opened looks at one open by a process of the sandbox, and says whether to refuse it.
func (w *Watcher) opened(fd, pid int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	current := w.current()
	if pid == w.pid && (current == nil || !current.File) || current != nil && current.Harness || w.byHarness(pid) {
		return false
	}
	p := look(pid)
	o := Opening{Path: w.nameOf(fd), Program: p.exe, Line: p.line()}
	folder := isFolder(fd)
	o.Walk = pid != w.pid && walker(p.exe, folder) && !w.named(p)
	// The first process answers for the agent's file tools: what it cannot open it words itself, and
	// the decoy words it better.
	o.Denied = w.deny && pid != w.pid
	into := &w.between
	if current != nil {
		into = &current.seen
		o.Earlier = p.parent != w.pid && pid != w.pid && p.started < current.began-margin
	} else {
		o.Earlier = true
	}
	if len(*into) < openingLimit && !slices.Contains(*into, o) {
		*into = append(*into, o)
	}
	return o.Denied
}

// current gives the call that an open belongs to: the oldest that is no control call, else the
// oldest. The lock is held.
func (w *Watcher) current() *span {
	for _, s := range w.spans {
		if !s.Control {
			return s
		}
	}
	if len(w.spans) > 0 {
		return w.spans[0]
	}
	return nil
}

// byHarness reports whether pid belongs to what the harness runs now: below a child of the first
// process that was started since the harness began. The lock is held.
func (w *Watcher) byHarness(pid int) bool {
	if len(w.harness) == 0 {
		return false
	}
	since := int64(1<<63 - 1)
	for _, began := range w.harness {
		since = min(since, began)
	}
	for range 64 { // a chain of processes that is longer is none of the harness's
		p := look(pid)
		if p.parent == w.pid {
			return p.started >= since-margin
		}
		if p.parent <= 1 {
			return false
		}
		pid = p.parent
	}
	return false
}

// margin is how far two clocks of 100 ticks a second may disagree.
const margin = 2

// ticks gives the time since the machine started as /proc/PID/stat counts it, 100 a second
// (USER_HZ, which is 100 on every architecture that Go knows but alpha).
func ticks() int64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return 0
	}
	return t.Nano() / int64(10*time.Millisecond)
}
