package records

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/klauspost/compress/zstd"
)

// A stored model call is one of
//
//	{...}           JSON, as the first version wrote it, arrays in base64
//	0x01 ...        a header in JSON, and behind it the parts that are most of its bytes, as they are
//	(zstd frame)    either, compressed
//
// The parts are ids, sampled ids, logprobs, messages, tools and the answer, in this order. An array is a uvarint
// count and its little-endian numbers, a text a uvarint length and its bytes, a list a uvarint of its length
// plus one (0: null) and its texts. Messages are compact JSON, which exports pass on as they are: reading them back through
// a JSON decoder was most of what an export cost.
const binaryForm = 1

// pack gives a model call as it is stored.
func (c *codec) packCall(d *doc) ([]byte, error) {
	head := *d
	head.IDs, head.Out, head.LP, head.Messages, head.Tools, head.Output = nil, nil, nil, nil, nil, nil
	text, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	size := len(text) + 4*len(d.IDs) + 4*len(d.Out) + 8*len(d.LP) + len(d.Tools) + len(d.Output) + 64
	for _, m := range d.Messages {
		size += len(m) + 4
	}
	b := appendText(append(make([]byte, 0, size), binaryForm), text)
	b = appendInts(appendInts(b, d.IDs), d.Out)
	b = binary.AppendUvarint(b, uint64(len(d.LP)))
	for _, v := range d.LP {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	if b, err = appendList(b, d.Messages); err != nil {
		return nil, err
	}
	for _, part := range []json.RawMessage{d.Tools, d.Output} {
		if part, err = compact(part); err != nil {
			return nil, err
		}
		b = appendText(b, part)
	}
	return c.squeeze(b), nil
}

// compact gives JSON without blanks, escaped as it always was stored; an error where it is none.
func compact(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	return json.Marshal(raw)
}

func appendText(b, text []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

func appendInts(b []byte, list []int32) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, v := range list {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	return b
}

func appendList(b []byte, list []json.RawMessage) ([]byte, error) {
	if list == nil {
		return binary.AppendUvarint(b, 0), nil
	}
	b = binary.AppendUvarint(b, uint64(len(list))+1)
	for i, m := range list {
		m, err := compact(m)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		b = appendText(b, m)
	}
	return b, nil
}

// unpackCall undoes packCall. What it gives holds on to data.
func (c *codec) unpackCall(data []byte, d *doc) error {
	data, err := c.plain(data)
	if err != nil {
		return err
	}
	if len(data) == 0 || data[0] != binaryForm {
		return json.Unmarshal(data, d)
	}
	r := reader{b: data[1:]}
	head := r.text()
	if r.err == nil {
		if err := json.Unmarshal(head, d); err != nil {
			return err
		}
	}
	d.IDs, d.Out, d.LP = r.ints(), r.ints(), r.nums()
	d.Messages, d.Tools, d.Output = r.list(), r.text(), r.text()
	if r.err == nil && len(r.b) > 0 {
		r.err = fmt.Errorf("%d bytes are left over", len(r.b))
	}
	return r.err
}

var errCut = errors.New("it is cut off")

// reader takes parts off the front of b. Its first error stays.
type reader struct {
	b   []byte
	err error
}

// take gives the next n things of size bytes, as they are.
func (r *reader) take(n uint64, size int) []byte {
	if r.err != nil || n > uint64(len(r.b)/size) {
		if r.err == nil {
			r.err = errCut
		}
		return nil
	}
	part := r.b[: int(n)*size : int(n)*size]
	r.b = r.b[int(n)*size:]
	return part
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		if r.err == nil {
			r.err = errCut
		}
		return 0
	}
	r.b = r.b[n:]
	return v
}

// text gives the next text, nil for an empty one.
func (r *reader) text() []byte {
	if part := r.take(r.uvarint(), 1); len(part) > 0 {
		return part
	}
	return nil
}

func (r *reader) ints() ints {
	raw := r.take(r.uvarint(), 4)
	if len(raw) == 0 {
		return nil
	}
	list := make(ints, len(raw)/4)
	for i := range list {
		list[i] = int32(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return list
}

func (r *reader) nums() nums {
	raw := r.take(r.uvarint(), 8)
	if len(raw) == 0 {
		return nil
	}
	list := make(nums, len(raw)/8)
	for i := range list {
		list[i] = math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:]))
	}
	return list
}

func (r *reader) list() []json.RawMessage {
	n := r.uvarint()
	if n == 0 || r.err != nil {
		return nil
	}
	n--
	if n > uint64(len(r.b)) { // each has a byte at least
		r.err = errCut
		return nil
	}
	list := make([]json.RawMessage, n)
	for i := range list {
		list[i] = r.text()
	}
	return list
}

// codec packs documents. EncodeAll and DecodeAll are safe for concurrent use.
type codec struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
}

// packFrom is the length in bytes from which a document is compressed: what a turn adds is mostly
// shorter, and setting up the compressor would cost more than writing it as it is.
const packFrom = 8 << 10

// maxDoc bounds a decoded document, in bytes.
const maxDoc = 1 << 30

func newCodec() (*codec, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(1<<20))
	if err != nil {
		return nil, err
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxDoc))
	if err != nil {
		return nil, err
	}
	return &codec{enc, dec}, nil
}

// pack gives v, an uploaded segment, as it is stored.
func (c *codec) pack(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return c.squeeze(data), nil
}

// squeeze compresses what is long.
func (c *codec) squeeze(data []byte) []byte {
	if len(data) < packFrom {
		return data
	}
	return c.enc.EncodeAll(data, nil)
}

// plain undoes squeeze.
func (c *codec) plain(data []byte) ([]byte, error) {
	if len(data) > 0 && (data[0] == '{' || data[0] == binaryForm) { // a frame begins with another byte
		return data, nil
	}
	return c.dec.DecodeAll(data, nil)
}

func (c *codec) unpack(data []byte, v any) error {
	plain, err := c.plain(data)
	if err != nil {
		return err
	}
	return json.Unmarshal(plain, v)
}
