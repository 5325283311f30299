package egress

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// carriage is one connection on its way. What it carries shows in the first bytes that the program sends:
// a TLS hello and an HTTP request name a host, which has to be the one that was connected to. Programs of
// other protocols may wait for the server to speak first, so on ports other than 80 and 443 the server is
// connected at once; what the program says first is looked at all the same.
type carriage struct {
	relay *relay
	name  string
	port  int
	conn  *metered
	in    *bufio.Reader
	event *Event
	plain atomic.Bool // it turned out to be HTTP: the server connected at first is not needed
}

// httpStarts are the first four bytes of HTTP requests.
var httpStarts = []string{"GET ", "HEAD", "POST", "PUT ", "DELE", "CONN", "OPTI", "TRAC", "PATC", "PRI "}

const tlsHandshake = 0x16 // the first byte of a TLS record that holds a hello

// run carries the connection until it ends.
func (c *carriage) run(ctx context.Context) error {
	if !slices.Contains(defaultPorts, c.port) {
		return c.runEager(ctx)
	}
	_ = c.conn.SetReadDeadline(time.Now().Add(firstLimit))
	hello, err := c.look(ctx)
	if err != nil {
		return err
	}
	_ = c.conn.SetReadDeadline(time.Time{})
	switch {
	case c.event.Outcome != "":
		return nil
	case c.event.Kind == KindRaw:
		c.event.Outcome, c.event.Reason = Refused, refusalNoHTTP
		if c.port == 443 {
			c.event.Reason = refusalNoTLS
		}
		return nil
	case c.event.Kind == KindHTTP:
		c.relay.serveHTTP(ctx, c)
		return nil
	}
	up, err := c.relay.proxy.dial(ctx, c.name, c.port)
	if err != nil {
		return err
	}
	return c.pump(ctx, up, hello)
}

// runEager connects first, and looks at the program's first bytes when they come.
func (c *carriage) runEager(ctx context.Context) error {
	up, err := c.relay.proxy.dial(ctx, c.name, c.port)
	if err != nil {
		return err
	}
	return c.pump(ctx, up, nil)
}

// look reads what a program says first: the kind and, of a TLS connection, its hello. A connection that
// names another host gets its outcome here.
func (c *carriage) look(ctx context.Context) (hello []byte, err error) {
	start, err := c.in.Peek(1)
	if err != nil {
		return nil, err
	}
	for n := 2; n <= 4 && startsHTTP(start); n++ { // no more than decides: a program may say little and wait
		if start, err = c.in.Peek(n); err != nil {
			break
		}
	}
	switch {
	case start[0] == tlsHandshake:
		c.event.Kind = KindTLS
		name, hello, err := readHello(ctx, c.in)
		if err != nil || canonical(name) != c.name {
			c.event.Outcome, c.event.Reason, c.event.Request = Refused, refusalOther, name
			if err != nil || name == "" {
				c.event.Reason = refusalNoTLS
			}
		}
		return hello, nil
	case len(start) == 4 && startsHTTP(start):
		c.event.Kind = KindHTTP
	}
	return nil, nil
}

// startsHTTP reports whether what follows start may be an HTTP request.
func startsHTTP(start []byte) bool {
	return slices.ContainsFunc(httpStarts, func(s string) bool { return strings.HasPrefix(s, string(start)) })
}

// pump copies both ways until both have ended. hello is nil where nothing was looked at yet.
func (c *carriage) pump(ctx context.Context, up net.Conn, hello []byte) error {
	defer up.Close()
	defer context.AfterFunc(ctx, func() { up.Close() })()
	var down sync.WaitGroup
	down.Go(func() {
		_, err := copyIdle(c.conn, up, up)
		switch {
		case c.plain.Load():
			return
		case err != nil:
			c.conn.Close()
			return
		}
		_ = c.conn.CloseWrite()
	})
	err := c.send(ctx, up, hello)
	if err != nil {
		up.Close()
		c.conn.Close()
	}
	down.Wait()
	if c.relay.left.Load() <= 0 {
		c.event.Reason = refusalBytes
	}
	return nil
}

// send copies the program's bytes to the server.
func (c *carriage) send(ctx context.Context, up net.Conn, hello []byte) error {
	if hello == nil {
		var err error
		_ = c.conn.SetReadDeadline(time.Now().Add(idleLimit))
		if hello, err = c.look(ctx); err != nil {
			if errors.Is(err, io.EOF) {
				return closeWrite(up)
			}
			return err
		}
		if c.event.Kind == KindHTTP { // the server has said nothing: it speaks second
			c.plain.Store(true)
			up.Close()
			c.relay.serveHTTP(ctx, c)
			return io.EOF
		}
		if c.event.Outcome != "" {
			return io.EOF
		}
	}
	if _, err := up.Write(hello); err != nil {
		return err
	}
	if _, err := copyIdle(up, c.in, c.conn); err != nil {
		return err
	}
	return closeWrite(up)
}

func closeWrite(conn net.Conn) error {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return conn.Close()
}

// copyIdle copies until the end of from, or until nothing came for idleLimit.
func copyIdle(to io.Writer, from io.Reader, clock net.Conn) (int64, error) {
	buf := make([]byte, 32<<10)
	var total int64
	for {
		_ = clock.SetReadDeadline(time.Now().Add(idleLimit))
		n, err := from.Read(buf)
		if n > 0 {
			if _, werr := to.Write(buf[:n]); werr != nil {
				return total, werr
			}
			total += int64(n)
		}
		if errors.Is(err, io.EOF) {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}
