package sandbox

import (
	"context"
	"net"
	"net/netip"
)

// Relayer is what a Session may also be whose sandbox, without any network of its own, can reach what
// the host lets it: programs inside look names up at a resolver on loopback and connect to loopback
// addresses, and each connection comes out at the host. Engines that can say so in
// Capabilities.Egress.
type Relayer interface {
	// Relay lets the sandbox reach what r allows, from when Relay comes back until the session is
	// detached or closed, or another Relay takes r's place. It is to be called again after Attach:
	// until then names do not resolve and connections wait a while. With a nil r nothing is reached any
	// more, and when Relay comes back the connections there were have ended. ErrUnavailable where the
	// engine cannot, a *DeadError where the sandbox is gone.
	Relay(ctx context.Context, r Relay) error
}

// Relay decides and carries what a sandbox reaches of the world. Safe for concurrent use. All that it
// is given, names and ports and bytes, was chosen by the agent under test.
type Relay interface {
	// Doors are the addresses inside at which something listens from the start.
	Doors() []Door

	// Resolve gives the ports under which programs inside may reach name, which is in lower case and
	// has no dot at its end; none where there is no such host for them. Called one at a time.
	Resolve(ctx context.Context, name string) []int

	// Serve carries a connection that a program inside made to a port of name, and closes it. It
	// comes back when the connection has ended; ctx ends with the relay.
	Serve(ctx context.Context, name string, port int, conn net.Conn)
}

// Door is a loopback address inside a sandbox at which Name listens, for programs that are told an
// address rather than a name.
type Door struct {
	Name string // what Relay.Serve is told
	Addr netip.AddrPort
}
