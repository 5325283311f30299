package agent

import (
	"context"
	"net/netip"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// known finds one name.
func known(_ context.Context, name string) (netip.Addr, bool) {
	return netip.MustParseAddr("127.64.0.1"), name == "good.test"
}

// query builds a query.
func query(t testing.TB, name string, kind dnsmessage.Type, class dnsmessage.Class) []byte {
	t.Helper()
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: class}}}
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAnswerQuery(t *testing.T) {
	for _, tc := range []struct {
		name  string
		kind  dnsmessage.Type
		class dnsmessage.Class
		code  dnsmessage.RCode
		addrs int
	}{
		{"good.test.", dnsmessage.TypeA, dnsmessage.ClassINET, dnsmessage.RCodeSuccess, 1},
		{"GOOD.Test.", dnsmessage.TypeA, dnsmessage.ClassINET, dnsmessage.RCodeSuccess, 1},
		{"good.test.", dnsmessage.TypeAAAA, dnsmessage.ClassINET, dnsmessage.RCodeSuccess, 0},
		{"good.test.", dnsmessage.TypeHTTPS, dnsmessage.ClassINET, dnsmessage.RCodeSuccess, 0},
		{"good.test.", dnsmessage.TypeA, dnsmessage.ClassCHAOS, dnsmessage.RCodeServerFailure, 0},
		{"bad.test.", dnsmessage.TypeA, dnsmessage.ClassINET, dnsmessage.RCodeServerFailure, 0},
		{"bad.test.", dnsmessage.TypeTXT, dnsmessage.ClassINET, dnsmessage.RCodeServerFailure, 0},
		{".", dnsmessage.TypeNS, dnsmessage.ClassINET, dnsmessage.RCodeServerFailure, 0},
	} {
		var m dnsmessage.Message
		if err := m.Unpack(answerQuery(query(t, tc.name, tc.kind, tc.class), known)); err != nil {
			t.Fatal(err)
		}
		if m.ID != 7 || !m.Response || m.RCode != tc.code || len(m.Answers) != tc.addrs || len(m.Questions) != 1 {
			t.Errorf("%s %v: %+v", tc.name, tc.kind, m)
		}
	}
	reply := query(t, "good.test.", dnsmessage.TypeA, dnsmessage.ClassINET)
	reply[2] |= 0x80
	if got := answerQuery(reply, known); got != nil {
		t.Errorf("a reply was answered: %x", got)
	}
}

// FuzzAnswerQuery feeds the resolver: what it answers is a reply with the query's id.
func FuzzAnswerQuery(f *testing.F) {
	f.Add(query(f, "good.test.", dnsmessage.TypeA, dnsmessage.ClassINET))
	f.Add([]byte{0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		got := answerQuery(b, known)
		if got == nil {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(got); err != nil || !m.Response || got[0] != b[0] || got[1] != b[1] {
			t.Errorf("%x: %x %v", b, got, err)
		}
	})
}

// The addresses of names are all different and none is one that programs commonly use.
func TestNth(t *testing.T) {
	seen := map[netip.Addr]bool{}
	for n := range maxNames {
		a := nth(n)
		if seen[a] || !a.IsLoopback() || a.As4()[1] != 64 || a.As4()[3] == 0 || a.As4()[3] == 255 {
			t.Errorf("%d: %v", n, a)
		}
		seen[a] = true
	}
}
