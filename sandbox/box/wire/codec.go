package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// ErrPayload says that a payload does not hold what its kind defines.
var ErrPayload = errors.New("malformed payload")

// encoder appends fields to a payload.
type encoder struct{ b []byte }

func (e *encoder) uint(v uint64)            { e.b = binary.AppendUvarint(e.b, v) }
func (e *encoder) int(v int64)              { e.b = binary.AppendVarint(e.b, v) }
func (e *encoder) duration(v time.Duration) { e.int(int64(v)) }

func (e *encoder) bool(v bool) {
	if v {
		e.b = append(e.b, 1)
	} else {
		e.b = append(e.b, 0)
	}
}

func (e *encoder) bytes(v []byte) {
	e.uint(uint64(len(v)))
	e.b = append(e.b, v...)
}

func (e *encoder) string(v string) {
	e.uint(uint64(len(v)))
	e.b = append(e.b, v...)
}

func (e *encoder) strings(v []string) {
	e.uint(uint64(len(v)))
	for _, s := range v {
		e.string(s)
	}
}

// time keeps nanoseconds of Unix time; the zero time is 0.
func (e *encoder) time(v time.Time) {
	if v.IsZero() {
		e.int(0)
	} else {
		e.int(v.UnixNano())
	}
}

// optional is an int that may be missing.
func (e *encoder) optional(v *int) {
	e.bool(v != nil)
	if v != nil {
		e.int(int64(*v))
	}
}

// decoder takes fields from a payload. After the first error all it gives is zero.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail(what string) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", ErrPayload, what)
	}
	d.b = nil
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail("a number is cut off or too long")
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) int() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail("a number is cut off or too long")
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) duration() time.Duration { return time.Duration(d.int()) }

func (d *decoder) bool() bool {
	if len(d.b) == 0 || d.b[0] > 1 {
		d.fail("a boolean is neither 0 nor 1")
		return false
	}
	v := d.b[0] == 1
	d.b = d.b[1:]
	return v
}

// bytes gives a slice of the payload itself, nil where it is empty.
func (d *decoder) bytes() []byte {
	n := d.uint()
	if n > uint64(len(d.b)) {
		d.fail("a text is cut off")
		return nil
	}
	if n == 0 {
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) string() string { return string(d.bytes()) }

func (d *decoder) strings() []string {
	n := d.uint()
	if n > uint64(len(d.b)) { // each takes a byte at least
		d.fail("a list is cut off")
		return nil
	}
	var v []string
	for range n {
		if v = append(v, d.string()); d.err != nil {
			return nil
		}
	}
	return v
}

func (d *decoder) time() time.Time {
	v := d.int()
	if v == 0 {
		return time.Time{}
	}
	return time.Unix(0, v)
}

func (d *decoder) optional() *int {
	if !d.bool() {
		return nil
	}
	v := int(d.int())
	return &v
}

// done gives the first error, or one where anything is left over.
func (d *decoder) done() error {
	if d.err == nil && len(d.b) > 0 {
		d.fail("bytes are left over")
	}
	return d.err
}
