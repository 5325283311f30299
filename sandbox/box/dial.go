package box

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"proctor/sandbox/box/wire"
)

// Init configures an agent on its first connection; see wire.Init.
type Init = wire.Init

// ErrForgotten says that a call ran and that the agent no longer keeps its result.
var ErrForgotten = wire.ErrForgotten

// ErrImpostor says that the process behind the socket is not the sandbox's init: something inside
// has put itself in the agent's place.
var ErrImpostor = errors.New("the listener on the box socket is not the sandbox's init")

// handshakeTimeout bounds Hello and Welcome where ctx does not: the agent starts a shell meanwhile.
const handshakeTimeout = 30 * time.Second

// Options say how to connect.
type Options struct {
	ExpectPID int  // the init's pid on the host; 0 to skip the check
	Init      Init // taken by the agent on its first connection, ignored later
}

// Dial connects to the agent behind a unix socket. Errors: ErrImpostor; sandbox.ErrNoShell where the
// image has none; else what the connection gave, for the caller to try again while the sandbox starts.
func Dial(ctx context.Context, socketPath string, o Options) (*Client, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socketPath)
	if err != nil {
		return nil, fmt.Errorf("box: connecting to the agent: %w", err)
	}
	if err := checkPeer(conn.(*net.UnixConn), o.ExpectPID); err != nil {
		conn.Close()
		return nil, err
	}
	return handshake(ctx, conn, o.Init)
}

// Open speaks to an agent over its attached stdin and stdout, as remote engines do. It owns conn.
func Open(ctx context.Context, conn io.ReadWriteCloser, init Init) (*Client, error) {
	return handshake(ctx, conn, init)
}

func checkPeer(conn *net.UnixConn, expect int) error {
	if expect == 0 {
		return nil
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return fmt.Errorf("box: %w", err)
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return fmt.Errorf("box: %w", err)
	}
	if credErr != nil {
		return fmt.Errorf("box: asking who listens: %w", credErr)
	}
	if int(cred.Pid) != expect {
		return fmt.Errorf("box: %w (pid %d, want %d)", ErrImpostor, cred.Pid, expect)
	}
	return nil
}

// handshake sends Hello and waits for Welcome. It closes conn on any error.
func handshake(ctx context.Context, conn io.ReadWriteCloser, init Init) (*Client, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	welcome, err := greet(conn, init)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		if ctx.Err() != nil {
			err = fmt.Errorf("%w (%w)", err, ctx.Err())
		}
		return nil, fmt.Errorf("box: greeting the agent: %w", err)
	}
	return newClient(conn, welcome), nil
}

func greet(conn io.ReadWriter, init Init) (wire.Welcome, error) {
	hello := wire.Hello{Version: wire.Version, Init: init}
	if err := wire.Write(conn, wire.Frame{Kind: wire.KindHello, Payload: hello.Encode()}); err != nil {
		return wire.Welcome{}, err
	}
	f, err := wire.Read(conn, 64<<10)
	if err != nil {
		return wire.Welcome{}, err
	}
	switch f.Kind {
	case wire.KindFail:
		return wire.Welcome{}, wire.DecodeFail(f.Payload)
	case wire.KindWelcome:
	default:
		return wire.Welcome{}, fmt.Errorf("%w: kind %d instead of a welcome", wire.ErrFrame, f.Kind)
	}
	w, err := wire.DecodeWelcome(f.Payload)
	if err == nil && w.Version != wire.Version {
		err = fmt.Errorf("the agent speaks version %d, this host %d: rebuild both from one commit", w.Version, wire.Version)
	}
	return w, err
}
