package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Version is the protocol's; both sides must agree on it exactly, for one build makes both.
const Version = 3

// Bounds of frames, in bytes of payload. A request holds at most a stdin of MaxStdin and its
// arguments; a reply at most two streams of MaxStream.
const (
	MaxStdin   = 16 << 20
	MaxStream  = 16 << 20
	MaxRequest = MaxStdin + 8<<20
	MaxReply   = 2*MaxStream + 1<<20
)

const (
	headerLen = 13       // length, kind, id
	firstRead = 64 << 10 // what is allocated before any payload has arrived
)

// Kind says what a frame is.
type Kind byte

// The kinds of frames. Appended to, never renumbered.
const (
	KindHello    Kind = 1 // host: Hello
	KindDo       Kind = 2 // host: a sandbox.Call; Reply: a sandbox.Result
	KindState    Kind = 3 // host: a call's ID; Reply: a sandbox.CallState
	KindExec     Kind = 4 // host: a sandbox.Exec; Reply: a sandbox.ExecResult
	KindReadFile Kind = 5 // host: ReadFile; Reply: the bytes
	KindStat     Kind = 6 // host: a path; Reply: a sandbox.FileInfo
	KindPing     Kind = 7 // host: nothing; Reply: nothing
	KindForget   Kind = 8 // host: IDs of calls whose results are recorded; Reply: nothing

	KindRelay Kind = 9  // host, in place of a Hello: Relay; Reply: nothing. From then on the agent asks: Resolve
	KindPorts Kind = 10 // host, to a KindResolve: Ports
	KindPark  Kind = 11 // host, in place of a Hello: nothing; the agent answers with a Dial when it needs the connection

	KindWelcome Kind = 64 // agent: Welcome
	KindReply   Kind = 65 // agent: what the request's kind defines
	KindFail    Kind = 66 // agent: Fail
	KindResolve Kind = 67 // agent, on a relay's connection: a name
	KindDial    Kind = 68 // agent, on a parked connection: Dial; what follows is no frame any more but the stream itself
)

// Frame is one message.
type Frame struct {
	Kind    Kind
	ID      uint64
	Payload []byte
}

// ErrFrame says that what arrived is not a frame. The connection is of no further use.
var ErrFrame = errors.New("malformed frame")

// Write sends a frame in a single Write.
func Write(w io.Writer, f Frame) error {
	buf := make([]byte, headerLen, headerLen+len(f.Payload))
	binary.BigEndian.PutUint32(buf, uint32(headerLen-4+len(f.Payload)))
	buf[4] = byte(f.Kind)
	binary.BigEndian.PutUint64(buf[5:], f.ID)
	_, err := w.Write(append(buf, f.Payload...))
	return err
}

// Read receives a frame with at most limit bytes of payload. It gives io.EOF at a clean end,
// ErrFrame for a bad length, and io.ErrUnexpectedEOF for a cut-off one. The payload is the caller's.
func Read(r io.Reader, limit int) (Frame, error) {
	var head [headerLen]byte
	if _, err := io.ReadFull(r, head[:4]); err != nil {
		return Frame{}, err
	}
	size := int64(binary.BigEndian.Uint32(head[:])) - (headerLen - 4)
	if size < 0 || size > int64(limit) {
		return Frame{}, fmt.Errorf("%w: a payload of %d bytes, limit %d", ErrFrame, size, limit)
	}
	if _, err := io.ReadFull(r, head[4:]); err != nil {
		return Frame{}, noEOF(err)
	}
	f := Frame{Kind: Kind(head[4]), ID: binary.BigEndian.Uint64(head[5:])}
	payload, err := readPayload(r, int(size))
	f.Payload = payload
	return f, err
}

// readPayload grows with what arrives, so that a length alone does not allocate.
func readPayload(r io.Reader, size int) ([]byte, error) {
	buf := make([]byte, min(size, firstRead))
	for done := 0; ; {
		n, err := io.ReadFull(r, buf[done:])
		if err != nil {
			return nil, noEOF(err)
		}
		if done += n; done == size {
			return buf, nil
		}
		grown := make([]byte, min(size, 4*len(buf)))
		copy(grown, buf)
		buf = grown
	}
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
