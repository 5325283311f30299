package agent

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"sync"

	"proctor/sandbox/box/wire"
)

// Server answers the host. One for the life of the agent; connections come and go.
type Server struct {
	results *results
	procs   *procs
	relay   *relay

	mu  sync.Mutex
	box *machine // nil until the first Hello
}

// NewServer makes a server that waits for its first Hello.
func NewServer() *Server { return &Server{results: newResults(), procs: newProcs(), relay: newRelay()} }

// inFlight bounds the open requests of a connection; further ones wait in the socket.
const inFlight = 256

// Serve speaks to one host until it hangs up. What was begun goes on without it.
func (s *Server) Serve(conn io.ReadWriteCloser) error {
	in := bufio.NewReaderSize(conn, 16<<10)
	first, err := wire.Read(in, 8<<20)
	if err == nil && first.Kind == wire.KindPark {
		s.relay.park(conn, in)
		return nil
	}
	defer conn.Close()
	switch {
	case err != nil:
		return err
	case first.Kind == wire.KindRelay:
		return s.relay.serve(first, in, conn)
	}
	link := &link{conn: conn}
	if err := s.greet(first, link); err != nil {
		return err
	}
	slots := make(chan struct{}, inFlight)
	for {
		f, err := wire.Read(in, wire.MaxRequest)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		slots <- struct{}{}
		s.handle(f, func(reply wire.Frame) {
			reply.ID = f.ID
			link.send(reply)
			<-slots
		})
	}
}

// greet takes the Hello. An agent that cannot start its shell says so and stays unconfigured.
func (s *Server) greet(f wire.Frame, link *link) error {
	if f.Kind != wire.KindHello {
		return fmt.Errorf("%w: kind %d instead of a hello", wire.ErrFrame, f.Kind)
	}
	hello, err := wire.DecodeHello(f.Payload)
	if err == nil && hello.Version != wire.Version {
		err = fmt.Errorf("this agent speaks version %d, not %d", wire.Version, hello.Version)
	}
	var resumed bool
	if err == nil {
		resumed, err = s.configure(hello.Init)
	}
	if err != nil {
		link.send(wire.Frame{Kind: wire.KindFail, Payload: wire.EncodeFail(err)})
		return err
	}
	w := wire.Welcome{Version: wire.Version, Shell: s.box.shell.path, Resumed: resumed}
	link.send(wire.Frame{Kind: wire.KindWelcome, Payload: w.Encode()})
	return nil
}

func (s *Server) configure(init wire.Init) (resumed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.box != nil {
		return true, nil
	}
	s.box, err = newMachine(s.procs, init)
	return false, err
}

// handle answers a request through reply, once, now or later. Shell calls are queued in the order in
// which handle is called.
func (s *Server) handle(f wire.Frame, reply func(wire.Frame)) {
	switch f.Kind {
	case wire.KindDo:
		call, err := wire.DecodeCall(f.Payload)
		if err == nil && (call.ID == "" || len(call.ID) > 128) {
			err = errors.New("a call's ID has 1 to 128 bytes")
		}
		if err != nil {
			reply(failed(err))
			return
		}
		s.once(call.ID, wire.KindDo, reply, func() func() wire.Frame { return s.box.do(call) })
	case wire.KindExec:
		x, err := wire.DecodeExec(f.Payload)
		if err != nil {
			reply(failed(err))
			return
		}
		s.once(x.ID, wire.KindExec, reply, func() func() wire.Frame { return s.box.exec(x) })
	default:
		go func() { reply(s.answer(f)) }()
	}
}

// once makes a call for the first caller with this ID, and gives all others what it gave. begin is
// called before once comes back, and not at all for others.
func (s *Server) once(id string, kind wire.Kind, reply func(wire.Frame), begin func() func() wire.Frame) {
	if id == "" {
		run := begin()
		go func() { reply(run()) }()
		return
	}
	e, first, err := s.results.join(id, kind)
	switch {
	case err != nil:
		reply(failed(err))
	case first:
		run := begin()
		go func() {
			f := run()
			s.results.finish(id, e, f)
			reply(f)
		}()
	default:
		go func() {
			<-e.done
			reply(e.reply)
		}()
	}
}

// answer answers what needs no ID.
func (s *Server) answer(f wire.Frame) wire.Frame {
	switch f.Kind {
	case wire.KindPing:
		return replied(nil, nil)
	case wire.KindState, wire.KindStat, wire.KindForget:
		list, err := wire.DecodeStrings(f.Payload)
		if err != nil {
			return failed(err)
		}
		if f.Kind == wire.KindForget {
			s.results.forget(list)
			return replied(nil, nil)
		}
		if len(list) != 1 {
			return failed(wire.ErrPayload)
		}
		if f.Kind == wire.KindState {
			return replied(wire.EncodeStrings(string(s.results.state(list[0]))), nil)
		}
		info, err := statFile(list[0])
		return replied(wire.EncodeFileInfo(info), err)
	case wire.KindReadFile:
		r, err := wire.DecodeReadFile(f.Payload)
		if err != nil {
			return failed(err)
		}
		return replied(readFile(r.Path, r.Limit))
	default:
		return failed(fmt.Errorf("%w: kind %d is no request", wire.ErrFrame, f.Kind))
	}
}

func replied(payload []byte, err error) wire.Frame {
	if err != nil {
		return failed(err)
	}
	return wire.Frame{Kind: wire.KindReply, Payload: payload}
}

func failed(err error) wire.Frame {
	return wire.Frame{Kind: wire.KindFail, Payload: wire.EncodeFail(err)}
}

// link writes frames to one connection, one at a time.
type link struct {
	mu   sync.Mutex
	conn io.Writer
}

// send drops what cannot be sent: the host is gone and will ask again.
func (l *link) send(f wire.Frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = wire.Write(l.conn, f)
}
