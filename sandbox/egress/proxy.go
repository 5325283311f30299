package egress

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"proctor/sandbox"
	"proctor/sandbox/egress/index/npm"
	"proctor/sandbox/egress/index/pypi"
)

// Defaults of Options and bounds of one connection.
const (
	DefaultBytes       = 4 << 30 // both ways, of one sandbox in this server's life
	DefaultConnections = 2048    // of all sandboxes at once: two descriptors each

	dialLimit  = 15 * time.Second
	firstLimit = 30 * time.Second // for a program to say what it wants
	idleLimit  = 10 * time.Minute // without a byte either way
	namesRate  = 50               // lookups a second of one sandbox; further ones wait
	namesBurst = 200
)

// Options make a Proxy. Nil and zero fields take defaults.
type Options struct {
	// Private are ranges that may be reached though they are not public: the operator's own mirrors. A
	// task cannot add to them.
	Private []netip.Prefix
	// Python and NPM serve package indexes. One that is nil is not there; where both are, a policy with an
	// index is refused.
	Python *pypi.Mirror
	NPM    *npm.Mirror
	// Bytes bounds what one sandbox sends and receives.
	Bytes int64
	// Connections bounds those of all sandboxes at once.
	Connections int64
	// Lookup resolves a name; by default with the host's resolver.
	Lookup func(ctx context.Context, name string) ([]netip.Addr, error)
	// Dial connects to an address that was found allowed.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Observe is told every event of every sandbox, for metrics; it must be quick.
	Observe func(Event)
	Log     *slog.Logger
}

// Proxy carries the connections of a server's sandboxes. Safe for concurrent use.
type Proxy struct {
	opts Options
	open atomic.Int64
}

// New makes a Proxy.
func New(o Options) *Proxy {
	if o.Bytes == 0 {
		o.Bytes = DefaultBytes
	}
	if o.Connections == 0 {
		o.Connections = DefaultConnections
	}
	if o.Lookup == nil {
		o.Lookup = func(ctx context.Context, name string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
		}
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{}).DialContext
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Proxy{opts: o}
}

// ErrNoIndex says that a policy asks for package indexes and that the server has none to ask.
var ErrNoIndex = errors.New("no package index is set")

// Client is a sandbox whose connections are carried.
type Client struct {
	Name   string // the rollout's id, for the log
	Policy Policy
	// Record is told what the sandbox did, at most maxEvents times; nil: nothing.
	Record func(Event)
}

// For gives the relay of a sandbox. ErrNoIndex where its policy asks for what the server does not have.
func (p *Proxy) For(c Client) (sandbox.Relay, error) {
	if err := c.Policy.Check(); err != nil {
		return nil, err
	}
	r := &relay{proxy: p, client: c, names: rate.NewLimiter(namesRate, namesBurst),
		journal: journal{record: c.Record, observe: p.opts.Observe, names: map[string]bool{}}}
	r.left.Store(p.opts.Bytes)
	if c.Policy.Index != nil {
		if r.indexes = p.openings(*c.Policy.Index); len(r.indexes) == 0 {
			return nil, ErrNoIndex
		}
	}
	return r, nil
}
