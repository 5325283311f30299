package box

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"proctor/sandbox"
	"proctor/sandbox/box/wire"
)

// Client is a connection to an agent. It lives until Close or until the agent is lost, after which
// every method gives a *sandbox.DeadError with an empty Class, for the engine to find out by whose
// doing. Safe for concurrent use.
type Client struct {
	welcome wire.Welcome
	conn    io.ReadWriteCloser
	dead    chan struct{} // closed once lost is set

	write sync.Mutex // one frame at a time

	mu      sync.Mutex
	next    uint64
	waiting map[uint64]chan wire.Frame
	lost    error // why the connection ended
}

func newClient(conn io.ReadWriteCloser, w wire.Welcome) *Client {
	c := &Client{welcome: w, conn: conn, dead: make(chan struct{}), waiting: map[uint64]chan wire.Frame{}}
	go c.receive()
	return c
}

// Shell is the path of the shell inside, as the agent tells it.
func (c *Client) Shell() string { return c.welcome.Shell }

// Resumed reports whether the agent had been configured before this connection.
func (c *Client) Resumed() bool { return c.welcome.Resumed }

// Lost is closed when the connection has ended, by Close or by the agent's death.
func (c *Client) Lost() <-chan struct{} { return c.dead }

// Close ends the connection. The agent and all that it runs go on.
func (c *Client) Close() error {
	c.fail(errors.New("closed by the host"))
	return nil
}

// Do makes a call; see sandbox.Session. ErrForgotten where the call ran long ago.
func (c *Client) Do(ctx context.Context, call sandbox.Call) (sandbox.Result, error) {
	if err := checkID(call.ID); err != nil {
		return sandbox.Result{}, err
	}
	return ask(ctx, c, wire.KindDo, wire.EncodeCall(call), wire.DecodeResult)
}

// State tells what the agent knows of the call with this ID.
func (c *Client) State(ctx context.Context, callID string) (sandbox.CallState, error) {
	return ask(ctx, c, wire.KindState, wire.EncodeStrings(callID), wire.DecodeState)
}

// Exec runs one argv outside the shell; see sandbox.Session. Stdin is at most wire.MaxStdin bytes,
// Limit at most wire.MaxStream.
func (c *Client) Exec(ctx context.Context, x sandbox.Exec) (sandbox.ExecResult, error) {
	if len(x.Stdin) > wire.MaxStdin {
		return sandbox.ExecResult{}, fmt.Errorf("%w: a stdin of %d bytes, at most %d can be given", fs.ErrInvalid, len(x.Stdin), wire.MaxStdin)
	}
	return ask(ctx, c, wire.KindExec, wire.EncodeExec(x), wire.DecodeExecResult)
}

// ReadFile gives at most limit bytes (and at most wire.MaxStream) of a regular file, as root inside
// sees it.
func (c *Client) ReadFile(ctx context.Context, path string, limit int64) ([]byte, error) {
	decode := func(b []byte) ([]byte, error) { return b, nil }
	return ask(ctx, c, wire.KindReadFile, wire.ReadFile{Path: path, Limit: limit}.Encode(), decode)
}

// Stat describes what a path leads to.
func (c *Client) Stat(ctx context.Context, path string) (sandbox.FileInfo, error) {
	return ask(ctx, c, wire.KindStat, wire.EncodeStrings(path), wire.DecodeFileInfo)
}

// Forget lets the agent drop the results of calls that the host has recorded. They still count as
// made: a Do with such an ID gives ErrForgotten.
func (c *Client) Forget(ctx context.Context, callIDs ...string) error {
	_, err := ask(ctx, c, wire.KindForget, wire.EncodeStrings(callIDs...), nothing)
	return err
}

// Alive is nil where the agent answers.
func (c *Client) Alive(ctx context.Context) error {
	_, err := ask(ctx, c, wire.KindPing, nil, nothing)
	return err
}

func nothing(b []byte) (struct{}, error) {
	if len(b) > 0 {
		return struct{}{}, wire.ErrPayload
	}
	return struct{}{}, nil
}

func checkID(id string) error {
	if len(id) == 0 || len(id) > 128 {
		return fmt.Errorf("%w: a call's ID has 1 to 128 bytes, not %d", fs.ErrInvalid, len(id))
	}
	return nil
}

// ask sends a request and decodes its reply. A reply that cannot be decoded ends the connection: an
// agent that sends garbage is no agent any more.
func ask[T any](ctx context.Context, c *Client, kind wire.Kind, payload []byte, decode func([]byte) (T, error)) (T, error) {
	var zero T
	if len(payload) > wire.MaxRequest {
		return zero, fmt.Errorf("%w: a request of %d bytes, limit %d", fs.ErrInvalid, len(payload), wire.MaxRequest)
	}
	f, err := c.roundTrip(ctx, kind, payload)
	if err != nil {
		return zero, err
	}
	if f.Kind == wire.KindFail {
		err := wire.DecodeFail(f.Payload)
		if errors.Is(err, wire.ErrPayload) {
			return zero, c.fail(err)
		}
		return zero, err
	}
	v, err := decode(f.Payload)
	if err != nil {
		return zero, c.fail(err)
	}
	return v, nil
}

func (c *Client) roundTrip(ctx context.Context, kind wire.Kind, payload []byte) (wire.Frame, error) {
	if err := ctx.Err(); err != nil {
		return wire.Frame{}, err
	}
	id, answer, err := c.enlist()
	if err != nil {
		return wire.Frame{}, err
	}
	defer c.discharge(id)
	c.write.Lock()
	err = wire.Write(c.conn, wire.Frame{Kind: kind, ID: id, Payload: payload})
	c.write.Unlock()
	if err != nil {
		return wire.Frame{}, c.fail(err)
	}
	select {
	case f := <-answer:
		return f, nil
	case <-ctx.Done():
		return wire.Frame{}, ctx.Err()
	case <-c.dead:
	}
	select { // an answer that came before the end counts
	case f := <-answer:
		return f, nil
	default:
		return wire.Frame{}, c.deadError()
	}
}

func (c *Client) enlist() (uint64, chan wire.Frame, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost != nil {
		return 0, nil, &sandbox.DeadError{Reason: "box agent lost: " + c.lost.Error()}
	}
	c.next++
	answer := make(chan wire.Frame, 1)
	c.waiting[c.next] = answer
	return c.next, answer, nil
}

func (c *Client) discharge(id uint64) {
	c.mu.Lock()
	delete(c.waiting, id)
	c.mu.Unlock()
}

// receive hands replies to those who wait. A reply that nobody waits for is dropped: its caller left.
func (c *Client) receive() {
	r := bufio.NewReaderSize(c.conn, 16<<10)
	for {
		f, err := wire.Read(r, wire.MaxReply)
		if err == nil && f.Kind != wire.KindReply && f.Kind != wire.KindFail {
			err = fmt.Errorf("%w: kind %d instead of a reply", wire.ErrFrame, f.Kind)
		}
		if err != nil {
			c.fail(err)
			return
		}
		c.mu.Lock()
		answer := c.waiting[f.ID]
		delete(c.waiting, f.ID)
		c.mu.Unlock()
		if answer != nil {
			answer <- f
		}
	}
}

// fail ends the connection for the first reason given, and gives the error for the caller.
func (c *Client) fail(reason error) error {
	c.mu.Lock()
	if c.lost == nil {
		c.lost = reason
		close(c.dead)
		c.conn.Close()
	}
	c.mu.Unlock()
	return c.deadError()
}

func (c *Client) deadError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &sandbox.DeadError{Reason: "box agent lost: " + c.lost.Error()}
}
