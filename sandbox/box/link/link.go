package link

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"proctor/sandbox"
	"proctor/sandbox/box"
)

// Conn is what a link needs of its connection; *box.Client is one.
type Conn interface {
	Do(ctx context.Context, call sandbox.Call) (sandbox.Result, error)
	State(ctx context.Context, callID string) (sandbox.CallState, error)
	Exec(ctx context.Context, e sandbox.Exec) (sandbox.ExecResult, error)
	ReadFile(ctx context.Context, path string, limit int64) ([]byte, error)
	Stat(ctx context.Context, path string) (sandbox.FileInfo, error)
	Close() error
}

// Machine is one sandbox as its engine sees it from outside. Safe for concurrent use.
type Machine interface {
	// Fate is nil while the sandbox runs, and a *sandbox.DeadError that says by whose doing it does not; another
	// error where that cannot be told.
	Fate(ctx context.Context) error
	// PID gives the first process by its pid on this host; 0 where the engine cannot know it, and nobody inside
	// could take its place.
	PID(ctx context.Context) (int, error)
	// Kill ends the sandbox by force, and leaves what is needed to say later that it did, by class and reason.
	Kill(ctx context.Context, dead *sandbox.DeadError) error
}

// Dial connects to the agent behind a socket, making sure that the peer is the process pid on the host.
type Dial func(ctx context.Context, socket string, pid int, init box.Init) (Conn, error)

// Link keeps one connection. Safe for concurrent use.
type Link struct {
	engine  string // whose errors these are
	id      string
	socket  string
	machine Machine
	dial    Dial
	settle  time.Duration

	mu     sync.Mutex
	conn   Conn  // nil while none is up
	dead   error // *sandbox.DeadError once the sandbox is known to be gone
	closed bool  // by Close: what dies now dies by our own doing

	relaying *box.Relaying // nil while the sandbox reaches nothing
}

// Options make a Link.
type Options struct {
	Engine  string // its name, for errors
	ID      string // of the sandbox
	Socket  string // of the agent, on the host
	Machine Machine
	Dial    Dial // nil for the agent's own protocol over the socket
	// Settle is how long the machine may take to learn of a death: whoever cannot reach the agent waits so long
	// for its word. 0 for one that knows at once.
	Settle time.Duration
}

// New gives a link that has no connection yet.
func New(o Options) *Link {
	if o.Dial == nil {
		o.Dial = dialBox
	}
	return &Link{engine: o.Engine, id: o.ID, socket: o.Socket, machine: o.Machine, dial: o.Dial, settle: o.Settle}
}

// redialLimit is how long a broken connection may take to come back while the sandbox runs: the agent looks
// after its socket every 5 seconds.
const redialLimit = 12 * time.Second

// ID is the engine's id of the sandbox.
func (l *Link) ID() string { return l.id }

// Alive is nil, or a *sandbox.DeadError that says by whose doing the sandbox died.
func (l *Link) Alive(ctx context.Context) error { return l.Fate(ctx) }

// Fate is Alive; the first word on a death stands.
func (l *Link) Fate(ctx context.Context) error {
	l.mu.Lock()
	dead := l.dead
	l.mu.Unlock()
	if dead != nil {
		return dead
	}
	err := l.machine.Fate(ctx)
	var found *sandbox.DeadError
	if errors.As(err, &found) {
		return l.died(found)
	}
	return err
}

// died settles the sandbox's fate. The first word stands.
func (l *Link) died(found *sandbox.DeadError) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead == nil {
		l.dead = found
		_ = l.hangUpLocked() // nobody is at the other end
		go l.endRelay()
	}
	return l.dead
}

// Detach lets go; the sandbox lives on.
func (l *Link) Detach() error {
	l.endRelay()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hangUpLocked()
}

// End lets go for good: the engine is about to remove the sandbox.
func (l *Link) End() error {
	l.endRelay()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return l.hangUpLocked()
}

// hangUpLocked closes the connection. Preconditions: mu is held.
func (l *Link) hangUpLocked() error {
	if l.conn == nil {
		return nil
	}
	err := l.conn.Close()
	l.conn = nil
	return err
}

// With runs do over the connection. Where that broke, it finds out why: a dead sandbox is a DeadError, and
// one that runs is connected anew, once.
func (l *Link) With(ctx context.Context, do func(Conn) error) error {
	for again := false; ; again = true {
		conn, err := l.connection(ctx)
		if err != nil {
			return err
		}
		if err = do(conn); err == nil || !broken(err) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		l.discard(conn)
		if err := l.Fate(ctx); err != nil {
			return err
		}
		if again {
			return l.severed(ctx, err)
		}
	}
}

// connection gives the connection, made anew where there is none.
func (l *Link) connection(ctx context.Context) (Conn, error) {
	l.mu.Lock()
	conn, dead, closed := l.conn, l.dead, l.closed
	l.mu.Unlock()
	switch {
	case dead != nil:
		return nil, dead
	case closed:
		return nil, fmt.Errorf("%w: %s is closed", sandbox.ErrGone, l.id)
	case conn != nil:
		return conn, nil
	}
	if err := l.Fate(ctx); err != nil {
		return nil, err
	}
	pid, err := l.machine.PID(ctx)
	if err != nil {
		return nil, err
	}
	dialled, cancel := context.WithTimeout(ctx, redialLimit)
	defer cancel()
	if err := l.Connect(dialled, pid, box.Init{}); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, l.severed(ctx, err)
	}
	return l.connection(ctx)
}

// discard forgets a broken connection, unless another caller already has.
func (l *Link) discard(conn Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == conn {
		_ = l.hangUpLocked() // it is broken already
	}
}
