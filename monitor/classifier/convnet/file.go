package convnet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// FileSize is the length in bytes of what Write writes.
const FileSize = 4*(3+(2+3+3)*dim*filters+3*filters+filters*dim+pooled*dim+inputs*hidden+2*hidden+1) + WordRows*dim + FactRows*dim + FactRows

// ErrFile is wrapped by errors of what holds no network.
var ErrFile = errors.New("not a network's weights")

// Write writes a network, FileSize bytes: the layers and the tables' steps as little-endian floats of 32 bits, then the
// tables, a byte each. The same network gives the same bytes.
func (n *Net) Write(to io.Writer) error {
	var floats []float32
	for _, part := range n.layers.parts() {
		floats = append(floats, part...)
	}
	for _, t := range n.tables() {
		floats = append(floats, t.step[:]...)
	}
	out := make([]byte, 0, FileSize)
	for _, f := range floats {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(f))
	}
	for _, t := range n.tables() {
		for _, v := range t.values {
			out = append(out, byte(v))
		}
	}
	_, err := to.Write(out)
	return err
}

// Read reads a network. Errors wrap ErrFile.
func Read(from io.Reader) (*Net, error) {
	raw := make([]byte, FileSize)
	if _, err := io.ReadFull(from, raw); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	n := &Net{words: newVectors(WordRows, dim), facts: newVectors(FactRows, dim), says: newVectors(FactRows, 1)}
	parts := n.layers.parts()
	for _, t := range n.tables() {
		parts = append(parts, t.step[:])
	}
	for _, part := range parts {
		for i := range part {
			part[i], raw = math.Float32frombits(binary.LittleEndian.Uint32(raw)), raw[4:]
			if v := float64(part[i]); math.IsNaN(v) || math.Abs(v) > maxWeight {
				return nil, fmt.Errorf("%w: one is %v", ErrFile, v)
			}
		}
	}
	for _, t := range n.tables() {
		for j := range t.values {
			t.values[j] = int8(raw[j]) //nolint:gosec // the bits are what is meant
		}
		raw = raw[len(t.values):]
	}
	return n, nil
}

// maxWeight is more than any weight that training finds, and far below what would overflow.
const maxWeight = 1e6

// tables gives a network's tables, in the order of a file.
func (n *Net) tables() []*vectors { return []*vectors{&n.words, &n.facts, &n.says} }

func newVectors(rows, width int) vectors { return vectors{values: make([]int8, rows*width)} }
