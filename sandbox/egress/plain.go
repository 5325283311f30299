package egress

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Bounds of a connection that carries HTTP in the plain.
const (
	maxHeader   = 64 << 10
	headerLimit = 30 * time.Second
	keepLimit   = 2 * time.Minute // between requests
)

// serveHTTP carries requests in plain HTTP, each looked at: all must name the host that was connected to.
func (r *relay) serveHTTP(ctx context.Context, c *carriage) {
	forward, done := r.forwarder(c.name, c.port)
	defer done()
	serveOne(ctx, &buffered{metered: c.conn, in: c.in}, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		name, port, ok := splitTarget(req.Host, 80)
		if !ok || name != c.name || port != c.port {
			r.journal.add(Event{Kind: KindHTTP, Host: c.name, Port: c.port, Outcome: Refused, Reason: refusalOther, Request: req.Host})
			panic(http.ErrAbortHandler)
		}
		r.told(KindHTTP, c.name, c.port, forward).ServeHTTP(w, req)
	}))
}

// forwarder passes requests on to one host.
func (r *relay) forwarder(name string, port int) (http.Handler, func()) {
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return r.proxy.dial(ctx, name, port) },
		// The sandbox is to see what the server sends, compressed or not.
		DisableCompression: true, MaxIdleConns: 2, IdleConnTimeout: keepLimit,
	}
	host := name
	if port != 80 {
		host = net.JoinHostPort(name, strconv.Itoa(port))
	}
	return &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(req *httputil.ProxyRequest) {
			req.Out.URL.Scheme, req.Out.URL.Host, req.Out.Host = "http", host, host
			if _, set := req.In.Header["User-Agent"]; !set {
				req.Out.Header.Set("User-Agent", "") // Go would add its own
			}
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if failed, ok := w.(*answer); ok {
				failed.err = err
			}
			panic(http.ErrAbortHandler) // as a connection that broke
		},
	}, transport.CloseIdleConnections
}

// serveProxy is the door for programs that are told of a proxy: CONNECT, and requests in absolute form.
func (r *relay) serveProxy(ctx context.Context, conn *metered) {
	serveOne(ctx, conn, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodConnect {
			r.connect(ctx, w, req, conn)
			return
		}
		name, port, ok := splitTarget(req.URL.Host, 80)
		if !ok || req.URL.Scheme != "http" {
			http.Error(w, "Bad Request", http.StatusBadRequest)
			return
		}
		if !r.mayProxy(name, port) {
			unreachable(w)
			return
		}
		forward, done := r.forwarder(name, port)
		defer done()
		r.told(KindHTTP, name, port, forward).ServeHTTP(w, req)
	}))
}

// connect opens a tunnel. What goes through it is looked at as on any other connection.
func (r *relay) connect(ctx context.Context, w http.ResponseWriter, req *http.Request, conn *metered) {
	name, port, ok := splitTarget(req.Host, 443)
	if !ok || !r.mayProxy(name, port) {
		unreachable(w)
		return
	}
	raw, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer raw.Close()
	if _, err := io.WriteString(raw, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	_ = raw.SetDeadline(time.Time{})
	r.carry(ctx, name, port, conn, bufio.NewReaderSize(rw.Reader, 16<<10))
}

// mayProxy reports whether the policy has a target, and tells of one that it has not.
func (r *relay) mayProxy(name string, port int) bool {
	ports := r.client.Policy.Ports(name)
	if len(ports) == 0 {
		r.journal.refusedName(name)
	}
	return slices.Contains(ports, port)
}

// unreachable answers as a proxy does that cannot resolve a name.
func unreachable(w http.ResponseWriter) {
	http.Error(w, "Service Unavailable", http.StatusServiceUnavailable)
}

// told serves with h and tells of each request.
func (r *relay) told(kind, host string, port int, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		a := &answer{ResponseWriter: w, status: http.StatusOK}
		body := &counted{ReadCloser: req.Body}
		req.Body = body
		e := Event{Kind: kind, Host: host, Port: port, Request: req.Method + " " + req.URL.RequestURI(), Outcome: Carried}
		began := time.Now()
		defer func() {
			e.Status, e.Sent, e.Got, e.Took = a.status, body.n, a.n, time.Since(began)
			if a.err != nil {
				e.Outcome, e.Reason, e.Status = Failed, clip(a.err.Error()), 0
				if errors.Is(a.err, errPrivate) {
					e.Outcome = Refused
				}
			}
			r.journal.add(e)
		}()
		h.ServeHTTP(a, req)
	})
}

// answer notes what an answer was.
type answer struct {
	http.ResponseWriter
	status int
	n      int64
	err    error
}

// Unwrap lets http.ResponseController find the writer below.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader notes the status.
func (a *answer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(b []byte) (int, error) {
	n, err := a.ResponseWriter.Write(b)
	a.n += int64(n)
	return n, err
}

type counted struct {
	io.ReadCloser
	n int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.ReadCloser.Read(b)
	c.n += int64(n)
	return n, err
}

// buffered is a connection of which something was read ahead.
type buffered struct {
	*metered
	in *bufio.Reader
}

func (b *buffered) Read(p []byte) (int, error) { return b.in.Read(p) }

// serveOne serves HTTP on one connection until it is closed.
func serveOne(ctx context.Context, conn net.Conn, h http.Handler) {
	l := &single{conn: make(chan net.Conn, 1), done: make(chan struct{})}
	l.conn <- &watched{Conn: conn, closed: l.end}
	s := &http.Server{Handler: h, ReadHeaderTimeout: headerLimit, IdleTimeout: keepLimit, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    log.New(io.Discard, "", 0)}
	_ = s.Serve(l)
}

// single is a listener with one connection; Accept says so once that is closed.
type single struct {
	conn chan net.Conn
	done chan struct{}
	once sync.Once
}

func (l *single) end() { l.once.Do(func() { close(l.done) }) }

// Accept gives the connection, and later its end.
func (l *single) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	default:
	}
	<-l.done
	return nil, io.EOF
}

// Close and Addr make it a net.Listener.
func (l *single) Close() error   { return nil }
func (l *single) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// watched tells of its end.
type watched struct {
	net.Conn
	closed func()
}

func (w *watched) Close() error {
	err := w.Conn.Close()
	w.closed()
	return err
}
