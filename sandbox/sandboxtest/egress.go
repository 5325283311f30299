package sandboxtest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"

	"proctor/sandbox"
)

// echoes is a relay that knows hosts below good.test, and a door. Behind each stands a server that says
// where it was reached, and gives a line back; at port 8081 it counts bytes to their end.
type echoes struct {
	mu    sync.Mutex
	asked []string
}

func (e *echoes) Doors() []sandbox.Door {
	return []sandbox.Door{{Name: "@door", Addr: netip.MustParseAddrPort("127.0.0.12:80")}}
}

func (e *echoes) Resolve(_ context.Context, name string) []int {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = append(e.asked, name)
	if name == "good.test" || strings.HasSuffix(name, ".good.test") {
		return []int{8080, 8081}
	}
	return nil
}

func (e *echoes) Serve(ctx context.Context, name string, port int, conn net.Conn) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if port == 8081 {
		n, _ := io.Copy(io.Discard, conn)
		fmt.Fprintf(conn, "%d bytes\n", n)
		return
	}
	line, _ := bufio.NewReader(conn).ReadString('\n')
	fmt.Fprintf(conn, "%s:%d %s", name, port, line)
}

// reach opens a relay to the sandbox; a test of one skips where the engine says that it has none.
func (b *box) reach(e *echoes) {
	b.t.Helper()
	engine := b.lab.Engine(b.t, b.lab.Owner)
	defer engine.Close()
	can, err := engine.Capabilities(context.Background())
	if err != nil {
		b.t.Fatal(err)
	}
	relayer, ok := b.Session.(sandbox.Relayer)
	if ok != can.Egress {
		b.t.Fatalf("sessions have a relay: %v; the engine says %v", ok, can.Egress)
	}
	if !ok {
		b.t.Skipf("the engine %s has no relay: %s", engine.Name(), can.Unprovable)
	}
	if err := relayer.Relay(context.Background(), e); err != nil {
		b.t.Fatalf("relay: %v", err)
	}
}

// lookups prints how looking a name up and connecting to where it is ends, name by name. That there is no way
// to an address has two words: Linux has none to its network, gVisor none to the host.
const lookups = `import errno, socket
for host, port in (("good.test", 8080), ("DEEP.good.test", 8080), ("127.0.0.12", 80), ("bad.test", 8080), ("nowhere.invalid", 80), ("good.test", 8079), ("192.0.2.1", 80)):
    try:
        s = socket.create_connection((host, port), 10); s.sendall(b"hi\n"); print(s.recv(100).decode().strip())
    except OSError as e: print("unreachable" if e.errno in (errno.ENETUNREACH, errno.EHOSTUNREACH) else e)
`

const lookedUp = `good.test:8080 hi
deep.good.test:8080 hi
@door:80 hi
[Errno -3] Temporary failure in name resolution
[Errno -3] Temporary failure in name resolution
[Errno 111] Connection refused
unreachable
`

var egressTests = []test{
	{name: "what a relay allows is reached, and nothing else resolves (12)", run: func(b *box) {
		e := &echoes{}
		b.reach(e)
		b.wants(python(lookups), lookedUp, 0)
		b.wants(python(`import socket
s = socket.create_connection(("good.test", 8081), 10); s.sendall(b"x" * 5000000); s.shutdown(1); print(s.recv(100).decode().strip())`), "5000000 bytes\n", 0)
		e.mu.Lock()
		asked := strings.Join(e.asked, " ")
		e.mu.Unlock()
		if !strings.Contains(asked, "bad.test") || strings.Contains(asked, "DEEP") {
			b.t.Errorf("the host was asked for %q", asked)
		}
		b.alive()
	}},
	{name: "a relay ends with its host, and the next host's takes its place (12, 14)", run: func(b *box) {
		b.reach(&echoes{})
		looked := python(strings.Replace(lookups, "\nfor", "\nsocket.setdefaulttimeout(5)\nfor", 1))
		b.wants(looked, lookedUp, 0)
		if err := b.Session.(sandbox.Relayer).Relay(context.Background(), nil); err != nil {
			b.t.Error(err)
		}
		b.wants(python("import socket\ntry: print(socket.getaddrinfo('good.test', 80))\nexcept OSError as e: print(e)"), "[Errno -3] Temporary failure in name resolution\n", 0)
		again := b.reattached()
		again.reach(&echoes{})
		again.wants(looked, lookedUp, 0)
	}},
	{name: "a relay is one sandbox's own (12)", run: func(b *box) {
		b.reach(&echoes{})
		other := b.another(sandbox.Spec{})
		other.wants(python(connects), "refused\nrefused\nunknown\nloopback\n", 0)
		for _, address := range []string{"127.0.0.11", "127.0.0.12", "127.64.0.1"} {
			if got := other.sh("(: <>/dev/tcp/" + address + "/80) 2>&1"); exitOf(got) == 0 {
				other.t.Errorf("%s answers in another sandbox: %s", address, got.Output)
			}
		}
	}},
}
