package gitobj

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
)

// IndexEntry is one entry of a git index.
type IndexEntry struct {
	Mode  uint32
	ID    ID
	Stage int
	Name  string
}

// Index is what a git index says. Extensions are named, not read.
type Index struct {
	Version    uint32
	Entries    []IndexEntry
	Extensions []string
}

var errIndex = errors.New("broken index")

// ParseIndex reads an index of version 2, 3 or 4 (git's gitformat-index).
func ParseIndex(data []byte) (*Index, error) {
	if len(data) < 32 || string(data[:4]) != "DIRC" {
		return nil, errIndex
	}
	x := &Index{Version: binary.BigEndian.Uint32(data[4:])}
	if x.Version < 2 || x.Version > 4 {
		return nil, fmt.Errorf("index has version %d", x.Version)
	}
	count := binary.BigEndian.Uint32(data[8:])
	body := data[:len(data)-20]
	at, previous := 12, ""
	for range count {
		e, next, err := parseIndexEntry(body, at, x.Version, previous)
		if err != nil {
			return nil, err
		}
		x.Entries = append(x.Entries, e)
		at, previous = next, e.Name
	}
	for at < len(body) {
		if len(body)-at < 8 {
			return nil, errIndex
		}
		size := int64(binary.BigEndian.Uint32(body[at+4:]))
		if int64(at)+8+size > int64(len(body)) {
			return nil, errIndex
		}
		x.Extensions = append(x.Extensions, string(body[at:at+4]))
		at += 8 + int(size)
	}
	return x, nil
}

func parseIndexEntry(data []byte, at int, version uint32, previous string) (IndexEntry, int, error) {
	var e IndexEntry
	start := at
	if len(data)-at < 62 {
		return e, 0, errIndex
	}
	e.Mode = binary.BigEndian.Uint32(data[at+24:])
	e.ID = ID(data[at+40 : at+60])
	flags := binary.BigEndian.Uint16(data[at+60:])
	e.Stage = int(flags >> 12 & 3)
	at += 62
	if flags&0x4000 != 0 {
		if version < 3 || len(data)-at < 2 {
			return e, 0, errIndex
		}
		at += 2
	}
	if version == 4 {
		strip, used := ofsBack(data[at:])
		if used == 0 || strip < 0 || strip > int64(len(previous)) {
			return e, 0, errIndex
		}
		at += used
		e.Name = previous[:len(previous)-int(strip)]
	}
	end := bytes.IndexByte(data[at:], 0)
	if end < 0 {
		return e, 0, errIndex
	}
	e.Name += string(data[at : at+end])
	if e.Name == "" || len(e.Name) > 1<<16 {
		return e, 0, errIndex
	}
	at += end + 1
	if version < 4 {
		at = start + (at-1-start+8)&^7
	}
	if at > len(data) {
		return e, 0, errIndex
	}
	return e, at, nil
}

// FreshIndex gives an index that holds the files of a tree and no word on the work tree, so that
// git compares contents when it next looks.
func (r *Repo) FreshIndex(tree ID) ([]byte, error) {
	out := append([]byte("DIRC"), 0, 0, 0, 2, 0, 0, 0, 0)
	count := uint32(0)
	if tree != Zero {
		err := r.Files(tree, func(name string, e TreeEntry) error {
			count++
			out = appendIndexEntry(out, name, e)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	binary.BigEndian.PutUint32(out[8:], count)
	sum := sha1.Sum(out)
	return append(out, sum[:]...), nil
}

func appendIndexEntry(out []byte, name string, e TreeEntry) []byte {
	start := len(out)
	out = append(out, make([]byte, 24)...)
	out = binary.BigEndian.AppendUint32(out, indexMode(e.Mode))
	out = append(out, make([]byte, 12)...)
	out = append(out, e.ID[:]...)
	out = binary.BigEndian.AppendUint16(out, uint16(min(len(name), 0xfff)))
	out = append(out, name...)
	size := (len(out) - start + 8) &^ 7
	return append(out, make([]byte, size-(len(out)-start))...)
}

// indexMode folds the odd modes that old trees hold (0o100664) into those that an index has.
func indexMode(mode uint32) uint32 {
	switch {
	case mode&0o170000 == 0o100000 && mode&0o100 != 0:
		return 0o100755
	case mode&0o170000 == 0o100000:
		return 0o100644
	}
	return mode
}
