package agent

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// The resolver inside. A name that the host knows gets the loopback address at which it can be reached;
// every other name, existing or not, gets SERVFAIL, which programs report as they do on a machine that
// reaches no resolver: "Temporary failure in name resolution", "Could not resolve host".

const (
	maxQuery   = 4 << 10          // bytes of a query over TCP; over UDP one datagram of this size
	maxAsking  = 64               // queries at once; further ones wait in the socket, and are lost where that is full
	maxTCPName = 16               // connections to the resolver at once
	nameTTL    = 60               // seconds
	idleName   = 10 * time.Second // of a TCP connection
)

// finder gives the address of a name in lower case without a dot at its end.
type finder func(ctx context.Context, name string) (netip.Addr, bool)

// serveNames starts a resolver at addr, over UDP and TCP, for as long as the agent lives.
func serveNames(addr netip.AddrPort, find finder) error {
	udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(addr))
	if err != nil {
		return fmt.Errorf("listening for names: %w", err)
	}
	tcp, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(addr))
	if err != nil {
		udp.Close()
		return fmt.Errorf("listening for names: %w", err)
	}
	go serveDatagrams(udp, find)
	go serveStreams(tcp, find)
	return nil
}

func serveDatagrams(conn *net.UDPConn, find finder) {
	slots := make(chan struct{}, maxAsking)
	buf := make([]byte, maxQuery)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buf)
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		slots <- struct{}{}
		query := append([]byte(nil), buf[:n]...)
		go func() {
			defer func() { <-slots }()
			if reply := answerQuery(query, find); reply != nil {
				_, _ = conn.WriteToUDPAddrPort(reply, from)
			}
		}()
	}
}

func serveStreams(l net.Listener, find finder) {
	slots := make(chan struct{}, maxTCPName)
	for {
		slots <- struct{}{}
		conn, err := l.Accept()
		if err != nil {
			<-slots
			time.Sleep(100 * time.Millisecond)
			continue
		}
		go func() {
			defer func() { <-slots }()
			defer conn.Close()
			for serveStream(conn, find) == nil {
			}
		}()
	}
}

// serveStream answers one query of a TCP connection.
func serveStream(conn net.Conn, find finder) error {
	_ = conn.SetDeadline(time.Now().Add(idleName))
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint16(size[:])
	if n > maxQuery {
		return errors.New("a query that is too long")
	}
	query := make([]byte, n)
	if _, err := io.ReadFull(conn, query); err != nil {
		return err
	}
	reply := answerQuery(query, find)
	if reply == nil {
		return errors.New("no query")
	}
	_, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...))
	return err
}

// answerQuery gives the reply to a query, nil where it is none.
func answerQuery(query []byte, find finder) []byte {
	var p dnsmessage.Parser
	head, err := p.Start(query)
	if err != nil || head.Response {
		return nil
	}
	q, err := p.Question()
	if err != nil {
		return reply(head, nil, dnsmessage.RCodeFormatError, netip.Addr{})
	}
	if head.OpCode != 0 {
		return reply(head, &q, dnsmessage.RCodeNotImplemented, netip.Addr{})
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	name := strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))
	if name == "" || q.Class != dnsmessage.ClassINET {
		return reply(head, &q, dnsmessage.RCodeServerFailure, netip.Addr{})
	}
	addr, ok := find(ctx, name)
	switch {
	case !ok:
		return reply(head, &q, dnsmessage.RCodeServerFailure, netip.Addr{})
	case q.Type != dnsmessage.TypeA:
		return reply(head, &q, dnsmessage.RCodeSuccess, netip.Addr{})
	}
	return reply(head, &q, dnsmessage.RCodeSuccess, addr)
}

// reply builds a reply; with the zero address it has no answer.
func reply(head dnsmessage.Header, q *dnsmessage.Question, code dnsmessage.RCode, addr netip.Addr) []byte {
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{ID: head.ID, Response: true, OpCode: head.OpCode,
		RecursionDesired: head.RecursionDesired, RecursionAvailable: true, RCode: code})
	b.EnableCompression()
	if q == nil {
		out, _ := b.Finish()
		return out
	}
	err := errors.Join(b.StartQuestions(), b.Question(*q))
	if addr.IsValid() {
		err = errors.Join(err, b.StartAnswers(), b.AResource(
			dnsmessage.ResourceHeader{Name: q.Name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET, TTL: nameTTL},
			dnsmessage.AResource{A: addr.As4()}))
	}
	if err != nil {
		return nil
	}
	out, err := b.Finish()
	if err != nil {
		return nil
	}
	return out
}
