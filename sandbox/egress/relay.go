package egress

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"proctor/sandbox"
)

// doorProxy is a door of every sandbox with a relay. Doors' names are no host's.
const doorProxy = "@proxy"

// ProxyAddr is the proxy's address inside.
var ProxyAddr = netip.MustParseAddrPort("127.0.0.11:3128")

// relay is one sandbox's. Safe for concurrent use.
type relay struct {
	proxy   *Proxy
	client  Client
	journal journal
	indexes []opening
	names   *rate.Limiter
	left    atomic.Int64 // bytes
}

// Doors are the proxy for programs that are told to use one, and the package indexes.
func (r *relay) Doors() []sandbox.Door {
	doors := []sandbox.Door{{Name: doorProxy, Addr: ProxyAddr}}
	for _, o := range r.indexes {
		doors = append(doors, o.door)
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
	o, indexed := r.opening(name)
	switch {
	case name == doorProxy:
		r.serveProxy(ctx, m)
	case indexed:
		serveOne(ctx, m, r.told(o.kind, o.host, 0, o.handler))
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
