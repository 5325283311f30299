package wire

import (
	"net/netip"
	"slices"
)

// Bounds of a relay's messages.
const (
	MaxName   = 255 // bytes of a host's name, as in DNS (RFC 1035)
	MaxDoors  = 16
	MaxPorts  = 32      // of one name
	MaxNotice = 1 << 10 // bytes of a frame that an agent sends unasked: a name and a port
)

// Relay opens a relay's connection.
type Relay struct {
	Version  int
	Resolver netip.AddrPort // where names are looked up inside
	Doors    []Door
}

// Door is an address inside at which Name listens from the start.
type Door struct {
	Name string
	Addr netip.AddrPort
}

// Encode gives the payload of r.
func (r Relay) Encode() []byte {
	var e encoder
	e.int(int64(r.Version))
	e.string(r.Resolver.String())
	e.uint(uint64(len(r.Doors)))
	for _, d := range r.Doors {
		e.string(d.Name)
		e.string(d.Addr.String())
	}
	return e.b
}

// DecodeRelay reads the payload of a KindRelay. Addresses that are not loopback are refused.
func DecodeRelay(b []byte) (Relay, error) {
	d := decoder{b: b}
	r := Relay{Version: int(d.int()), Resolver: d.loopback()}
	n := d.uint()
	if n > MaxDoors {
		d.fail("too many doors")
		n = 0
	}
	for range n {
		r.Doors = append(r.Doors, Door{Name: d.name(), Addr: d.loopback()})
	}
	return r, d.done()
}

// loopback reads an address and port on loopback.
func (d *decoder) loopback() netip.AddrPort {
	a, err := netip.ParseAddrPort(d.string())
	if d.err == nil && (err != nil || !a.Addr().IsLoopback() || a.Port() == 0) {
		d.fail("an address that is not loopback's")
	}
	return a
}

// name reads a host's name: visible ASCII, 1 to MaxName bytes.
func (d *decoder) name() string {
	s := d.string()
	if d.err == nil && (s == "" || len(s) > MaxName || slices.ContainsFunc([]byte(s), func(c byte) bool { return c <= ' ' || c > '~' })) {
		d.fail("a name that is none")
	}
	return s
}

// EncodeName gives the payload of a KindResolve.
func EncodeName(name string) []byte {
	var e encoder
	e.string(name)
	return e.b
}

// DecodeName reads the payload of a KindResolve.
func DecodeName(b []byte) (string, error) {
	d := decoder{b: b}
	name := d.name()
	return name, d.done()
}

// EncodePorts gives the payload of a KindPorts.
func EncodePorts(ports []int) []byte {
	var e encoder
	e.uint(uint64(len(ports)))
	for _, p := range ports {
		e.uint(uint64(p))
	}
	return e.b
}

// DecodePorts reads the payload of a KindPorts.
func DecodePorts(b []byte) ([]int, error) {
	d := decoder{b: b}
	n := d.uint()
	if n > MaxPorts {
		d.fail("too many ports")
		n = 0
	}
	var ports []int
	for range n {
		ports = append(ports, d.port())
	}
	return ports, d.done()
}

func (d *decoder) port() int {
	p := d.uint()
	if d.err == nil && (p == 0 || p > 65535) {
		d.fail("a port that is none")
	}
	return int(p)
}

// Dial says where a program inside connected to.
type Dial struct {
	Name string
	Port int
}

// Encode gives the payload of d.
func (d Dial) Encode() []byte {
	var e encoder
	e.string(d.Name)
	e.uint(uint64(d.Port))
	return e.b
}

// DecodeDial reads the payload of a KindDial.
func DecodeDial(b []byte) (Dial, error) {
	d := decoder{b: b}
	v := Dial{Name: d.name(), Port: d.port()}
	return v, d.done()
}
