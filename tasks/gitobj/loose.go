package gitobj

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zlib"
)

// MaxObject bounds one object held in memory, in bytes. git's own hosts refuse files over 100 MB.
const MaxObject = 512 << 20

// ReadLoose inflates a loose object's file and gives its type and content. limit bounds the
// content, in bytes; 0 means MaxObject.
func ReadLoose(r io.Reader, limit int64) (Type, []byte, error) {
	if limit <= 0 {
		limit = MaxObject
	}
	z, err := zlib.NewReader(bufio.NewReader(r))
	if err != nil {
		return 0, nil, fmt.Errorf("loose object: %w", err)
	}
	in := bufio.NewReader(z)
	header, err := readHeader(in)
	if err != nil {
		return 0, nil, err
	}
	name, sizeText, _ := strings.Cut(header, " ")
	t, ok := typeOf(name)
	size, err := strconv.ParseInt(sizeText, 10, 64)
	if !ok || err != nil || size < 0 {
		return 0, nil, fmt.Errorf("loose object has a broken header")
	}
	if size > limit {
		return t, nil, fmt.Errorf("loose object of %d bytes is over the limit of %d", size, limit)
	}
	data, err := readExactly(in, size)
	if err != nil {
		return 0, nil, fmt.Errorf("loose object: %w", err)
	}
	return t, data, nil
}

// readHeader reads up to the NUL that ends a loose object's header.
func readHeader(in *bufio.Reader) (string, error) {
	var b bytes.Buffer
	for b.Len() < 64 {
		c, err := in.ReadByte()
		if err != nil {
			return "", fmt.Errorf("loose object: %w", err)
		}
		if c == 0 {
			return b.String(), nil
		}
		b.WriteByte(c)
	}
	return "", fmt.Errorf("loose object has a broken header")
}

// readExactly reads size bytes and insists that the stream ends there. Memory grows with what
// really comes, so that a header cannot claim it.
func readExactly(in io.Reader, size int64) ([]byte, error) {
	var b bytes.Buffer
	if size < 1<<20 {
		b.Grow(int(size) + bytes.MinRead)
	}
	n, err := io.Copy(&b, io.LimitReader(in, size+1))
	if err != nil {
		return nil, err
	}
	if n != size {
		return nil, fmt.Errorf("the content has not the %d bytes that it claims", size)
	}
	return b.Bytes(), nil
}
