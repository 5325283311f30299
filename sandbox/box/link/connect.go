package link

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"proctor/sandbox"
	"proctor/sandbox/box"
)

// dialBox connects through package box.
func dialBox(ctx context.Context, socket string, pid int, init box.Init) (Conn, error) {
	client, err := box.Dial(ctx, socket, box.Options{ExpectPID: pid, Init: init})
	if err != nil {
		return nil, err // not client: a nil *box.Client would be no nil Conn
	}
	return client, nil
}

// notYet reports whether dialling again may help: the agent has not opened its socket yet, or somebody inside
// took its place, which the agent notices and mends.
func notYet(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) || blocked(err)
}

// broken reports whether err means that the connection is of no more use: package box tells so by a
// DeadError that leaves open by whose doing.
func broken(err error) bool {
	var dead *sandbox.DeadError
	return errors.As(err, &dead) && dead.Class == ""
}

// Init gives the sandbox's environment, the image's overlaid with the spec's, and the user.
func Init(spec sandbox.Spec, image sandbox.Image) box.Init {
	env := map[string]string{}
	for _, pair := range image.Env {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	maps.Copy(env, spec.Env)
	init := box.Init{User: spec.User, Workdir: spec.Workdir}
	if init.User == "" {
		init.User = image.User
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		init.Env = append(init.Env, name+"="+env[name])
	}
	return init
}

// Connect dials the agent until it answers, ctx ends, or the sandbox does.
func (l *Link) Connect(ctx context.Context, pid int, init box.Init) error {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		conn, err := l.dial(ctx, l.socket, pid, init)
		if err == nil {
			return l.adopt(conn)
		}
		if !notYet(err) {
			return err
		}
		if wait > 10*time.Millisecond {
			if gone := l.Fate(ctx); gone != nil {
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

// adopt makes conn the link's connection; where another caller was quicker, or the session was closed
// meanwhile, conn is not needed.
func (l *Link) adopt(conn Conn) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil || l.closed || l.dead != nil {
		return conn.Close()
	}
	l.conn = conn
	return nil
}

// Resume connects to the agent of a sandbox made earlier, within ready. One whose place something else has taken is
// ended, as severed.
func (l *Link) Resume(ctx context.Context, ready time.Duration) error {
	pid, err := l.machine.PID(ctx)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, ready)
	defer cancel()
	err = l.Connect(limited, pid, box.Init{})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case blocked(err):
		return l.severed(ctx, err)
	}
	return l.NotReady(ctx, err)
}

// blocked reports whether something else lies where the agent listens, which the host never puts there. An agent of
// another version, or one that is slow, is not that.
func blocked(err error) bool {
	var op *net.OpError
	return errors.Is(err, box.ErrImpostor) || errors.As(err, &op) && op.Op == "dial"
}

// Condemn ends a sandbox for what the host saw it do.
func (l *Link) Condemn(ctx context.Context, found *sandbox.DeadError) error {
	dead := l.died(found)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killLimit)
	defer cancel()
	if err := l.machine.Kill(ctx, found); err != nil {
		return errors.Join(dead, err)
	}
	return dead
}

// killLimit bounds the killing of a sandbox that nobody can watch.
const killLimit = 60 * time.Second

// severed ends a sandbox that runs but whose agent cannot be reached: only root inside can have done that (it
// unlinked the socket, or starved the agent). What cannot be watched must not go on.
func (l *Link) severed(ctx context.Context, cause error) error {
	if err := l.settled(ctx); err != nil {
		return err
	}
	return l.Condemn(ctx, &sandbox.DeadError{Class: sandbox.FailureModel, Reason: "its agent was cut off from inside: " + cause.Error()})
}

// settled is Fate once the machine has had its time to learn of a death.
func (l *Link) settled(ctx context.Context) error {
	began := time.Now()
	for wait := 50 * time.Millisecond; ; wait *= 2 {
		if err := l.Fate(ctx); err != nil {
			return err
		}
		if time.Since(began) >= l.settle || ctx.Err() != nil {
			return nil
		}
		time.Sleep(min(wait, l.settle-time.Since(began)))
	}
}

// NotReady says why a new or attached sandbox's agent did not answer.
func (l *Link) NotReady(ctx context.Context, cause error) error {
	for _, known := range []error{sandbox.ErrNoShell, sandbox.ErrStart} {
		if errors.Is(cause, known) {
			return cause
		}
	}
	look, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := l.settled(look); err != nil {
		return fmt.Errorf("%s: the box agent of %s did not come up: %w (%v)", l.engine, l.id, err, cause)
	}
	return fmt.Errorf("%w: %s: the box agent of %s does not answer: %v", sandbox.ErrUnavailable, l.engine, l.id, cause)
}
