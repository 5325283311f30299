package docker

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"proctor/sandbox"
	"proctor/sandbox/box"
	"proctor/sandbox/confine"
)

// boxConn is what a session needs of its connection to the box agent; *box.Client is one.
type boxConn interface {
	Do(ctx context.Context, call sandbox.Call) (sandbox.Result, error)
	State(ctx context.Context, callID string) (sandbox.CallState, error)
	Exec(ctx context.Context, e sandbox.Exec) (sandbox.ExecResult, error)
	ReadFile(ctx context.Context, path string, limit int64) ([]byte, error)
	Stat(ctx context.Context, path string) (sandbox.FileInfo, error)
	Close() error
}

// dialFunc connects to the agent at a socket, making sure that the peer is the process pid on the host.
type dialFunc func(ctx context.Context, socket string, pid int, init box.Init) (boxConn, error)

// boxInit gives the sandbox's environment, the image's overlaid with the spec's, and the user.
func boxInit(spec sandbox.Spec, image sandbox.Image) box.Init {
	env := map[string]string{}
	for _, pair := range image.Env {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	maps.Copy(env, spec.Env)
	init := box.Init{User: or(spec.User, image.User), Workdir: spec.Workdir}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		init.Env = append(init.Env, name+"="+env[name])
	}
	return init
}

// connect dials the agent until it answers, ctx ends, or the container does.
func (s *session) connect(ctx context.Context, pid int, init box.Init) error {
	socket := filepath.Join(s.folder, confine.SocketName)
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		conn, err := s.engine.dial(ctx, socket, pid, init)
		if err == nil {
			return s.adopt(conn)
		}
		if !notYet(err) {
			return err
		}
		if wait > 10*time.Millisecond {
			if gone := s.fate(ctx); gone != nil {
				return gone
			}
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(wait):
		}
	}
}

// adopt makes conn the session's connection; where another caller was quicker, or the session was closed
// meanwhile, conn is not needed.
func (s *session) adopt(conn boxConn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil || s.closed || s.dead != nil {
		return conn.Close()
	}
	s.conn = conn
	return nil
}
