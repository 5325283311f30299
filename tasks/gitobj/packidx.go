package gitobj

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sort"
)

// maxPackObjects bounds the objects of one pack; the Linux kernel has 10 million.
const maxPackObjects = 32 << 20

// packIndex is an .idx of version 2 or 1, as bytes.
type packIndex struct {
	data    []byte
	count   int
	names   int // where the ids start
	step    int // from one id to the next
	offsets int // where the 4-byte offsets start (version 2)
	large   int // where the 8-byte offsets start (version 2)
	v1      bool
}

// parsePackIndex checks the shape of an index; offsets are checked when they are read.
func parsePackIndex(data []byte) (*packIndex, error) {
	x := &packIndex{data: data, step: 20}
	fanout := 8
	if !bytes.HasPrefix(data, []byte("\xfftOc")) {
		x.v1, fanout, x.step = true, 0, 24
	} else if len(data) < 8 || binary.BigEndian.Uint32(data[4:]) != 2 {
		return nil, fmt.Errorf("pack index has an unknown version")
	}
	if len(data) < fanout+1024+40 {
		return nil, fmt.Errorf("pack index is cut off")
	}
	last := uint32(0)
	for i := 0; i < 256; i++ {
		n := binary.BigEndian.Uint32(data[fanout+4*i:])
		if n < last {
			return nil, fmt.Errorf("pack index has a broken fan-out")
		}
		last = n
	}
	if last > maxPackObjects {
		return nil, fmt.Errorf("pack index claims %d objects", last)
	}
	x.count = int(last)
	x.names = fanout + 1024
	if x.v1 {
		x.names += 4
		if len(data) != fanout+1024+24*x.count+40 {
			return nil, fmt.Errorf("pack index has a broken length")
		}
		return x, nil
	}
	x.offsets = x.names + 24*x.count
	x.large = x.offsets + 4*x.count
	if rest := len(data) - x.large - 40; rest < 0 || rest%8 != 0 {
		return nil, fmt.Errorf("pack index has a broken length")
	}
	return x, nil
}

func (x *packIndex) id(i int) ID { return ID(x.data[x.names+i*x.step:][:20]) }

// offset gives where object i starts in the pack; -1 where the index does not say it rightly.
func (x *packIndex) offset(i int) int64 {
	if x.v1 {
		return int64(binary.BigEndian.Uint32(x.data[x.names-4+i*24:]))
	}
	n := binary.BigEndian.Uint32(x.data[x.offsets+4*i:])
	if n&0x80000000 == 0 {
		return int64(n)
	}
	at := x.large + 8*int(n&0x7fffffff)
	if at+8 > len(x.data)-40 {
		return -1
	}
	return int64(binary.BigEndian.Uint64(x.data[at:]) & (1<<63 - 1))
}

// find gives the place of an id in the index.
func (x *packIndex) find(id ID) (int, bool) {
	i := sort.Search(x.count, func(i int) bool {
		got := x.id(i)
		return bytes.Compare(got[:], id[:]) >= 0
	})
	return i, i < x.count && x.id(i) == id
}

// FindInIndex finds an object in a pack index by the beginning of its id, at least two hexadecimal
// digits.
func FindInIndex(data []byte, digits string) (ID, bool) {
	x, err := parsePackIndex(data)
	if err != nil || len(digits) < 2 || len(digits) > 40 {
		return Zero, false
	}
	first, ok := ParseID(digits + "0000000000000000000000000000000000000000"[len(digits):])
	if !ok {
		return Zero, false
	}
	i, _ := x.find(first)
	if i < x.count && x.id(i).String()[:len(digits)] == digits {
		return x.id(i), true
	}
	return Zero, false
}
