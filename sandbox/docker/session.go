package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"proctor/sandbox"
	"proctor/sandbox/box"
)

// session is the host's hold on one container. It keeps one connection to the box agent and makes it anew
// where it broke while the container runs on. Safe for concurrent use.
type session struct {
	engine *Engine
	id     string
	folder string // the run folder on the host

	mu     sync.Mutex
	conn   boxConn // nil while none is up
	dead   error   // *sandbox.DeadError once the sandbox is known to be gone
	closed bool    // by Close: what dies now dies by our own doing

	relaying *box.Relaying // nil while the sandbox reaches nothing
}

var _ sandbox.Session = (*session)(nil)

func (e *Engine) newSession(id, folder string) *session {
	return &session{engine: e, id: id, folder: folder}
}

// redialLimit is how long a broken connection may take to come back while the container runs: the agent looks
// after its socket every 5 seconds.
const redialLimit = 12 * time.Second

// ID is the container's id.
func (s *session) ID() string { return s.id }

// Do makes a call; over a broken connection, once more: the call's ID keeps it from running twice.
func (s *session) Do(ctx context.Context, call sandbox.Call) (result sandbox.Result, err error) {
	err = s.with(ctx, func(c boxConn) error {
		result, err = c.Do(ctx, call)
		return err
	})
	return result, err
}

// State tells what the sandbox knows of a call.
func (s *session) State(ctx context.Context, callID string) (state sandbox.CallState, err error) {
	err = s.with(ctx, func(c boxConn) error {
		state, err = c.State(ctx, callID)
		return err
	})
	return state, err
}

// Exec runs one argv outside the shell. Without an ID it is not tried again over a broken connection: nobody
// could tell whether it ran.
func (s *session) Exec(ctx context.Context, e sandbox.Exec) (result sandbox.ExecResult, err error) {
	sent := false
	err = s.with(ctx, func(c boxConn) error {
		if e.ID == "" && sent {
			return fmt.Errorf("%w: docker: the connection to %s broke while %.60q ran", sandbox.ErrUnavailable, s.id, e.Argv)
		}
		sent = true
		result, err = c.Exec(ctx, e)
		return err
	})
	return result, err
}

// ReadFile gives at most limit bytes of a regular file.
func (s *session) ReadFile(ctx context.Context, path string, limit int64) (data []byte, err error) {
	err = s.with(ctx, func(c boxConn) error {
		data, err = c.ReadFile(ctx, path, limit)
		return err
	})
	return data, err
}

// Stat describes what a path leads to.
func (s *session) Stat(ctx context.Context, path string) (info sandbox.FileInfo, err error) {
	err = s.with(ctx, func(c boxConn) error {
		info, err = c.Stat(ctx, path)
		return err
	})
	return info, err
}

// Pull gives a file or folder as a tar stream, from the daemon's archive of the container.
func (s *session) Pull(ctx context.Context, path string) (io.ReadCloser, error) {
	body, _, err := s.engine.cli.CopyFromContainer(ctx, s.id, path)
	if err != nil {
		return nil, s.archiveError(ctx, "pull "+path, err)
	}
	return body, nil
}

// Push unpacks a tar stream into a folder.
func (s *session) Push(ctx context.Context, dir string, tar io.Reader) error {
	err := s.engine.cli.CopyToContainer(ctx, s.id, dir, tar, container.CopyToContainerOptions{})
	return s.archiveError(ctx, "push to "+dir, err)
}

// archiveError tells a missing path from a missing container.
func (s *session) archiveError(ctx context.Context, doing string, err error) error {
	if err == nil || !errdefs.IsNotFound(err) {
		return s.engine.wrap(doing, err)
	}
	if _, gone := s.engine.inspectOurs(ctx, s.id); errors.Is(gone, sandbox.ErrGone) {
		return s.fate(ctx)
	}
	return fmt.Errorf("docker: %s: %w", doing, fs.ErrNotExist)
}

// Alive is nil, or a *sandbox.DeadError.
func (s *session) Alive(ctx context.Context) error { return s.fate(ctx) }

// Detach lets go; the sandbox lives on.
func (s *session) Detach() error {
	s.endRelay()
	s.engine.disks.Forget(s.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hangUpLocked()
}

// Close removes the sandbox.
func (s *session) Close(ctx context.Context) error {
	s.endRelay()
	s.engine.disks.Forget(s.id)
	s.mu.Lock()
	s.closed = true
	hangUp := s.hangUpLocked()
	s.mu.Unlock()
	if hangUp != nil {
		s.engine.log.Debug("hang up", "sandbox", s.id, "error", hangUp)
	}
	return s.engine.remove(ctx, s.id, s.folder)
}

// hangUpLocked closes the connection. Preconditions: mu is held.
func (s *session) hangUpLocked() error {
	if s.conn == nil {
		return nil
	}
	err := s.conn.Close()
	s.conn = nil
	return err
}

// with runs do over the connection. Where that broke, it finds out why: a dead sandbox is a DeadError, and
// one that runs is connected anew, once.
func (s *session) with(ctx context.Context, do func(boxConn) error) error {
	for again := false; ; again = true {
		conn, err := s.connection(ctx)
		if err != nil {
			return err
		}
		if err = do(conn); err == nil || !broken(err) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.discard(conn)
		if err := s.fate(ctx); err != nil {
			return err
		}
		if again {
			return s.severed(ctx, err)
		}
	}
}

// connection gives the connection, made anew where there is none.
func (s *session) connection(ctx context.Context) (boxConn, error) {
	s.mu.Lock()
	conn, dead, closed := s.conn, s.dead, s.closed
	s.mu.Unlock()
	switch {
	case dead != nil:
		return nil, dead
	case closed:
		return nil, fmt.Errorf("%w: %s is closed", sandbox.ErrGone, s.id)
	case conn != nil:
		return conn, nil
	}
	if err := s.fate(ctx); err != nil {
		return nil, err
	}
	state, err := s.engine.inspectOurs(ctx, s.id)
	if err != nil {
		return nil, err
	}
	dialled, cancel := context.WithTimeout(ctx, redialLimit)
	defer cancel()
	if err := s.connect(dialled, state.State.Pid, box.Init{}); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, s.severed(ctx, err)
	}
	return s.connection(ctx)
}

// discard forgets a broken connection, unless another caller already has.
func (s *session) discard(conn boxConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == conn {
		_ = s.hangUpLocked() // it is broken already
	}
}
