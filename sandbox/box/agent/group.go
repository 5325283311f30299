package agent

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// How trees of processes are told apart
//
// A timeout has to kill all that one call started, escapees by setsid and double fork included, and
// nothing that an earlier call left running. cgroups are not ours to make in a container, and a
// parent chain is lost with the first orphan. So each tree carries a tag that the kernel passes on
// through fork and exec: the coredump_filter of /proc, nine bits that nobody looks at. A process
// belongs to a call if it started after it (start time and, within one clock tick, the last pid given
// before it) and carries its tag, or descends from the call's root.
//
// Someone may change the tag of a process. A new orphan with a tag that was never given out counts as
// the foreground call's, so changing it does not help it to survive.

// group is one tree of processes.
type group struct {
	tag     int
	root    int         // pid of the first process; the shell for a call typed into it
	own     bool        // the root itself belongs to the tree
	sinceT  uint64      // clock ticks since boot when it began
	lastPID int         // the last pid given out before it began
	ended   atomic.Bool // the root is gone, and its pid may be another's
	others  bool        // instead of all that: whatever is of no live group, but for root
}

// isNew reports whether p started after g began.
func (g *group) isNew(p proc) bool {
	return p.start > g.sinceT || p.start == g.sinceT && (p.pid > g.lastPID || g.lastPID == 0)
}

const (
	tags       = 512
	defaultTag = 0x33 // the kernel's
	userHz     = 100  // of /proc on every Linux
)

// tagger hands out tags. Safe for concurrent use.
type tagger struct {
	mu     sync.Mutex
	next   int
	issued [tags]bool
	live   [tags]*group // trees that must not be touched by others' timeouts
	self   *os.File     // our own coredump_filter, nil where the kernel has none
	last   *os.File     // holds the last pid given out, nil where unknown
}

func newTagger() *tagger {
	t := &tagger{next: 1}
	t.self, _ = os.OpenFile("/proc/self/coredump_filter", os.O_RDWR, 0)
	t.last, _ = os.Open("/proc/loadavg")
	return t
}

// begin makes a group with a fresh tag. A live one is spared by other groups' kills until ended.
func (t *tagger) begin(live bool) *group {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := &group{sinceT: bootTicks(), lastPID: t.lastPID()}
	for range tags {
		t.next = t.next%(tags-1) + 1
		if t.next != defaultTag && t.live[t.next] == nil {
			break
		}
	}
	g.tag = t.next
	t.issued[g.tag] = true
	if live {
		t.live[g.tag] = g
	}
	return g
}

// end lets go of a live group.
func (t *tagger) end(g *group) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live[g.tag] == g {
		t.live[g.tag] = nil
	}
}

func (t *tagger) known(tag int) (live *group, issued bool) {
	if tag < 0 || tag >= tags {
		return nil, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.live[tag], t.issued[tag]
}

// mark makes children of this process carry the tag from now on.
func (t *tagger) mark(tag int) { writeTag(t.self, tag) }

func writeTag(f *os.File, tag int) {
	if f != nil {
		_, _ = f.WriteAt(fmt.Appendf(nil, "%#x", tag), 0)
	}
}

// lastPID reads the fifth field of /proc/loadavg; 0 where there is none.
func (t *tagger) lastPID() int {
	if t.last == nil {
		return 0
	}
	var buf [128]byte
	text := strings.TrimSpace(string(readStart(t.last, buf[:])))
	pid, _ := strconv.Atoi(text[strings.LastIndexByte(text, ' ')+1:])
	return pid
}

// readStart gives what one read from a file's start puts into buf, nothing where it fails. ReadAt would ask for the end
// of the file too.
func readStart(f *os.File, buf []byte) []byte {
	n, _ := unix.Pread(int(f.Fd()), buf, 0)
	return buf[:max(n, 0)]
}

func bootTicks() uint64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return 0
	}
	return uint64(ts.Nano()) / uint64(time.Second/userHz)
}
