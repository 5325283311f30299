package gitobj

import "errors"

var errDelta = errors.New("broken delta")

// applyDelta rebuilds an object from its base. Format: git's gitformat-pack, "Deltified representation".
func applyDelta(base, delta []byte) ([]byte, error) {
	baseSize, delta, ok := deltaSize(delta)
	if !ok || baseSize != uint64(len(base)) {
		return nil, errDelta
	}
	size, delta, ok := deltaSize(delta)
	if !ok || size > MaxObject {
		return nil, errDelta
	}
	out := make([]byte, 0, min(size, 1<<20))
	for len(delta) > 0 {
		op := delta[0]
		delta = delta[1:]
		var piece []byte
		if op&0x80 != 0 {
			piece, delta, ok = deltaCopy(op, base, delta)
			if !ok {
				return nil, errDelta
			}
		} else {
			if op == 0 || int(op) > len(delta) {
				return nil, errDelta
			}
			piece, delta = delta[:op], delta[op:]
		}
		if uint64(len(out)+len(piece)) > size {
			return nil, errDelta
		}
		out = append(out, piece...)
	}
	if uint64(len(out)) != size {
		return nil, errDelta
	}
	return out, nil
}

func deltaCopy(op byte, base, delta []byte) (piece, rest []byte, ok bool) {
	var offset, size uint64
	for i := 0; i < 7; i++ {
		if op&(1<<i) == 0 {
			continue
		}
		if len(delta) == 0 {
			return nil, nil, false
		}
		if i < 4 {
			offset |= uint64(delta[0]) << (8 * i)
		} else {
			size |= uint64(delta[0]) << (8 * (i - 4))
		}
		delta = delta[1:]
	}
	if size == 0 {
		size = 0x10000
	}
	if offset+size > uint64(len(base)) {
		return nil, nil, false
	}
	return base[offset : offset+size], delta, true
}

// deltaSize reads a little-endian base-128 number.
func deltaSize(data []byte) (uint64, []byte, bool) {
	var n uint64
	for i := 0; i < len(data) && i < 9; i++ {
		n |= uint64(data[i]&0x7f) << (7 * i)
		if data[i]&0x80 == 0 {
			return n, data[i+1:], true
		}
	}
	return 0, nil, false
}
