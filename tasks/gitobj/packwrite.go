package gitobj

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sort"

	"github.com/klauspost/compress/zlib"
)

// written is one object of a pack being written.
type written struct {
	id     ID
	offset int64
	crc    uint32
}

// packWriter writes a pack. Deltas are carried over as they stand where their base was carried over
// before them, so that a scrubbed history is about as small as it was; else the object is written
// whole. A base always lies before what rests on it, so no circle can come about.
type packWriter struct {
	repo   *Repo
	out    io.Writer
	sum    hash.Hash
	at     int64
	done   []written
	places map[ID]int64
	want   map[ID]Type
}

// WritePack writes the objects of want as one pack with its index into the folder dir, and gives
// the pack's name without suffix. No object: no file, and "".
func (r *Repo) WritePack(dir string, want map[ID]Type) (string, error) {
	if len(want) == 0 {
		return "", nil
	}
	file, err := os.CreateTemp(dir, "tmp_pack_")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	w := &packWriter{repo: r, sum: sha1.New(), places: make(map[ID]int64, len(want)), want: want}
	buffered := &bytesBuffered{file: file}
	w.out = io.MultiWriter(buffered, w.sum)
	packSum, err := w.write()
	if err == nil {
		_, err = buffered.Write(packSum)
	}
	if err == nil {
		err = buffered.flush()
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return "", fmt.Errorf("writing the pack: %w", err)
	}
	name := "pack-" + hex.EncodeToString(packSum)
	if err := os.WriteFile(filepath.Join(dir, name+".idx"), w.index(packSum), 0o444); err != nil {
		return "", err
	}
	if err := os.Chmod(file.Name(), 0o444); err != nil {
		return "", err
	}
	return name, os.Rename(file.Name(), filepath.Join(dir, name+".pack"))
}

// bytesBuffered gathers small writes.
type bytesBuffered struct {
	file *os.File
	buf  []byte
}

func (b *bytesBuffered) Write(p []byte) (int, error) {
	b.buf = append(b.buf, p...)
	if len(b.buf) < 1<<20 {
		return len(p), nil
	}
	return len(p), b.flush()
}

func (b *bytesBuffered) flush() error {
	_, err := b.file.Write(b.buf)
	b.buf = b.buf[:0]
	return err
}

func (w *packWriter) write() ([]byte, error) {
	header := append([]byte("PACK\x00\x00\x00\x02"), 0, 0, 0, 0)
	binary.BigEndian.PutUint32(header[8:], uint32(len(w.want)))
	if err := w.bytes(header); err != nil {
		return nil, err
	}
	for _, s := range w.repo.stores {
		for _, p := range s.packs {
			if err := w.fromPack(p); err != nil {
				return nil, err
			}
		}
	}
	for _, id := range SetOf(w.want).IDs() {
		if _, ok := w.places[id]; ok {
			continue
		}
		if err := w.whole(id); err != nil {
			return nil, err
		}
	}
	return w.sum.Sum(nil), nil
}

func (w *packWriter) bytes(b []byte) error {
	_, err := w.out.Write(b)
	w.at += int64(len(b))
	return err
}

// fromPack carries over what is wanted from a pack, in the order in which it lies there.
func (w *packWriter) fromPack(p *pack) error {
	order := make([]int, 0, min(p.index.count, len(w.want)))
	for i := range p.index.count {
		id := p.index.id(i)
		if _, ok := w.want[id]; !ok {
			continue
		}
		if _, ok := w.places[id]; !ok {
			order = append(order, i)
		}
	}
	sort.Slice(order, func(a, b int) bool { return p.index.offset(order[a]) < p.index.offset(order[b]) })
	byOffset := map[int64]ID{}
	for i := range p.index.count {
		if _, ok := w.want[p.index.id(i)]; ok {
			byOffset[p.index.offset(i)] = p.index.id(i)
		}
	}
	for _, i := range order {
		e, err := p.header(p.index.offset(i))
		if err != nil {
			return err
		}
		if err := w.carry(p, p.index.id(i), e, byOffset); err != nil {
			return err
		}
	}
	return nil
}

func (w *packWriter) carry(p *pack, id ID, e entry, byOffset map[int64]ID) error {
	base, ok := e.baseID, true
	if e.kind == ofsDelta {
		base, ok = byOffset[e.base]
	}
	if e.kind == ofsDelta || e.kind == refDelta {
		place, before := w.places[base]
		if !ok || !before {
			return w.whole(id)
		}
		raw, err := p.raw(e)
		if err != nil {
			return err
		}
		return w.entry(id, append(entryHead(ofsDelta, e.size), ofsHead(w.at-place)...), raw)
	}
	raw, err := p.raw(e)
	if err != nil {
		return err
	}
	return w.entry(id, entryHead(e.kind, e.size), raw)
}

// whole reads an object, checks it, and writes it without a delta.
func (w *packWriter) whole(id ID) error {
	kind, data, err := w.repo.Get(id)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	if _, err := z.Write(data); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return w.entry(id, entryHead(kind, int64(len(data))), b.Bytes())
}

func (w *packWriter) entry(id ID, head, body []byte) error {
	w.places[id] = w.at
	crc := crc32.Update(crc32.ChecksumIEEE(head), crc32.IEEETable, body)
	w.done = append(w.done, written{id, w.at, crc})
	if err := w.bytes(head); err != nil {
		return err
	}
	return w.bytes(body)
}

func entryHead(kind Type, size int64) []byte {
	out := []byte{byte(kind)<<4 | byte(size&15)}
	for size >>= 4; size > 0; size >>= 7 {
		out[len(out)-1] |= 0x80
		out = append(out, byte(size&0x7f))
	}
	return out
}

// ofsHead writes the distance to a delta's base, as ofsBack reads it.
func ofsHead(back int64) []byte {
	out := []byte{byte(back & 0x7f)}
	for back >>= 7; back > 0; back >>= 7 {
		back--
		out = append([]byte{0x80 | byte(back&0x7f)}, out...)
	}
	return out
}

// index gives the .idx, version 2.
func (w *packWriter) index(packSum []byte) []byte {
	sort.Slice(w.done, func(i, j int) bool { return bytes.Compare(w.done[i].id[:], w.done[j].id[:]) < 0 })
	out := append([]byte("\xfftOc"), 0, 0, 0, 2)
	next := 0
	for first := range 256 {
		for next < len(w.done) && int(w.done[next].id[0]) <= first {
			next++
		}
		out = binary.BigEndian.AppendUint32(out, uint32(next))
	}
	for _, o := range w.done {
		out = append(out, o.id[:]...)
	}
	for _, o := range w.done {
		out = binary.BigEndian.AppendUint32(out, o.crc)
	}
	var large []byte
	for _, o := range w.done {
		if o.offset < 0x80000000 {
			out = binary.BigEndian.AppendUint32(out, uint32(o.offset))
			continue
		}
		out = binary.BigEndian.AppendUint32(out, 0x80000000|uint32(len(large)/8))
		large = binary.BigEndian.AppendUint64(large, uint64(o.offset))
	}
	out = append(append(out, large...), packSum...)
	sum := sha1.Sum(out)
	return append(out, sum[:]...)
}
