package agent

import (
	"bytes"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	"proctor/sandbox"
)

// Of an output too long to show, this much of each end is kept, in bytes.
const (
	headLimit = sandbox.OutputLimit / 2
	tailLimit = sandbox.OutputLimit - headLimit
	lineSlack = 4 << 10 // how far an end is cut back to whole lines
)

// collector takes the output of a command: up to OutputLimit bytes as they are, beyond that head and
// tail in memory and the whole in a spill file. A 1 GiB output costs as much memory as one of 128 KiB.
// Safe for concurrent use.
type collector struct {
	spillTo spillFolder

	mu      sync.Mutex
	total   int64  // bytes since the last take
	head    []byte // all of it up to OutputLimit, then its first headLimit
	tail    []byte // the latest; empty until the head is full
	spill   *spill
	last    time.Time     // when the last bytes came
	changed chan struct{} // closed at the next write; nil where nobody waits
}

func newCollector(to spillFolder) *collector { return &collector{spillTo: to, last: time.Now()} }

// Write takes output. It never fails.
func (c *collector) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(b)
	c.last = time.Now()
	if c.changed != nil && n > 0 {
		close(c.changed)
		c.changed = nil
	}
	if c.spill == nil && c.total+int64(n) <= sandbox.OutputLimit {
		c.head = append(c.head, b...)
		c.total += int64(n)
		return n, nil
	}
	c.overflow(b)
	c.total += int64(n)
	return n, nil
}

func (c *collector) overflow(b []byte) {
	if c.spill == nil {
		c.spill = c.spillTo.create()
		c.spill.write(c.head)
		c.tail = make([]byte, 0, 2*tailLimit)
		if len(c.head) > headLimit {
			c.tail = append(c.tail, c.head[headLimit:]...)
			c.head = c.head[:headLimit]
		}
	}
	c.spill.write(b)
	if room := headLimit - len(c.head); room > 0 {
		c.head = append(c.head, b[:min(room, len(b))]...)
		b = b[min(room, len(b)):]
	}
	if len(b) >= tailLimit {
		c.tail = append(c.tail[:0], b[len(b)-tailLimit:]...)
		return
	}
	if len(c.tail)+len(b) > cap(c.tail) {
		keep := copy(c.tail, c.tail[len(c.tail)-(tailLimit-len(b)):])
		c.tail = c.tail[:keep]
	}
	c.tail = append(c.tail, b...)
}

// lastWrite is when output last came, or when c was made.
func (c *collector) lastWrite() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// next is closed at the next write; already closed where there is untaken output.
func (c *collector) next() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.total > 0 {
		ready := make(chan struct{})
		close(ready)
		return ready
	}
	if c.changed == nil {
		c.changed = make(chan struct{})
	}
	return c.changed
}

// take gives what came since the last take, as it is to be shown, and whether that is not the whole.
func (c *collector) take() (shown []byte, truncated bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	head, tail, total, s := c.head, c.tail, c.total, c.spill
	c.head, c.tail, c.total, c.spill = nil, nil, 0, nil
	if s == nil {
		return head, false
	}
	s.close()
	tail = tail[max(0, len(tail)-tailLimit):]
	head, tail = cutHead(head), cutTail(tail)
	left := total - int64(len(head)) - int64(len(tail))
	return bytes.Join([][]byte{head, notice(head, left, s), tail}, nil), true
}

// notice is the line between head and tail.
func notice(head []byte, left int64, s *spill) []byte {
	var b []byte
	if len(head) > 0 && head[len(head)-1] != '\n' {
		b = append(b, '\n')
	}
	if s.err != nil {
		return fmt.Appendf(b, "[%d bytes left out here; keeping the whole output failed: %v]\n", left, s.err)
	}
	return fmt.Appendf(b, "[%d bytes left out here; the whole output is in the file %s ]\n", left, s.path)
}

// cutHead cuts back to the end of a line where one is near, else to the end of a character.
func cutHead(b []byte) []byte {
	if i := bytes.LastIndexByte(b, '\n'); i >= 0 && i >= len(b)-lineSlack {
		return b[:i+1]
	}
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if tail := b[len(b)-i:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// cutTail cuts to the start of a line where one is near, else to the start of a character.
func cutTail(b []byte) []byte {
	if i := bytes.IndexByte(b[:min(len(b), lineSlack)], '\n'); i >= 0 && i+1 < len(b) {
		return b[i+1:]
	}
	for i := 0; i < utf8.UTFMax && i < len(b); i++ {
		if utf8.RuneStart(b[i]) {
			return b[i:]
		}
	}
	return b
}
