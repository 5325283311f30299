package gitobj

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"sort"

	"github.com/klauspost/compress/zlib"
)

// Pack entry types beside the object types.
const (
	ofsDelta Type = 6
	refDelta Type = 7
)

// maxChain bounds delta chains; git's default is 50, its maximum 4095.
const maxChain = 4095

// pack is one .pack with its index.
type pack struct {
	name    string
	file    *os.File
	size    int64
	index   *packIndex
	offsets []int64 // sorted; where entries start
	cache   *deltaCache
	in      *bufio.Reader // reused, with z: setting up an inflater costs more than most objects
	z       io.ReadCloser
}

// entry is the header of a pack entry.
type entry struct {
	kind   Type
	size   int64
	base   int64 // ofsDelta: where the base starts
	baseID ID    // refDelta
	data   int64 // where the compressed bytes start
	end    int64 // where the next entry starts
}

func openPack(file *os.File, name string, idx []byte) (*pack, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	index, err := parsePackIndex(idx)
	if err != nil {
		return nil, err
	}
	p := &pack{name: name, file: file, size: info.Size(), index: index, cache: newDeltaCache()}
	header := make([]byte, 12)
	if _, err := file.ReadAt(header, 0); err != nil || p.size < 32 || string(header[:4]) != "PACK" {
		return nil, fmt.Errorf("is not a pack")
	}
	if v := binary.BigEndian.Uint32(header[4:]); v != 2 && v != 3 {
		return nil, fmt.Errorf("is a pack of version %d", v)
	}
	if n := binary.BigEndian.Uint32(header[8:]); int64(n) != int64(index.count) {
		return nil, fmt.Errorf("holds %d objects, and its index names %d", n, index.count)
	}
	p.offsets = make([]int64, index.count)
	for i := range p.offsets {
		p.offsets[i] = index.offset(i)
	}
	sort.Slice(p.offsets, func(i, j int) bool { return p.offsets[i] < p.offsets[j] })
	for i, o := range p.offsets {
		if o < 12 || o >= p.size-20 || (i > 0 && o == p.offsets[i-1]) {
			return nil, fmt.Errorf("its index has a broken offset")
		}
	}
	return p, nil
}

// header reads the entry that starts at offset.
func (p *pack) header(offset int64) (entry, error) {
	i := sort.Search(len(p.offsets), func(i int) bool { return p.offsets[i] >= offset })
	if i == len(p.offsets) || p.offsets[i] != offset {
		return entry{}, fmt.Errorf("no entry starts at %d", offset)
	}
	e := entry{end: p.size - 20}
	if i+1 < len(p.offsets) {
		e.end = p.offsets[i+1]
	}
	buf := make([]byte, min(40, e.end-offset))
	if _, err := p.file.ReadAt(buf, offset); err != nil {
		return e, err
	}
	n, err := e.parse(buf, offset)
	e.data = offset + int64(n)
	return e, err
}

// parse reads type, size and base from the head of an entry; it gives the bytes used.
func (e *entry) parse(buf []byte, offset int64) (int, error) {
	broken := fmt.Errorf("broken entry at %d", offset)
	if len(buf) == 0 {
		return 0, broken
	}
	e.kind = Type(buf[0] >> 4 & 7)
	e.size = int64(buf[0] & 15)
	n := 1
	for shift := 4; buf[n-1]&0x80 != 0; shift += 7 {
		if n == len(buf) || shift > 53 {
			return 0, broken
		}
		e.size |= int64(buf[n]&0x7f) << shift
		n++
	}
	switch e.kind {
	case Commit, Tree, Blob, Tag:
	case refDelta:
		if len(buf) < n+20 {
			return 0, broken
		}
		e.baseID = ID(buf[n : n+20])
		n += 20
	case ofsDelta:
		back, used := ofsBack(buf[n:])
		if used == 0 || back <= 0 || back > offset-12 {
			return 0, broken
		}
		e.base = offset - back
		n += used
	default:
		return 0, broken
	}
	return n, nil
}

// ofsBack reads the distance of an ofs-delta's base; used is 0 where it is broken.
func ofsBack(buf []byte) (back int64, used int) {
	for used < len(buf) && used < 9 {
		c := buf[used]
		used++
		back = back<<7 | int64(c&0x7f)
		if c&0x80 == 0 {
			return back, used
		}
		back++
	}
	return 0, 0
}

// inflate gives the content of an entry: an object's, or a delta's.
func (p *pack) inflate(e entry) ([]byte, error) {
	if e.size > MaxObject {
		return nil, fmt.Errorf("an object of %d bytes is over the limit of %d", e.size, MaxObject)
	}
	section := io.NewSectionReader(p.file, e.data, e.end-e.data)
	if p.z == nil {
		p.in = bufio.NewReader(section)
		z, err := zlib.NewReader(p.in)
		if err != nil {
			return nil, err
		}
		p.z = z
		return readExactly(p.z, e.size)
	}
	p.in.Reset(section)
	if err := p.z.(zlib.Resetter).Reset(p.in, nil); err != nil {
		return nil, err
	}
	return readExactly(p.z, e.size)
}

// raw gives the compressed bytes of an entry as they stand.
func (p *pack) raw(e entry) ([]byte, error) {
	data := make([]byte, e.end-e.data)
	_, err := p.file.ReadAt(data, e.data)
	return data, err
}

// at gives the object that starts at offset, its deltas resolved; the content must not be changed.
// outside finds bases that a ref-delta names in no pack of its own.
func (p *pack) at(offset int64, outside func(ID) (Type, []byte, error)) (Type, []byte, error) {
	var deltas [][]byte
	var places []int64
	var kind Type
	var data []byte
	for {
		if cached, ok := p.cache.get(offset); ok {
			kind, data = cached.kind, cached.data
			break
		}
		e, err := p.header(offset)
		if err != nil {
			return 0, nil, fmt.Errorf("pack %s: %w", p.name, err)
		}
		content, err := p.inflate(e)
		if err != nil {
			return 0, nil, fmt.Errorf("pack %s: entry at %d: %w", p.name, offset, err)
		}
		places = append(places, offset)
		if e.kind != ofsDelta && e.kind != refDelta {
			kind, data = e.kind, content
			p.cache.put(offset, kind, data)
			places = places[:len(places)-1]
			break
		}
		if deltas = append(deltas, content); len(deltas) > maxChain {
			return 0, nil, fmt.Errorf("pack %s: a delta chain is too long", p.name)
		}
		next, k, d, err := p.base(e, outside)
		if err != nil {
			return 0, nil, err
		}
		if d != nil || k != 0 {
			kind, data = k, d
			break
		}
		offset = next
	}
	for i := len(deltas) - 1; i >= 0; i-- {
		var err error
		if data, err = applyDelta(data, deltas[i]); err != nil {
			return 0, nil, fmt.Errorf("pack %s: %w", p.name, err)
		}
		p.cache.put(places[i], kind, data)
	}
	return kind, data, nil
}

// kind gives the type of the object that starts at offset, by headers alone.
func (p *pack) kind(offset int64, outside func(ID) (Type, error)) (Type, error) {
	for range maxChain {
		e, err := p.header(offset)
		if err != nil {
			return 0, fmt.Errorf("pack %s: %w", p.name, err)
		}
		switch e.kind {
		case ofsDelta:
			offset = e.base
		case refDelta:
			i, ok := p.index.find(e.baseID)
			if !ok {
				return outside(e.baseID)
			}
			offset = p.index.offset(i)
		default:
			return e.kind, nil
		}
	}
	return 0, fmt.Errorf("pack %s: a delta chain is too long", p.name)
}

// base finds what a delta rests on: a place in this pack, or an object from elsewhere.
func (p *pack) base(e entry, outside func(ID) (Type, []byte, error)) (int64, Type, []byte, error) {
	if e.kind == ofsDelta {
		return e.base, 0, nil, nil
	}
	if i, ok := p.index.find(e.baseID); ok {
		return p.index.offset(i), 0, nil, nil
	}
	kind, data, err := outside(e.baseID)
	return 0, kind, data, err
}
