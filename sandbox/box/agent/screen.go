package agent

import (
	"bytes"
	"fmt"
	"sync"
	"time"

	"proctor/sandbox"
)

// Bounds of a screen, in bytes.
const (
	sliceLimit    = 4 << 10  // drawn at once, under the lock
	scrolledLimit = 24 << 10 // kept of what scrolled off the top since the last look
	shownLimit    = 38 << 10 // of a screen's own lines
)

// screen draws what a program writes to its terminal, and gives it as text. It stands for a collector: what
// take gives is the lines that scrolled off the top since the last take, and the screen as it is now.
// Safe for concurrent use.
type screen struct {
	mu       sync.Mutex
	em       *emulator
	scrolled []byte
	left     int // lines that scrolled off and were not kept
	last     time.Time
	changed  chan struct{}
	seen     bool // nothing was drawn since the last take
}

// newScreen makes an empty screen. answer takes what the terminal says to the program; it must not block.
func newScreen(rows, cols int, answer func([]byte)) *screen {
	s := &screen{last: time.Now(), seen: true}
	s.em = newEmulator(rows, cols, s.off, answer)
	return s
}

// Write draws. It never fails.
func (s *screen) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; rest = rest[min(len(rest), sliceLimit):] {
		s.draw(rest[:min(len(rest), sliceLimit)])
	}
	return len(b), nil
}

// draw gives the emulator one slice.
func (s *screen) draw(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.seen = time.Now(), false
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
	defer func() {
		if recover() != nil { // what a program draws must not end this process, whatever was overlooked
			s.em = newEmulator(s.em.g.rows, s.em.g.cols, s.off, s.em.answer)
		}
	}()
	s.em.write(b)
}

// off keeps a line that scrolled off the main screen. The lock is held.
func (s *screen) off(line row) {
	s.scrolled = append(append(s.scrolled, line.text()...), line.end()...)
	if len(s.scrolled) < 2*scrolledLimit {
		return
	}
	s.trim()
}

// trim drops the oldest lines beyond the limit. The lock is held.
func (s *screen) trim() {
	over := len(s.scrolled) - scrolledLimit
	if over <= 0 {
		return
	}
	if i := bytes.IndexByte(s.scrolled[over:], '\n'); i >= 0 {
		over += i + 1
	}
	s.left += bytes.Count(s.scrolled[:over], []byte{'\n'})
	s.scrolled = s.scrolled[:copy(s.scrolled, s.scrolled[over:])]
}

// next is closed when something is drawn; already closed where something was drawn since the last take.
func (s *screen) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.seen {
		ready := make(chan struct{})
		close(ready)
		return ready
	}
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}

func (s *screen) lastWrite() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// take gives the lines that scrolled off since the last take and the screen; truncated where lines were lost.
func (s *screen) take() (shown []byte, truncated bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = true
	s.trim()
	truncated = s.left > 0
	if truncated {
		shown = fmt.Appendf(nil, "[%d lines that scrolled off the screen left out here]\n", s.left)
	}
	shown = append(shown, s.scrolled...)
	s.scrolled, s.left = nil, 0
	text, cut := s.em.text(shownLimit)
	return append(shown, text...), truncated || cut
}

// where says the size and where the cursor stands, from 1.
func (s *screen) where() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.em.g
	return fmt.Sprintf("screen of %d rows and %d cols, cursor at row %d, col %d", g.rows, g.cols, g.y+1, g.x+1)
}

func (s *screen) size() (rows, cols int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.em.g.rows, s.em.g.cols
}

// application reports whether the program asked for application cursor keys.
func (s *screen) application() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.em.cursorKeys
}

// resize changes the size, to what sizeOf allows.
func (s *screen) resize(rows, cols int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.em.resize(rows, cols)
}

var _ sink = (*screen)(nil)
var _ sink = (*collector)(nil)

// sink is where a background command's output goes.
type sink interface {
	Write(b []byte) (int, error)
	// next is closed once there is something that take did not give.
	next() <-chan struct{}
	// take gives what is new, at most OutputLimit bytes and a notice, and whether that is not the whole.
	take() (shown []byte, truncated bool)
}

// shows that both halves of a take fit.
const _ = uint(sandbox.OutputLimit - scrolledLimit - shownLimit)
