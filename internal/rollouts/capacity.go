package rollouts

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Limits of the queue for places.
const (
	// DefaultQueueWait is how long a request that queues waits where it does not say.
	DefaultQueueWait = 10 * time.Minute
	maxQueueWait     = time.Hour
	maxQueued        = 4096 // creations; each holds a connection and some KiB
)

// ticket is a creation that waits for a place.
type ticket struct {
	turn chan struct{} // closed when it has one
	err  error         // set before turn is closed: why it gets none
}

// takeRoom takes one of the places for live rollouts. Where there is none it waits for one in the order in
// which creations came, no longer than wait; 0 does not wait. So does a creation that comes while others wait,
// though a place be free for a moment: no late comer overtakes.
func (m *Manager) takeRoom(ctx context.Context, wait time.Duration) error {
	m.mu.Lock()
	if len(m.queue) == 0 && m.freeLocked() {
		m.room++
		m.mu.Unlock()
		return nil
	}
	if wait <= 0 || len(m.queue) >= maxQueued {
		err := m.fullLocked()
		m.mu.Unlock()
		return err
	}
	t := &ticket{turn: make(chan struct{})}
	m.queue = append(m.queue, t)
	m.opt.Observer.queued(len(m.queue))
	m.mu.Unlock()
	began := time.Now()
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	var given error
	select {
	case <-t.turn:
		m.opt.Observer.waited(time.Since(began), t.err == nil)
		return t.err
	case <-timeout.C:
	case <-ctx.Done():
		given = asError(CodeInterrupted, "the caller left while the creation waited for a place", ctx.Err())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := slices.Index(m.queue, t); i >= 0 {
		m.queue = slices.Delete(m.queue, i, i+1)
		m.opt.Observer.queued(len(m.queue))
	} else if t.err == nil { // the turn came at the same moment
		if given == nil {
			return nil
		}
		m.room--
		m.admitLocked()
	}
	m.opt.Observer.waited(time.Since(began), false)
	if given == nil {
		given = m.fullLocked()
	}
	return given
}

// freeLocked reports whether there is a place. Preconditions: mu is held.
func (m *Manager) freeLocked() bool { return len(m.live)+m.room < m.opt.MaxRollouts }

// fullLocked refuses a creation. The more wait already, the later is it worth asking again. Preconditions:
// mu is held.
func (m *Manager) fullLocked() *Error {
	after := min(5*time.Second+time.Duration(len(m.queue))*100*time.Millisecond, time.Minute)
	detail := "the server holds as many rollouts as it may; grade or delete some, ask with queue to wait for a place, or raise max-rollouts"
	if n := len(m.queue); n > 0 {
		detail += fmt.Sprintf("; %d wait for a place", n)
	}
	return &Error{Code: CodeAtCapacity, Retry: true, After: after, Detail: detail}
}

// admitLocked gives free places to those who have waited longest. Preconditions: mu is held.
func (m *Manager) admitLocked() {
	for len(m.queue) > 0 && m.freeLocked() {
		m.room++
		close(m.queue[0].turn)
		m.queue = m.queue[1:]
		m.opt.Observer.queued(len(m.queue))
	}
}

// turnAwayLocked tells all who wait that the server stops. Preconditions: mu is held.
func (m *Manager) turnAwayLocked() {
	for _, t := range m.queue {
		t.err = errDraining()
		close(t.turn)
	}
	m.queue = nil
	m.opt.Observer.queued(0)
}

// freeRoom gives the place of a creation back.
func (m *Manager) freeRoom() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.room--
	m.admitLocked()
}

// house counts a creation's place among the live from now on.
func (m *Manager) house(id string, r *rollout) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.live[id] = r
	m.room--
}

// unhouse is the way back of house.
func (m *Manager) unhouse(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.live, id)
	m.room++
}

// Capacity is how full the server is.
type Capacity struct {
	Live   int `json:"live"`   // rollouts that have a sandbox, and those being made
	Max    int `json:"max"`    // as many as there may be
	Queued int `json:"queued"` // creations that wait for a place
}

// Capacity tells how full the server is.
func (m *Manager) Capacity() Capacity {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Capacity{Live: len(m.live) + m.room, Max: m.opt.MaxRollouts, Queued: len(m.queue)}
}

// patience gives how long a request waits for a place; 0 not at all.
func (req *CreateRequest) patience() time.Duration {
	switch {
	case req.WaitS > 0:
		return time.Duration(req.WaitS) * time.Second
	case req.Queue:
		return DefaultQueueWait
	}
	return 0
}

// checkPatience holds it against what it may be.
func (req *CreateRequest) checkPatience() error {
	if req.WaitS < 0 || time.Duration(req.WaitS)*time.Second > maxQueueWait {
		return refuse(CodeInvalidField, "field wait_s: %d is out of range; use 1 to %d seconds, or leave it out", req.WaitS, int(maxQueueWait.Seconds()))
	}
	return nil
}
