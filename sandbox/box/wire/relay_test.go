package wire_test

import (
	"bytes"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"proctor/sandbox/box/wire"
)

func loopback(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

// Every message of a relay comes back as it was; cut off anywhere, or with a byte more, it is refused.
func TestRelayMessages(t *testing.T) {
	same := cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })
	relay := wire.Relay{Version: 2, Resolver: loopback("127.0.0.11:53"), Doors: []wire.Door{{Name: "@a", Addr: loopback("127.0.0.12:80")}, {Name: "b", Addr: loopback("[::1]:9")}}}
	for name, tc := range map[string]struct {
		payload []byte
		want    any
		decode  func([]byte) (any, error)
	}{
		"relay": {relay.Encode(), relay, func(b []byte) (any, error) { return wire.DecodeRelay(b) }},
		"name":  {wire.EncodeName("a.test"), "a.test", func(b []byte) (any, error) { return wire.DecodeName(b) }},
		"ports": {wire.EncodePorts([]int{80, 65535}), []int{80, 65535}, func(b []byte) (any, error) { return wire.DecodePorts(b) }},
		"dial":  {wire.Dial{Name: "h", Port: 443}.Encode(), wire.Dial{Name: "h", Port: 443}, func(b []byte) (any, error) { return wire.DecodeDial(b) }},
	} {
		got, err := tc.decode(tc.payload)
		if err != nil || !cmp.Equal(got, tc.want, same) {
			t.Errorf("%s: %v %v", name, err, got)
		}
		for n := range tc.payload {
			if _, err := tc.decode(tc.payload[:n]); !errors.Is(err, wire.ErrPayload) {
				t.Errorf("%s cut off at %d: %v", name, n, err)
			}
		}
		if _, err := tc.decode(append(bytes.Clone(tc.payload), 0)); !errors.Is(err, wire.ErrPayload) {
			t.Errorf("%s with a byte more: %v", name, err)
		}
	}
}

func TestRelayBounds(t *testing.T) {
	outside := wire.Relay{Resolver: loopback("10.0.0.1:53")}
	for name, err := range map[string]error{
		"a resolver elsewhere": second(wire.DecodeRelay(outside.Encode())),
		"no port":              second(wire.DecodeRelay(wire.Relay{Resolver: loopback("127.0.0.1:0")}.Encode())),
		"many doors":           second(wire.DecodeRelay(wire.Relay{Resolver: loopback("127.0.0.1:1"), Doors: slices.Repeat([]wire.Door{{Name: "a", Addr: loopback("127.0.0.1:1")}}, 17)}.Encode())),
		"an empty name":        second(wire.DecodeName(wire.EncodeName(""))),
		"a long name":          second(wire.DecodeName(wire.EncodeName(strings.Repeat("a", 256)))),
		"a name with a line":   second(wire.DecodeName(wire.EncodeName("a\nb"))),
		"a name of bytes":      second(wire.DecodeName(wire.EncodeName("a\xff"))),
		"port 0":               second(wire.DecodePorts(wire.EncodePorts([]int{0}))),
		"port 65536":           second(wire.DecodeDial(wire.Dial{Name: "a", Port: 65536}.Encode())),
		"many ports":           second(wire.DecodePorts(wire.EncodePorts(make([]int, 33)))),
	} {
		if !errors.Is(err, wire.ErrPayload) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzDecodeRelay feeds the relay's decoders. What decodes encodes to the same again.
func FuzzDecodeRelay(f *testing.F) {
	f.Add(wire.Relay{Version: 2, Resolver: loopback("127.0.0.11:53"), Doors: []wire.Door{{Name: "@a", Addr: loopback("127.0.0.12:80")}}}.Encode())
	f.Add(wire.Dial{Name: "h.test", Port: 443}.Encode())
	f.Add(wire.EncodePorts([]int{80, 443}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if d, err := wire.DecodeDial(b); err == nil {
			if again, err := wire.DecodeDial(d.Encode()); err != nil || again != d {
				t.Errorf("%v %v", d, err)
			}
		}
		if p, err := wire.DecodePorts(b); err == nil {
			if again, err := wire.DecodePorts(wire.EncodePorts(p)); err != nil || !slices.Equal(again, p) {
				t.Errorf("%v %v", p, err)
			}
		}
		if r, err := wire.DecodeRelay(b); err == nil {
			if _, err := wire.DecodeRelay(r.Encode()); err != nil {
				t.Errorf("%v %v", r, err)
			}
		}
		if n, err := wire.DecodeName(b); err == nil && (n == "" || len(n) > wire.MaxName) {
			t.Errorf("%q", n)
		}
	})
}
