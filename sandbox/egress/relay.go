package egress

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"proctor/sandbox"
	"proctor/sandbox/egress/index"
)

// Doors of a sandbox with a relay. Their names are no host's.
const (
	doorProxy = "@proxy"
	doorIndex = "@index"
)

// Addresses of the doors inside. pip and uv take an index on loopback without TLS for trustworthy.
var (
	ProxyAddr = netip.MustParseAddrPort("127.0.0.11:3128")
	IndexAddr = netip.MustParseAddrPort("127.0.0.12:80")
)

// IndexEnv is the environment that points programs inside at the package index: pip and uv.
func IndexEnv() map[string]string {
	address := "http://" + IndexAddr.Addr().String() + index.SimplePath
	return map[string]string{"PIP_INDEX_URL": address, "UV_INDEX_URL": address}
}

// relay is one sandbox's. Safe for concurrent use.
type relay struct {
	proxy   *Proxy
	client  Client
	journal journal
	index   http.Handler // nil: no package index
	names   *rate.Limiter
	left    atomic.Int64 // bytes
}

// Doors are the proxy for programs that are told to use one, and the package index.
func (r *relay) Doors() []sandbox.Door {
	doors := []sandbox.Door{{Name: doorProxy, Addr: ProxyAddr}}
	if r.index != nil {
		doors = append(doors, sandbox.Door{Name: doorIndex, Addr: IndexAddr})
	}
	return doors
}

// Resolve gives the ports of an allowed host.
func (r *relay) Resolve(ctx context.Context, name string) []int {
	if r.names.Wait(ctx) != nil {
		return nil
	}
	ports := r.client.Policy.Ports(name)
	if len(ports) == 0 {
		r.journal.refusedName(name)
	}
	return ports
}

// Serve carries a connection.
func (r *relay) Serve(ctx context.Context, name string, port int, conn net.Conn) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	m := &metered{Conn: conn, left: &r.left}
	began := time.Now()
	refuse := func(why string) {
		r.journal.add(Event{Kind: KindRaw, Host: name, Port: port, Outcome: Refused, Reason: why, Took: time.Since(began)})
	}
	if r.left.Load() <= 0 {
		refuse(refusalBytes)
		return
	}
	if r.proxy.open.Add(1) > r.proxy.opts.Connections {
		r.proxy.open.Add(-1)
		refuse(refusalCrowd)
		return
	}
	defer r.proxy.open.Add(-1)
	switch {
	case name == doorProxy:
		r.serveProxy(ctx, m)
	case name == doorIndex && r.index != nil:
		serveOne(ctx, m, r.indexed(r.index))
	default:
		r.carry(ctx, name, port, m, bufio.NewReaderSize(m, 16<<10))
	}
}

// carry takes a connection to where it was opened for, if it may go there and says the same. in is what
// is read of conn.
func (r *relay) carry(ctx context.Context, name string, port int, conn *metered, in *bufio.Reader) {
	name = canonical(name)
	e := Event{Kind: KindRaw, Host: name, Port: port}
	began := time.Now()
	defer func() {
		if e.Kind != KindHTTP { // whose requests are told one by one
			e.Sent, e.Got, e.Took = conn.sent.Load(), conn.got.Load(), time.Since(began)
			r.journal.add(e)
		}
	}()
	if !slices.Contains(r.client.Policy.Ports(name), port) {
		e.Outcome, e.Reason = Refused, refusalHost
		return
	}
	c := &carriage{relay: r, name: name, port: port, conn: conn, in: in, event: &e}
	err := c.run(ctx)
	switch {
	case e.Outcome != "":
	case err == nil:
		e.Outcome = Carried
	case errors.Is(err, errPrivate):
		e.Outcome, e.Reason = Refused, err.Error()
	default:
		e.Outcome, e.Reason = Failed, clip(err.Error())
	}
}

// metered counts what passes, and ends where the sandbox has used up its bytes.
type metered struct {
	net.Conn
	left      *atomic.Int64
	sent, got atomic.Int64
}

var errSpent = errors.New(refusalBytes)

// Read gives what the sandbox sends.
func (m *metered) Read(b []byte) (int, error) {
	n, err := m.Conn.Read(b)
	m.sent.Add(int64(n))
	if m.left.Add(-int64(n)) < 0 && err == nil {
		err = errSpent
	}
	return n, err
}

// Write sends to the sandbox.
func (m *metered) Write(b []byte) (int, error) {
	if m.left.Load() <= 0 {
		return 0, errSpent
	}
	n, err := m.Conn.Write(b)
	m.got.Add(int64(n))
	m.left.Add(-int64(n))
	return n, err
}

// CloseWrite passes the end of a direction on.
func (m *metered) CloseWrite() error {
	if half, ok := m.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return m.Conn.Close()
}
