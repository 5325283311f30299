package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"time"
)

// maxHello bounds a TLS hello, in bytes; with post-quantum keys they reach some 2 KiB.
const maxHello = 64 << 10

var errHello = errors.New("the hello was read")

// readHello reads a TLS client's hello with the standard library's own server, which is stopped before it
// answers. It gives the name that the client asks for, "" where it names none, and the bytes that it took.
func readHello(ctx context.Context, in io.Reader) (name string, hello []byte, err error) {
	var taken bytes.Buffer
	found := false
	cfg := &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		name, found = h.ServerName, true
		return nil, errHello
	}}
	err = tls.Server(listening{in: io.TeeReader(io.LimitReader(in, maxHello), &taken)}, cfg).HandshakeContext(ctx)
	if !found {
		return "", taken.Bytes(), errors.Join(errors.New("not a TLS hello"), err)
	}
	return name, taken.Bytes(), nil
}

// listening is a connection that only listens: what is written to it goes nowhere.
type listening struct{ in io.Reader }

func (l listening) Read(b []byte) (int, error)       { return l.in.Read(b) }
func (l listening) Write(b []byte) (int, error)      { return len(b), nil }
func (l listening) Close() error                     { return nil }
func (l listening) LocalAddr() net.Addr              { return nil }
func (l listening) RemoteAddr() net.Addr             { return nil }
func (l listening) SetDeadline(time.Time) error      { return nil }
func (l listening) SetReadDeadline(time.Time) error  { return nil }
func (l listening) SetWriteDeadline(time.Time) error { return nil }
