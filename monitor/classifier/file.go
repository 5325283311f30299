package classifier

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"proctor/monitor/classifier/convnet"
)

// magic starts a model's file, under gzip; a line of JSON, the header, and the tables follow.
const magic = "proctor-classifier/4\n"

// ErrModel is wrapped by errors of files that are no model.
var ErrModel = errors.New("not a classifier's model")

// Bounds of what is read.
const (
	maxHeader  = 1 << 20
	maxClasses = 64
)

//go:embed core.model
var core []byte

// Core gives the built-in model.
var Core = sync.OnceValue(func() *Model {
	m, err := Read(bytes.NewReader(core))
	if err != nil {
		panic(err) // a test reads it
	}
	return m
})

// Load reads a model's file. Errors wrap ErrModel, or are the file system's.
func Load(file string) (*Model, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	m, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; make one with `proctor classifier train`", file, err)
	}
	return m, nil
}

// Read reads a model. Errors wrap ErrModel.
func Read(from io.Reader) (*Model, error) {
	m, err := read(from)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	return m, nil
}

func read(from io.Reader) (*Model, error) {
	z, err := gzip.NewReader(from)
	if err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(io.LimitReader(z, maxHeader+maxClasses<<classBits+tableSize+numNets*convnet.FileSize), 1<<16)
	start := make([]byte, len(magic))
	if _, err := io.ReadFull(in, start); err != nil || string(start) != magic {
		return nil, errors.New("it does not start as one of this version")
	}
	line, err := in.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	m := &Model{classes: map[string][]int8{}}
	if err := json.Unmarshal(line, &m.Header); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	if n := len(m.Header.Classes); n != len(m.Header.Offsets) || n > maxClasses {
		return nil, fmt.Errorf("header: %d classes and %d offsets", n, len(m.Header.Offsets))
	}
	if m.weights, err = table(in, tableSize); err != nil {
		return nil, err
	}
	for _, class := range m.Header.Classes {
		if m.classes[class], err = table(in, 1<<classBits); err != nil {
			return nil, err
		}
	}
	for range numNets {
		net, err := convnet.Read(in)
		if err != nil {
			return nil, err
		}
		m.nets = append(m.nets, net)
	}
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than the header tells of")
	}
	return m, nil
}

// table reads n weights.
func table(in io.Reader, n int) ([]int8, error) {
	raw := make([]byte, n)
	if _, err := io.ReadFull(in, raw); err != nil {
		return nil, fmt.Errorf("weights: %w", err)
	}
	out := make([]int8, n)
	for i, b := range raw {
		out[i] = int8(b) //nolint:gosec // the bits are what is meant
	}
	return out, nil
}

// Write writes the model; the same model gives the same bytes.
func (m *Model) Write(to io.Writer) error {
	z, err := gzip.NewWriterLevel(to, gzip.BestCompression)
	if err != nil {
		return err
	}
	return errors.Join(m.write(z), z.Close())
}

// Digest pins the model, "sha256:..." of what a file of it holds: equal digests, equal suspicions.
func (m *Model) Digest() string {
	m.summed.Do(func() {
		sum := sha256.New()
		_ = m.write(sum) // which keeps all it is given
		m.digest = "sha256:" + hex.EncodeToString(sum.Sum(nil))
	})
	return m.digest
}

// write writes what a model's file holds, not compressed.
func (m *Model) write(to io.Writer) error {
	header, err := json.Marshal(m.Header)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(to)
	put := func(weights []int8) {
		for _, w := range weights {
			_ = out.WriteByte(byte(w)) // kept until Flush, which tells
		}
	}
	_, _ = out.WriteString(magic)
	_, _ = out.Write(append(header, '\n'))
	put(m.weights)
	for _, class := range m.Header.Classes {
		put(m.classes[class])
	}
	for _, net := range m.nets {
		_ = net.Write(out)
	}
	return out.Flush()
}
