package box_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"proctor/sandbox"
	"proctor/sandbox/box"
	"proctor/sandbox/box/wire"
)

// world is a relay that knows some names, and what is behind them.
type world struct {
	names map[string][]int
	serve func(name string, port int, conn net.Conn)

	mu    sync.Mutex
	asked []string
}

func (w *world) Doors() []sandbox.Door {
	return []sandbox.Door{{Name: "@door", Addr: netip.MustParseAddrPort("127.0.0.12:80")}}
}

func (w *world) Resolve(_ context.Context, name string) []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, name)
	return w.names[name]
}

func (w *world) Serve(ctx context.Context, name string, port int, conn net.Conn) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	w.serve(name, port, conn)
}

// relay opens a relay to the box; it ends with the test.
func (b *testBox) relay(w *world) *box.Relaying {
	b.t.Helper()
	r, err := box.Relay(context.Background(), b.connect, w)
	if err != nil {
		b.t.Fatalf("Relay: %v", err)
	}
	b.t.Cleanup(r.Close)
	return r
}

func (b *testBox) connect(ctx context.Context) (net.Conn, error) {
	return box.Connect(ctx, b.socket, b.pid)
}

// greeter answers a line with where it was sent to.
func greeter(name string, port int, conn net.Conn) {
	line, _ := bufio.NewReader(conn).ReadString('\n')
	fmt.Fprintf(conn, "%s:%d %s", name, port, line)
}

// speak is a shell line that sends a word to a place and prints what comes back.
func speak(word, host string, port int) string {
	return fmt.Sprintf("exec 3<>/dev/tcp/%s/%d && echo %s >&3 && cat <&3; exec 3>&-", host, port, word)
}

func TestRelay(t *testing.T) {
	b := newBox(t, box.Init{})
	w := &world{names: map[string][]int{"good.test": {80, 8443}, "more.good.test": {443}}, serve: greeter}
	first := b.relay(w)

	for _, tc := range []struct{ line, want string }{
		{"cat /etc/resolv.conf", "nameserver 127.0.0.11\noptions ndots:0\n"},
		{speak("hi", "good.test", 80), "good.test:80 hi\n"},
		{speak("hi", "GOOD.test", 8443), "good.test:8443 hi\n"},
		{speak("hi", "more.good.test", 443), "more.good.test:443 hi\n"},
		{speak("hi", "127.0.0.12", 80), "@door:80 hi\n"},
		{"getent ahosts good.test | awk '{ print $1 }' | sort -u", "127.64.0.1\n"},
		{"getent hosts bad.test; echo $?", "2\n"},
	} {
		if got := b.out(tc.line); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.line, got, tc.want)
		}
	}
	for host, want := range map[string]string{
		"bad.test":         "Temporary failure in name resolution",
		"absent.invalid":   "Temporary failure in name resolution",
		"verybad.good":     "Temporary failure in name resolution",
		"good.test/444; :": "invalid port",
		"192.0.2.1":        "Network is unreachable",
	} {
		if got := b.sh("(: <>/dev/tcp/" + host + "/80) 2>&1"); code(got) == 0 || want != "invalid port" && !strings.Contains(string(got.Output), want) {
			t.Errorf("%s: exit %d, %q, want %q", host, code(got), got.Output, want)
		}
	}
	if got := b.sh("(: <>/dev/tcp/good.test/81) 2>&1"); !strings.Contains(string(got.Output), "Connection refused") {
		t.Errorf("a port that is not allowed: %q", got.Output)
	}

	first.Close()
	if got := b.sh("getent hosts good.test"); code(got) != 2 {
		t.Errorf("without a host: exit %d, %q", code(got), got.Output)
	}
	b.relay(w) // as after the server's restart
	if got := b.out(speak("again", "good.test", 80)); got != "good.test:80 again\n" {
		t.Errorf("after a restart: %q", got)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.asked, "bad.test") {
		t.Errorf("the host was asked for %q", w.asked)
	}
}

// A stream's bytes and its ends arrive, both ways, and more connections than the host takes at once all
// get their turn.
func TestRelayStreams(t *testing.T) {
	b := newBox(t, box.Init{})
	b.relay(&world{names: map[string][]int{"h.test": {80}}, serve: func(_ string, _ int, conn net.Conn) {
		sum := sha256.New()
		n, _ := io.Copy(sum, conn) // until the program has ended its half
		fmt.Fprintf(conn, "%x %d", sum.Sum(nil), n)
	}})
	body := bytes.Repeat([]byte("0123456789abcdef"), 1<<19)
	want := fmt.Sprintf("%x %d", sha256.Sum256(body), len(body))
	program := `import socket, threading
def one():
    s = socket.create_connection(("h.test", 80), 20); s.sendall(b"0123456789abcdef" * N); s.shutdown(socket.SHUT_WR)
    got = b""
    while (part := s.recv(100)): got += part
    out.append(got.decode())
`
	if got := b.out("python3 -c '" + program + "N, out = 1 << 19, []\none(); print(out[0])'"); got != want+"\n" {
		t.Errorf("8 MiB: %q, want %q", got, want)
	}
	got := b.out("python3 -c '" + program + `N, out = 1, []
all = [threading.Thread(target=one) for _ in range(150)]
for t in all: t.start()
for t in all: t.join()
print(len(out), len(set(out)))'`)
	if got != "150 1\n" {
		t.Errorf("150 at once: %q", got)
	}
}

// Streams that the host does not read hold nothing up but themselves.
func TestRelayDoesNotStarveCalls(t *testing.T) {
	b := newBox(t, box.Init{})
	end := make(chan struct{})
	defer close(end)
	b.relay(&world{names: map[string][]int{"h.test": {80}}, serve: func(string, int, net.Conn) { <-end }})
	b.out("for i in 1 2 3 4 5 6 7 8; do (cat /dev/zero > /dev/tcp/h.test/80) >/dev/null 2>&1 & done; sleep 0.3")
	began := time.Now()
	for i := range 50 {
		if got := b.out(fmt.Sprintf("echo %d", i)); got != fmt.Sprintln(i) {
			t.Fatalf("%q", got)
		}
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("50 calls took %v", took)
	}
}

// Who is not the sandbox's init gets no relay.
func TestConnectChecksThePeer(t *testing.T) {
	b := newBox(t, box.Init{})
	if _, err := box.Connect(context.Background(), b.socket, b.pid+1); err == nil {
		t.Error("another process was taken for the agent")
	}
}

// checked is a relay that holds what it is given against the bounds.
type checked struct{ t *testing.T }

func (c checked) Doors() []sandbox.Door { return nil }
func (c checked) Resolve(_ context.Context, name string) []int {
	if name == "" || len(name) > wire.MaxName || strings.ContainsAny(name, " \x00\n") {
		c.t.Errorf("asked for %q", name)
	}
	return []int{80}
}
func (c checked) Serve(_ context.Context, name string, port int, conn net.Conn) {
	defer conn.Close()
	if name == "" || len(name) > wire.MaxName || port < 1 || port > 65535 {
		c.t.Errorf("asked to serve %q %d", name, port)
	}
	_, _ = io.Copy(io.Discard, conn)
}

// A lying agent cannot harm the host: names and places are in bounds, and the relay ends when it is told.
func FuzzRelay(f *testing.F) {
	f.Add(frame(f, wire.Frame{Kind: wire.KindReply}))
	f.Add(append(frame(f, wire.Frame{Kind: wire.KindReply}), frame(f, wire.Frame{Kind: wire.KindResolve, ID: 7, Payload: wire.EncodeName("a.test")})...))
	f.Add(append(frame(f, wire.Frame{Kind: wire.KindDial, Payload: wire.Dial{Name: "a.test", Port: 80}.Encode()}), "bytes"...))
	f.Add(frame(f, wire.Frame{Kind: wire.KindFail, Payload: wire.EncodeFail(sandbox.ErrStart)}))
	f.Fuzz(func(t *testing.T, data []byte) {
		greeted := append(frame(t, wire.Frame{Kind: wire.KindReply}), data...)
		first := true
		var mu sync.Mutex
		dial := func(context.Context) (net.Conn, error) {
			mu.Lock()
			defer mu.Unlock()
			answer := data
			if first {
				answer, first = greeted, false
			}
			conn, _ := fake(t, answer, true)
			return conn.(net.Conn), nil
		}
		r, err := box.Relay(context.Background(), dial, checked{t})
		if err != nil {
			return
		}
		time.Sleep(time.Millisecond)
		r.Close()
	})
}
