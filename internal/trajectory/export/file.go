package export

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Compressions of a file.
const (
	Plain = "none"
	Gzip  = "gzip"
	Zstd  = "zstd"
)

// CompressionOf gives the compression that a file's name says.
func CompressionOf(name string) string {
	switch {
	case strings.HasSuffix(name, ".gz"):
		return Gzip
	case strings.HasSuffix(name, ".zst"):
		return Zstd
	}
	return Plain
}

// File is an export of lines under way. Each rollout is a frame of its own, and where each ends is
// noted beside the file (NAME.progress), so that an export that was cut off goes on behind its last
// whole rollout.
type File struct {
	path     string
	kind     string
	f        *os.File
	progress *os.File
	end      int64
	done     map[string]bool
}

// mark is a line of the progress file.
type mark struct {
	Rollout string `json:"rollout"`
	End     int64  `json:"end"` // offset of the file behind it
}

// OpenFile begins an export, or with resume goes on with one that was cut off. Without resume a file
// that is there is replaced.
func OpenFile(path, compression string, resume bool) (*File, error) {
	x := &File{path: path, kind: compression, done: map[string]bool{}}
	if resume {
		if err := x.readProgress(); err != nil {
			return nil, err
		}
	}
	flags := os.O_RDWR | os.O_CREATE
	if !resume {
		flags |= os.O_TRUNC
	}
	var err error
	if x.f, err = os.OpenFile(path, flags, 0o644); err != nil {
		return nil, err
	}
	if err = x.f.Truncate(x.end); err == nil {
		_, err = x.f.Seek(x.end, io.SeekStart)
	}
	if err == nil {
		flags = os.O_WRONLY | os.O_CREATE | os.O_APPEND
		if !resume {
			flags |= os.O_TRUNC
		}
		x.progress, err = os.OpenFile(path+".progress", flags, 0o644)
	}
	if err != nil {
		return nil, errors.Join(err, x.f.Close())
	}
	return x, nil
}

// readProgress reads what an export that was cut off had done. A finished one, which has no progress
// file, is complete, and is not touched.
func (x *File) readProgress() error {
	text, err := os.Open(x.path + ".progress")
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(x.path); err == nil {
			return fmt.Errorf("%s is finished: there is no %s.progress; leave --resume out to write it anew", x.path, x.path)
		}
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = text.Close() }()
	size := int64(0)
	if st, err := os.Stat(x.path); err == nil {
		size = st.Size()
	}
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		var m mark
		if json.Unmarshal(lines.Bytes(), &m) != nil || m.End > size || m.End < x.end {
			break // the last line was cut off
		}
		x.done[m.Rollout], x.end = true, m.End
	}
	return lines.Err()
}

// Done says whether a rollout is in the file already.
func (x *File) Done(rollout string) bool { return x.done[rollout] }

// Rollout writes one rollout's documents as fill gives them, or nothing of it where fill fails.
func (x *File) Rollout(id string, fill func(each func(Document) error) error) error {
	out, err := compressor(x.kind, x.f)
	if err != nil {
		return err
	}
	buf := bufio.NewWriterSize(out, 256<<10)
	err = fill(func(d Document) error {
		if _, err := buf.Write(d.Body); err != nil {
			return err
		}
		return buf.WriteByte('\n')
	})
	if err == nil {
		err = buf.Flush()
	}
	err = errors.Join(err, out.Close())
	if err != nil {
		_, seek := x.f.Seek(x.end, io.SeekStart)
		return errors.Join(err, x.f.Truncate(x.end), seek)
	}
	if x.end, err = x.f.Seek(0, io.SeekCurrent); err != nil {
		return err
	}
	line, err := json.Marshal(mark{id, x.end})
	if err != nil {
		return err
	}
	x.done[id] = true
	_, err = x.progress.Write(append(line, '\n'))
	return err
}

// Size is the file's length in bytes.
func (x *File) Size() int64 { return x.end }

// Finish closes a complete export and removes its progress file.
func (x *File) Finish() error {
	return errors.Join(x.f.Sync(), x.Abandon(), os.Remove(x.path+".progress"))
}

// Abandon closes an export that is not complete; resume goes on with it.
func (x *File) Abandon() error { return errors.Join(x.f.Close(), x.progress.Close()) }

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// compressor gives a writer of one frame.
func compressor(kind string, w io.Writer) (io.WriteCloser, error) {
	switch kind {
	case Plain:
		return nopCloser{w}, nil
	case Gzip:
		return gzip.NewWriterLevel(w, gzip.BestSpeed)
	case Zstd:
		return zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(4<<20))
	}
	return nil, fmt.Errorf("compression %.20q is none of none, gzip, zstd", kind)
}

// Reader gives the plain text of an export, whatever its compression, told by its first bytes.
func Reader(r io.Reader) (io.ReadCloser, error) {
	br := bufio.NewReaderSize(r, 256<<10)
	magic, err := br.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case len(magic) >= 2 && magic[0] == 0x1f && magic[1] == 0x8b:
		return gzip.NewReader(br)
	case string(magic) == "\x28\xb5\x2f\xfd":
		d, err := zstd.NewReader(br, zstd.WithDecoderMaxMemory(256<<20))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	}
	return io.NopCloser(br), nil
}
