package box

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"proctor/sandbox"
	"proctor/sandbox/box/wire"
)

// Resolver is where programs inside look names up: the address of the resolver that containers of user
// networks have.
var Resolver = netip.MustParseAddrPort("127.0.0.11:53")

// Bounds of a relay on the host's side.
const (
	relayParked  = 2                // connections that wait at the agent for a program to connect
	relayStreams = 64               // programs' connections at once; further ones wait inside
	relayRetry   = 5 * time.Second  // at most, between attempts to reach the agent again
	relayGreet   = 10 * time.Second // for the agent to take the relay
)

// Dialer opens a further connection to an agent, after making sure who is at the other end; see Connect.
type Dialer func(ctx context.Context) (net.Conn, error)

// Connect gives a bare connection to the agent behind a unix socket. ErrImpostor where the listener is not
// the process expectPID.
func Connect(ctx context.Context, socketPath string, expectPID int) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socketPath)
	if err != nil {
		return nil, fmt.Errorf("box: connecting to the agent: %w", err)
	}
	if err := checkPeer(conn.(*net.UnixConn), expectPID); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// Relaying is a relay at work. It lives until Close; where the agent's connections break, it makes them
// anew. Calls have a connection of their own, which it never uses.
type Relaying struct {
	relay  sandbox.Relay
	dial   Dialer
	cancel context.CancelFunc
	work   sync.WaitGroup
}

// Relay lets the programs in the sandbox behind dial reach what relay allows. When it comes back, names
// resolve inside.
func Relay(ctx context.Context, dial Dialer, relay sandbox.Relay) (*Relaying, error) {
	r := &Relaying{relay: relay, dial: dial}
	conn, err := r.greet(ctx)
	if err != nil {
		return nil, err
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r.cancel = cancel
	streams := make(chan struct{}, relayStreams)
	r.work.Go(func() { r.names(life, conn) })
	for range relayParked {
		r.work.Go(func() { r.park(life, streams) })
	}
	return r, nil
}

// Close ends the relay and all connections that it carries.
func (r *Relaying) Close() {
	r.cancel()
	r.work.Wait()
}

// greet opens the relay's own connection.
func (r *Relaying) greet(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, relayGreet)
	defer cancel()
	conn, err := r.dial(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	err = r.introduce(conn)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("box: opening a relay: %w", err)
	}
	return conn, nil
}

func (r *Relaying) introduce(conn net.Conn) error {
	cfg := wire.Relay{Version: wire.Version, Resolver: Resolver}
	for _, d := range r.relay.Doors() {
		cfg.Doors = append(cfg.Doors, wire.Door{Name: d.Name, Addr: d.Addr})
	}
	if err := wire.Write(conn, wire.Frame{Kind: wire.KindRelay, Payload: cfg.Encode()}); err != nil {
		return err
	}
	f, err := wire.Read(conn, 8<<10)
	switch {
	case err != nil:
		return err
	case f.Kind == wire.KindFail:
		return wire.DecodeFail(f.Payload)
	case f.Kind != wire.KindReply || len(f.Payload) > 0:
		return fmt.Errorf("%w: kind %d instead of a reply", wire.ErrFrame, f.Kind)
	}
	return nil
}

// names answers what the agent asks, over one connection after another.
func (r *Relaying) names(ctx context.Context, conn net.Conn) {
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, relayRetry) {
		if conn != nil {
			wait = 50 * time.Millisecond
			r.answer(ctx, conn)
		}
		if !pause(ctx, wait) {
			return
		}
		conn, _ = r.greet(ctx) // the engine tells a dead sandbox; here it is only tried again
	}
}

// answer answers names until the connection ends. One at a time: a flood waits in the socket.
func (r *Relaying) answer(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	for {
		f, err := wire.Read(conn, wire.MaxNotice)
		if err != nil || f.Kind != wire.KindResolve {
			return
		}
		name, err := wire.DecodeName(f.Payload)
		if err != nil {
			return
		}
		ports := r.relay.Resolve(ctx, name)
		if len(ports) > wire.MaxPorts {
			ports = ports[:wire.MaxPorts]
		}
		if wire.Write(conn, wire.Frame{Kind: wire.KindPorts, ID: f.ID, Payload: wire.EncodePorts(ports)}) != nil {
			return
		}
	}
}

// park keeps one connection waiting at the agent, and carries what comes.
func (r *Relaying) park(ctx context.Context, streams chan struct{}) {
	for wait := 50 * time.Millisecond; ; {
		select {
		case streams <- struct{}{}:
		case <-ctx.Done():
			return
		}
		conn, to, err := r.wait(ctx)
		if err != nil {
			<-streams
			if !pause(ctx, wait) {
				return
			}
			wait = min(2*wait, relayRetry)
			continue
		}
		wait = 50 * time.Millisecond
		r.work.Go(func() {
			defer func() { <-streams }()
			defer conn.Close()
			r.relay.Serve(ctx, to.Name, to.Port, conn)
		})
	}
}

// wait parks a connection until the agent says what it is for.
func (r *Relaying) wait(ctx context.Context) (net.Conn, wire.Dial, error) {
	conn, err := r.dial(ctx)
	if err != nil {
		return nil, wire.Dial{}, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	to, err := awaitDial(conn)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		return nil, wire.Dial{}, err
	}
	return conn, to, nil
}

func awaitDial(conn net.Conn) (wire.Dial, error) {
	if err := wire.Write(conn, wire.Frame{Kind: wire.KindPark}); err != nil {
		return wire.Dial{}, err
	}
	f, err := wire.Read(conn, wire.MaxNotice) // reads not a byte of the stream that follows
	if err != nil {
		return wire.Dial{}, err
	}
	if f.Kind != wire.KindDial {
		return wire.Dial{}, errors.Join(wire.ErrFrame, fmt.Errorf("kind %d instead of a dial", f.Kind))
	}
	return wire.DecodeDial(f.Payload)
}

// pause waits; false where ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
