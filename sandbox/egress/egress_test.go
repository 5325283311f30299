package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"proctor/sandbox"
)

// site is a world of servers behind names, all on this machine.
type site struct {
	t     *testing.T
	ports map[int]string // port that a program connects to -> where its server really is
	addrs map[string]string
	opts  Options

	mu     sync.Mutex
	events []Event
}

func newSite(t *testing.T) *site {
	s := &site{t: t, ports: map[int]string{}, addrs: map[string]string{}}
	s.opts = Options{
		Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Lookup: func(_ context.Context, name string) ([]netip.Addr, error) {
			if a, ok := s.addrs[name]; ok {
				return []netip.Addr{netip.MustParseAddr(a)}, nil
			}
			return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
		},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			_, port, _ := net.SplitHostPort(address)
			n, _ := strconv.Atoi(port)
			real, ok := s.ports[n]
			if !ok {
				return nil, errors.New("connection refused")
			}
			return (&net.Dialer{}).DialContext(ctx, network, real)
		},
	}
	return s
}

// relay gives the relay of a sandbox with these hosts.
func (s *site) relay(hosts ...string) sandbox.Relay {
	s.t.Helper()
	r, err := New(s.opts).For(Client{Name: "r", Policy: Policy{Hosts: hosts}, Record: func(e Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events = append(s.events, e)
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// told waits for an event that ok likes.
func (s *site) told(ok func(Event) bool) Event {
	s.t.Helper()
	for range 300 {
		s.mu.Lock()
		i := slices.IndexFunc(s.events, ok)
		var e Event
		if i >= 0 {
			e = s.events[i]
		}
		s.mu.Unlock()
		if i >= 0 {
			return e
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.t.Fatalf("no such event in %+v", s.events)
	return Event{}
}

// connect connects as a program in the sandbox does, over a socket with half closes.
func (s *site) connect(r sandbox.Relay, name string, port int) net.Conn {
	s.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	defer l.Close()
	inside, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	host, err := l.Accept()
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.t.Cleanup(func() { cancel(); inside.Close() })
	go r.Serve(ctx, name, port, host)
	_ = inside.SetDeadline(time.Now().Add(10 * time.Second))
	return inside
}

// ask sends text and gives all that comes back.
func (s *site) ask(r sandbox.Relay, name string, port int, text string) string {
	s.t.Helper()
	conn := s.connect(r, name, port)
	_, _ = io.WriteString(conn, text)
	got, _ := io.ReadAll(conn)
	return string(got)
}

func (s *site) web() *httptest.Server {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %s|%s", r.Method, r.Host, r.URL.RequestURI(), r.Header.Get("X-Forwarded-For")+r.Header.Get("Via"), body)
	})
	plain := httptest.NewServer(h)
	s.t.Cleanup(plain.Close)
	s.ports[80] = plain.Listener.Addr().String()
	secure := httptest.NewTLSServer(h)
	s.t.Cleanup(secure.Close)
	s.ports[443] = secure.Listener.Addr().String()
	s.addrs["good.test"], s.addrs["other.test"] = "127.0.0.1", "127.0.0.1"
	return secure
}

func TestTLS(t *testing.T) {
	s := newSite(t)
	pool := x509.NewCertPool()
	pool.AddCert(s.web().Certificate())
	r := s.relay("good.test")
	get := func(sni string) (string, error) {
		conn := tls.Client(s.connect(r, "good.test", 443), &tls.Config{ServerName: sni, InsecureSkipVerify: true})
		defer conn.Close()
		if err := conn.Handshake(); err != nil {
			return "", err
		}
		if state := conn.ConnectionState(); len(state.PeerCertificates) == 0 {
			return "", errors.New("no certificate")
		} else if _, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: pool}); err != nil {
			return "", err
		}
		fmt.Fprintf(conn, "GET /x HTTP/1.0\r\nHost: good.test\r\n\r\n")
		body, err := io.ReadAll(conn)
		return string(body), err
	}
	if body, err := get("good.test"); err != nil || !strings.HasSuffix(body, "GET good.test /x |") {
		t.Errorf("%q %v", body, err)
	}
	e := s.told(func(e Event) bool { return e.Outcome == Carried })
	if e.Kind != KindTLS || e.Host != "good.test" || e.Port != 443 || e.Sent < 100 || e.Got < 500 {
		t.Errorf("%+v", e)
	}
	for _, sni := range []string{"other.test", "", "evil.good.test"} {
		if body, err := get(sni); err == nil {
			t.Errorf("server name %q went through: %q", sni, body)
		}
	}
	s.told(func(e Event) bool {
		return e.Outcome == Refused && e.Reason == refusalOther && e.Request == "other.test"
	})
	s.told(func(e Event) bool { return e.Outcome == Refused && e.Reason == refusalNoTLS })
	if got := s.ask(r, "good.test", 443, "GET / HTTP/1.1\r\nHost: good.test\r\n\r\n"); strings.Contains(got, "good.test") {
		t.Errorf("plain HTTP on port 443: %q", got)
	}
	if got := s.ask(r, "good.test", 443, "\x16\x03\x01\x00\x05hello, this is no TLS"); got != "" {
		t.Errorf("a broken hello: %q", got)
	}
}

func TestPlainHTTP(t *testing.T) {
	s := newSite(t)
	s.web()
	r := s.relay("good.test")
	got := s.ask(r, "good.test", 80, "POST /a?b=c HTTP/1.1\r\nHost: good.test\r\nContent-Length: 4\r\n\r\nbodyGET /second HTTP/1.1\r\nHost: GOOD.test:80\r\nConnection: close\r\n\r\n")
	if !strings.Contains(got, "POST good.test /a?b=c |body") || !strings.Contains(got, "GET good.test /second |") {
		t.Errorf("two requests on one connection: %q", got)
	}
	s.told(func(e Event) bool {
		return e.Kind == KindHTTP && e.Request == "POST /a?b=c" && e.Status == 200 && e.Outcome == Carried && e.Sent == 4 && e.Got > 0
	})
	for name, text := range map[string]string{
		"another host":         "GET / HTTP/1.1\r\nHost: other.test\r\n\r\n",
		"another port":         "GET / HTTP/1.1\r\nHost: good.test:8080\r\n\r\n",
		"absolute form":        "GET http://other.test/ HTTP/1.1\r\nHost: good.test\r\n\r\n",
		"no HTTP":              "hello there\r\n",
		"HTTP/2":               "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"another, kept alive":  "GET /one HTTP/1.1\r\nHost: good.test\r\n\r\nGET /two HTTP/1.1\r\nHost: other.test\r\n\r\n",
		"two hosts":            "GET /one HTTP/1.1\r\nHost: good.test\r\nHost: other.test\r\n\r\n",
		"a tunnel":             "CONNECT other.test:443 HTTP/1.1\r\nHost: other.test:443\r\n\r\n",
		"a hello of other TLS": "\x16\x03\x01\x00\x05hello",
	} {
		if got := s.ask(r, "good.test", 80, text); strings.Contains(got, "other.test") || strings.Contains(got, "/two") || strings.Contains(got, "200 Connection") {
			t.Errorf("%s: %q", name, got)
		}
	}
	s.told(func(e Event) bool { return e.Outcome == Refused && e.Reason == refusalOther })
	s.told(func(e Event) bool { return e.Outcome == Refused && e.Reason == refusalNoHTTP })
}

func TestOtherProtocols(t *testing.T) {
	s := newSite(t)
	s.web()
	speaksFirst, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer speaksFirst.Close()
	go func() {
		for {
			conn, err := speaksFirst.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				fmt.Fprint(conn, "welcome\n")
				line, _ := bufio.NewReader(conn).ReadString('\n')
				fmt.Fprint(conn, "you said "+line)
			}()
		}
	}()
	s.ports[22], s.ports[8080], s.ports[8443] = speaksFirst.Addr().String(), s.ports[80], s.ports[443]
	r := s.relay("good.test:22", "good.test:8080", "good.test:8443")
	conn := s.connect(r, "good.test", 22)
	in := bufio.NewReader(conn)
	if line, err := in.ReadString('\n'); line != "welcome\n" {
		t.Errorf("the server's word before the program's: %q %v", line, err)
	}
	fmt.Fprint(conn, "hi\n")
	if line, err := in.ReadString('\n'); line != "you said hi\n" {
		t.Errorf("%q %v", line, err)
	}
	conn.Close()
	s.told(func(e Event) bool { return e.Kind == KindRaw && e.Outcome == Carried && e.Sent == 3 && e.Got == 20 })
	if got := s.ask(r, "good.test", 8080, "GET /x HTTP/1.1\r\nHost: good.test:8080\r\nConnection: close\r\n\r\n"); !strings.Contains(got, "GET good.test:8080 /x |") {
		t.Errorf("HTTP on another port: %q", got)
	}
	if got := s.ask(r, "good.test", 8080, "GET /x HTTP/1.1\r\nHost: other.test:8080\r\n\r\n"); strings.Contains(got, "other.test") {
		t.Errorf("another host on another port: %q", got)
	}
	if err := tls.Client(s.connect(r, "good.test", 8443), &tls.Config{ServerName: "good.test", InsecureSkipVerify: true}).Handshake(); err != nil {
		t.Errorf("TLS on another port: %v", err)
	}
	if err := tls.Client(s.connect(r, "good.test", 8443), &tls.Config{ServerName: "other.test", InsecureSkipVerify: true}).Handshake(); err == nil {
		t.Error("TLS with another name on another port")
	}
}

// An allowed name is not a way into the host's own network.
func TestPrivateAddresses(t *testing.T) {
	s := newSite(t)
	s.web()
	s.addrs["meta.good.test"] = "169.254.169.254"
	s.addrs["mapped.good.test"] = "::ffff:10.0.0.1"
	r := s.relay("good.test", "10.0.0.1")
	for _, name := range []string{"meta.good.test", "mapped.good.test"} {
		if got := s.ask(r, name, 80, "GET / HTTP/1.1\r\nHost: "+name+"\r\n\r\n"); got != "" {
			t.Errorf("%s: %q", name, got)
		}
		s.told(func(e Event) bool {
			return e.Host == name && e.Outcome == Refused && strings.Contains(e.Reason, "not public")
		})
	}
	s.opts.Private = nil
	if got := s.ask(s.relay("good.test"), "good.test", 80, "GET / HTTP/1.1\r\nHost: good.test\r\n\r\n"); got != "" {
		t.Errorf("loopback: %q", got)
	}
}

func TestPublic(t *testing.T) {
	for text, want := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1": true, "127.0.0.1": false, "::1": false, "10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false,
		"169.254.169.254": false, "100.64.0.1": false, "0.0.0.0": false, "0.1.2.3": false, "224.0.0.1": false, "255.255.255.255": false, "240.0.0.1": false,
		"198.18.0.1": false, "192.0.2.1": false, "fd00::1": false, "fe80::1": false, "ff02::1": false, "::": false, "::ffff:127.0.0.1": false,
		"::ffff:8.8.8.8": true, "64:ff9b::7f00:1": false, "2002:7f00:1::": false, "::7f00:1": false, "fd00:ec2::254": false,
	} {
		if got := public(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestPolicyPorts(t *testing.T) {
	p := Policy{Hosts: []string{"good.test", "*.wild.test", "Git.Test:22"}}
	for name, want := range map[string][]int{
		"good.test": {80, 443}, "GOOD.test.": {80, 443}, "a.b.good.test": {80, 443}, "wild.test": {80, 443}, "x.wild.test": {80, 443},
		"git.test": {22, 80, 443}, "xgood.test": nil, "good.test.evil.test": nil, "test": nil, "": nil, "@index": nil,
	} {
		if got := p.Ports(name); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
	for _, bad := range []string{"", "a b", "http://x.test", "x.test:0", "x.test:http", "*", "a/b"} {
		if err := (Policy{Hosts: []string{bad}}).Check(); err == nil {
			t.Errorf("%q passed", bad)
		}
	}
}

func TestProxyDoor(t *testing.T) {
	s := newSite(t)
	s.web()
	r := s.relay("good.test")
	client := func(server string) *http.Client {
		return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
			Proxy:           func(*http.Request) (*url.URL, error) { return url.Parse("http://proxy.test:3128") },
			DialContext:     func(context.Context, string, string) (net.Conn, error) { return s.connect(r, doorProxy, 3128), nil },
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true, ServerName: server}, DisableKeepAlives: true,
		}}
	}
	get := func(server, address string) (int, string, error) {
		answer, err := client(server).Get(address)
		if err != nil {
			return 0, "", err
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		return answer.StatusCode, string(body), err
	}
	if status, body, err := get("good.test", "http://good.test/p"); status != 200 || body != "GET good.test /p |" {
		t.Errorf("%d %q %v", status, body, err)
	}
	if status, body, err := get("good.test", "https://good.test/p"); status != 200 || body != "GET good.test /p |" {
		t.Errorf("through a tunnel: %d %q %v", status, body, err)
	}
	if status, _, err := get("bad.test", "http://bad.test/p"); status != http.StatusServiceUnavailable {
		t.Errorf("a refused host: %d %v", status, err)
	}
	if _, body, err := get("bad.test", "https://bad.test/p"); err == nil {
		t.Errorf("a tunnel to a refused host: %q", body)
	}
	if _, body, err := get("other.test", "https://good.test/p"); err == nil {
		t.Errorf("a tunnel with another name inside: %q", body)
	}
	if got := s.ask(r, doorProxy, 3128, "CONNECT good.test:22 HTTP/1.1\r\nHost: good.test:22\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 503 ") {
		t.Errorf("another port: %q", got)
	}
	if got := s.ask(r, doorProxy, 3128, "GET /relative HTTP/1.1\r\nHost: good.test\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 400 ") {
		t.Errorf("no proxy's request: %q", got)
	}
	s.told(func(e Event) bool { return e.Kind == KindName && e.Host == "bad.test" })
}

// Bytes, connections and events are bounded.
func TestBounds(t *testing.T) {
	s := newSite(t)
	s.web()
	s.opts.Bytes = 2000
	r := s.relay("good.test")
	text := "POST / HTTP/1.1\r\nHost: good.test\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("x", 100000)
	if got := s.ask(r, "good.test", 80, text); strings.Contains(got, "POST") {
		t.Errorf("100,000 bytes of 2,000: %.100q", got)
	}
	if got := s.ask(r, "good.test", 80, "GET / HTTP/1.1\r\nHost: good.test\r\n\r\n"); got != "" {
		t.Errorf("after that: %q", got)
	}
	s.told(func(e Event) bool { return e.Outcome == Refused && e.Reason == refusalBytes })

	s.opts.Bytes, s.opts.Connections = 0, 1
	r = s.relay("good.test")
	first := s.connect(r, "good.test", 80)
	time.Sleep(50 * time.Millisecond)
	if got := s.ask(r, "good.test", 80, "GET / HTTP/1.1\r\nHost: good.test\r\n\r\n"); got != "" {
		t.Errorf("one connection too many: %q", got)
	}
	s.told(func(e Event) bool { return e.Outcome == Refused && e.Reason == refusalCrowd })
	first.Close()

	n := 0
	j := journal{record: func(Event) { n++ }, names: map[string]bool{}}
	for i := range 2 * maxNames {
		j.refusedName(fmt.Sprint(i / 2))
	}
	if n != maxNames {
		t.Errorf("%d names told", n)
	}
	for i := range 2 * maxNames {
		j.refusedName(fmt.Sprint("more", i))
	}
	if n != maxNames {
		t.Errorf("%d names told of more", n)
	}
	for range 2 * maxEvents {
		j.add(Event{Request: strings.Repeat("x", 10000)})
	}
	if n != maxEvents {
		t.Errorf("%d events", n)
	}
}

func TestResolve(t *testing.T) {
	s := newSite(t)
	r := s.relay("good.test")
	if got := r.Resolve(context.Background(), "www.good.test"); !slices.Equal(got, []int{80, 443}) {
		t.Errorf("%v", got)
	}
	for _, name := range []string{"bad.test", doorProxy, "@index", "@npm"} {
		if got := r.Resolve(context.Background(), name); got != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	s.told(func(e Event) bool { return e.Kind == KindName && e.Host == "bad.test" && e.Outcome == Refused })
}

// FuzzReadHello feeds the reader of hellos.
func FuzzReadHello(f *testing.F) {
	f.Add([]byte("\x16\x03\x01\x00\x05hello"))
	f.Fuzz(func(t *testing.T, b []byte) {
		name, taken, err := readHello(context.Background(), strings.NewReader(string(b)))
		if !strings.HasPrefix(string(b), string(taken)) {
			t.Errorf("took %x of %x", taken, b)
		}
		if err != nil && name != "" {
			t.Errorf("%q and %v", name, err)
		}
	})
}
