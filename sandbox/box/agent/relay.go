package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"proctor/sandbox/box/wire"
)

// Bounds of a relay. Those of the host hold beside them.
const (
	maxParked    = 64               // idle connections of the host that are kept
	maxRelayed   = 256              // connections of programs inside at once; further ones wait in their listener
	maxNames     = 512              // names that got an address
	askTimeout   = 5 * time.Second  // for the host's word on a name; resolvers give up at about that
	parkTimeout  = 20 * time.Second // for a parked connection to be there: longer than a server's restart
	dialTimeout  = 5 * time.Second  // for the host to take a Dial
	relayStreams = 32 << 10         // bytes of buffer, each direction
)

// relay is what programs inside reach of the world, through the host. It decides nothing: every name and
// every connection goes to the host, which has the policy. It comes to life with the first KindRelay and
// lasts as long as the agent; hosts come and go.
type relay struct {
	parked chan *parked
	slots  chan struct{}

	mu        sync.Mutex
	up        bool                    // the resolver listens
	asker     *asker                  // the host's connection for names; nil while there is none
	names     map[string]netip.Addr   // where each lies inside
	listening map[netip.AddrPort]bool // what is listened on
}

// parked is a connection of the host that waits for something to carry.
type parked struct {
	conn io.ReadWriteCloser
	in   io.Reader // what was read ahead of conn
}

func newRelay() *relay {
	return &relay{parked: make(chan *parked, maxParked), slots: make(chan struct{}, maxRelayed),
		names: map[string]netip.Addr{}, listening: map[netip.AddrPort]bool{}}
}

// serve speaks to a host on its relay's connection until that ends.
func (r *relay) serve(f wire.Frame, in io.Reader, conn io.ReadWriteCloser) error {
	cfg, err := wire.DecodeRelay(f.Payload)
	if err == nil && cfg.Version != wire.Version {
		err = fmt.Errorf("this agent speaks version %d, not %d", wire.Version, cfg.Version)
	}
	if err == nil {
		err = r.open(cfg)
	}
	link := &link{conn: conn}
	if err != nil {
		reply := failed(err)
		reply.ID = f.ID
		link.send(reply)
		return err
	}
	a := &asker{link: link, waiting: map[uint64]chan []int{}, gone: make(chan struct{}), sending: make(chan struct{}, 2*maxAsking)}
	r.mu.Lock()
	r.asker = a
	r.mu.Unlock()
	link.send(wire.Frame{Kind: wire.KindReply, ID: f.ID})
	err = a.receive(in)
	r.mu.Lock()
	if r.asker == a {
		r.asker = nil
	}
	r.mu.Unlock()
	return err
}

// open starts the resolver and the doors, once.
func (r *relay) open(cfg wire.Relay) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range cfg.Doors {
		if err := r.listenLocked(d.Name, d.Addr); err != nil {
			return err
		}
	}
	if r.up {
		return nil
	}
	if err := serveNames(cfg.Resolver, r.address); err != nil {
		return err
	}
	r.up = true
	return pointResolver(resolvConf, cfg.Resolver.Addr())
}

// listenLocked carries what connects to addr to name. Preconditions: mu is held.
func (r *relay) listenLocked(name string, addr netip.AddrPort) error {
	if r.listening[addr] {
		return nil
	}
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(addr))
	if err != nil {
		return fmt.Errorf("listening for %s: %w", name, err)
	}
	r.listening[addr] = true
	go r.accept(l, wire.Dial{Name: name, Port: int(addr.Port())})
	return nil
}

// address asks the host for a name and gives where it lies inside; false where there is no such host.
func (r *relay) address(ctx context.Context, name string) (netip.Addr, bool) {
	r.mu.Lock()
	a := r.asker
	r.mu.Unlock()
	if a == nil || len(name) > wire.MaxName {
		return netip.Addr{}, false
	}
	ports := a.ask(ctx, name)
	if len(ports) == 0 {
		return netip.Addr{}, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	addr, known := r.names[name]
	if !known {
		if len(r.names) >= maxNames {
			return netip.Addr{}, false
		}
		addr = nth(len(r.names))
		r.names[name] = addr
	}
	for _, port := range ports {
		err := r.listenLocked(name, netip.AddrPortFrom(addr, uint16(port)))
		if err != nil && !errors.Is(err, syscall.EADDRINUSE) { // a server of the agent's own on that port is what it gets
			return netip.Addr{}, false
		}
	}
	return addr, true
}

// nth gives the address of the nth name: 127.64.0.1 and on, away from those that programs use.
func nth(n int) netip.Addr { return netip.AddrFrom4([4]byte{127, 64, byte(n / 250), byte(n%250 + 1)}) }

// accept takes connections for one place.
func (r *relay) accept(l net.Listener, to wire.Dial) {
	for {
		r.slots <- struct{}{}
		conn, err := l.Accept()
		if err != nil {
			<-r.slots
			time.Sleep(100 * time.Millisecond) // out of descriptors, say
			continue
		}
		go func() {
			defer func() { <-r.slots }()
			r.carry(conn.(*net.TCPConn), to)
		}()
	}
}

// carry joins a program's connection with one of the host's, until both directions have ended.
func (r *relay) carry(inside *net.TCPConn, to wire.Dial) {
	defer inside.Close()
	patience := time.NewTimer(parkTimeout)
	defer patience.Stop()
	for {
		select {
		case p := <-r.parked:
			if p.dial(to) != nil {
				p.conn.Close()
				continue // of a host that is gone
			}
			splice(inside, p)
			return
		case <-patience.C:
			return
		}
	}
}

// dial tells the host what its connection is for now.
func (p *parked) dial(to wire.Dial) error {
	if c, ok := p.conn.(interface{ SetWriteDeadline(time.Time) error }); ok {
		_ = c.SetWriteDeadline(time.Now().Add(dialTimeout))
		defer func() { _ = c.SetWriteDeadline(time.Time{}) }()
	}
	return wire.Write(p.conn, wire.Frame{Kind: wire.KindDial, Payload: to.Encode()})
}

// splice copies both ways; an end of one direction is passed on as such.
func splice(inside *net.TCPConn, p *parked) {
	defer p.conn.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err := io.CopyBuffer(struct{ io.Writer }{inside}, struct{ io.Reader }{p.in}, make([]byte, relayStreams))
		if err != nil {
			inside.Close()
			return
		}
		_ = inside.CloseWrite()
	}()
	_, err := io.CopyBuffer(struct{ io.Writer }{p.conn}, struct{ io.Reader }{inside}, make([]byte, relayStreams))
	half, ok := p.conn.(interface{ CloseWrite() error })
	if err != nil || !ok || half.CloseWrite() != nil {
		p.conn.Close()
	}
	<-done
}

// park keeps a connection for later. Where there are too many, the oldest goes: its host may be dead.
func (r *relay) park(conn io.ReadWriteCloser, in io.Reader) {
	p := &parked{conn: conn, in: in}
	for {
		select {
		case r.parked <- p:
			return
		default:
		}
		select {
		case old := <-r.parked:
			old.conn.Close()
		default:
		}
	}
}

// asker asks one host for names.
type asker struct {
	link    *link
	gone    chan struct{} // closed when the host is
	sending chan struct{} // frames on their way: a host that does not read holds these up and no more

	mu      sync.Mutex
	next    uint64
	waiting map[uint64]chan []int
}

// ask gives the ports of a name; none where the host refuses, or is gone.
func (a *asker) ask(ctx context.Context, name string) []int {
	select {
	case a.sending <- struct{}{}:
	default:
		return nil
	}
	answer := make(chan []int, 1)
	a.mu.Lock()
	a.next++
	id := a.next
	a.waiting[id] = answer
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		delete(a.waiting, id)
		a.mu.Unlock()
	}()
	go func() {
		defer func() { <-a.sending }()
		a.link.send(wire.Frame{Kind: wire.KindResolve, ID: id, Payload: wire.EncodeName(name)})
	}()
	select {
	case ports := <-answer:
		return ports
	case <-ctx.Done():
	case <-a.gone:
	}
	return nil
}

// receive takes the host's answers until it hangs up.
func (a *asker) receive(in io.Reader) error {
	defer close(a.gone)
	for {
		f, err := wire.Read(in, wire.MaxNotice)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		ports, err := wire.DecodePorts(f.Payload)
		if f.Kind != wire.KindPorts || err != nil {
			return errors.Join(wire.ErrFrame, err)
		}
		a.mu.Lock()
		answer := a.waiting[f.ID]
		delete(a.waiting, f.ID)
		a.mu.Unlock()
		if answer != nil {
			answer <- ports
		}
	}
}

const resolvConf = "/etc/resolv.conf"

// pointResolver lets the sandbox's programs ask at addr. The file is written in place, since an engine may
// have mounted it.
func pointResolver(path string, addr netip.Addr) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("pointing the sandbox at its resolver: %s is no plain file", path)
	}
	if text, err := os.ReadFile(path); err == nil && strings.HasPrefix(string(text), "nameserver "+addr.String()+"\n") {
		return nil // as the engine wrote it, perhaps where nobody can write
	}
	err := os.WriteFile(path, []byte("nameserver "+addr.String()+"\noptions ndots:0\n"), 0o644)
	if err != nil {
		return fmt.Errorf("pointing the sandbox at its resolver: %w", err)
	}
	return nil
}
