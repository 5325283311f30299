package traces

import (
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// maxDocument bounds one JSON value: a whole attempt of a chatty harness has some 30 MiB, a log of
// Inspect with all its samples a few hundred.
const maxDocument = 512 << 20

// maxExpanded bounds what one gzip file or one entry of an archive may hold, so that a small file
// cannot fill the disk's time or the memory.
const maxExpanded = 8 << 30

// Source is what documents are read from.
type Source struct {
	Paths []string
	Stdin io.Reader // read for the path "-"

	files, skipped int
}

// Files is how many files were opened so far.
func (s *Source) Files() int { return s.files }

// Skipped is how many files in folders were left out by their name so far.
func (s *Source) Skipped() int { return s.skipped }

// Documents yields every document; what cannot be read is an *Unknown and the rest goes on. Folders
// are walked in order of names; links in them are not followed.
func (s *Source) Documents() iter.Seq2[*Document, error] {
	return func(yield func(*Document, error) bool) {
		for _, p := range s.Paths {
			if p == "-" {
				s.files++
				if !s.stream("stdin", s.Stdin, yield) {
					return
				}
				continue
			}
			if !s.path(p, yield) {
				return
			}
		}
	}
}

// path reads a file, or every file below a folder. False: the reader has had enough.
func (s *Source) path(name string, yield func(*Document, error) bool) bool {
	info, err := os.Stat(name)
	if err != nil {
		return yield(nil, &Unknown{File: name, Reason: reason(err)})
	}
	if !info.IsDir() {
		return s.file(name, yield)
	}
	on := true
	_ = filepath.WalkDir(name, func(at string, d fs.DirEntry, err error) error { // its errors are yielded
		switch {
		case err != nil:
			on = yield(nil, &Unknown{File: at, Reason: reason(err)})
		case d.Type().IsRegular() && readable(at):
			on = s.file(at, yield)
		case !d.IsDir():
			s.skipped++
		}
		if !on {
			return fs.SkipAll
		}
		return nil
	})
	return on
}

// readable reports whether a file in a folder is looked at, by its name.
func readable(name string) bool {
	name = strings.TrimSuffix(strings.ToLower(name), ".gz")
	return slices.Contains([]string{".json", ".jsonl", ".ndjson", ".traj", ".eval", ".zip"}, filepath.Ext(name))
}

func (s *Source) file(name string, yield func(*Document, error) bool) bool {
	s.files++
	f, err := os.Open(name)
	if err != nil {
		return yield(nil, &Unknown{File: name, Reason: reason(err)})
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return yield(nil, &Unknown{File: name, Reason: reason(err)})
	}
	magic := make([]byte, 4)
	if n, _ := f.ReadAt(magic, 0); n == 4 && string(magic) == "PK\x03\x04" {
		return s.archive(name, f, info.Size(), yield)
	}
	return s.stream(name, f, yield)
}

// archive reads a zip: an Inspect .eval, or a folder that somebody packed.
func (s *Source) archive(name string, f io.ReaderAt, size int64, yield func(*Document, error) bool) bool {
	z, err := zip.NewReader(f, size)
	if err != nil {
		return yield(nil, &Unknown{File: name, Reason: "zip archive: " + err.Error()})
	}
	inspect := slices.ContainsFunc(z.File, func(e *zip.File) bool { return strings.HasPrefix(e.Name, "samples/") })
	read := 0
	for _, e := range z.File {
		if e.FileInfo().IsDir() || !readable(e.Name) || inspect && !strings.HasPrefix(e.Name, "samples/") {
			continue
		}
		read++
		r, err := e.Open()
		if err != nil {
			if !yield(nil, &Unknown{File: name + "!" + e.Name, Reason: err.Error()}) {
				return false
			}
			continue
		}
		on := s.stream(name+"!"+path.Clean(e.Name), r, yield)
		_ = r.Close()
		if !on {
			return false
		}
	}
	if read == 0 {
		return yield(nil, &Unknown{File: name, Reason: "zip archive without trajectories in it"})
	}
	return true
}

// stream reads the documents of one file, gzipped or not.
func (s *Source) stream(name string, r io.Reader, yield func(*Document, error) bool) bool {
	buffered := bufio.NewReaderSize(r, 1<<16)
	if magic, _ := buffered.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(buffered)
		if err != nil {
			return yield(nil, &Unknown{File: name, Reason: "gzip: " + err.Error()})
		}
		buffered = bufio.NewReaderSize(io.LimitReader(z, maxExpanded), 1<<16)
	}
	l := &lines{name: name, in: buffered, yield: yield}
	return l.run()
}

// lines cuts a stream into documents: one a line where the first line is a JSON value of its own, or
// the name says so; else the whole.
type lines struct {
	name  string
	in    *bufio.Reader
	yield func(*Document, error) bool

	number int    // of the line read last
	held   []byte // rows that belong together, as the inside of a JSON array
	key    string // what they have in common
	from   int
}

var errTooLong = fmt.Errorf("one JSON value of more than %d MiB", maxDocument>>20)

// next reads a line without its end; io.EOF after the last.
func (l *lines) next() ([]byte, error) {
	var out []byte
	for {
		part, err := l.in.ReadSlice('\n')
		out = append(out, part...)
		switch {
		case len(out) > maxDocument:
			return nil, errTooLong
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err == io.EOF && len(out) == 0:
			return nil, io.EOF
		case err != nil && err != io.EOF:
			return nil, err
		}
		l.number++
		return bytes.TrimSpace(out), nil
	}
}

func (l *lines) bad(line int, err error) bool {
	return l.yield(nil, &Unknown{File: l.name, Line: line, Reason: reason(err)})
}

func (l *lines) run() bool {
	first, err := l.next()
	for err == nil && len(first) == 0 {
		first, err = l.next()
	}
	first = bytes.TrimPrefix(first, []byte("\xef\xbb\xbf")) // a byte order mark
	switch {
	case err == io.EOF:
		return l.yield(nil, &Unknown{File: l.name, Reason: "the file is empty"})
	case err != nil:
		return l.bad(0, err)
	}
	if !json.Valid(first) && !linesByName(l.name) {
		return l.whole(first)
	}
	second, err := l.next()
	for err == nil && len(second) == 0 {
		second, err = l.next()
	}
	if err == io.EOF && !linesByName(l.name) {
		return l.yield(&Document{File: l.name, Data: first}, nil)
	}
	if !l.take(1, first) {
		return false
	}
	for err == nil {
		if len(second) > 0 && !l.take(l.number, second) {
			return false
		}
		second, err = l.next()
	}
	if err != io.EOF && !l.bad(l.number+1, err) {
		return false
	}
	return l.flush()
}

func linesByName(name string) bool {
	name = strings.TrimSuffix(strings.ToLower(name), ".gz")
	return strings.HasSuffix(name, ".jsonl") || strings.HasSuffix(name, ".ndjson")
}

// whole reads the rest as one value.
func (l *lines) whole(first []byte) bool {
	rest, err := io.ReadAll(io.LimitReader(l.in, maxDocument+1))
	if err == nil && len(rest) > maxDocument {
		err = errTooLong
	}
	if err != nil {
		return l.bad(0, err)
	}
	return l.yield(&Document{File: l.name, Data: append(append(first, '\n'), rest...)}, nil)
}

// take yields a line, or holds it where lines that follow belong to it: the messages of one
// conversation, the events of one attempt, the calls of one run of a corpus.
func (l *lines) take(number int, line []byte) bool {
	key := rowKey(line)
	if key != l.key && !l.flush() {
		return false
	}
	if key == "" {
		return l.yield(&Document{File: l.name, Line: number, Data: line}, nil)
	}
	if len(l.held)+len(line) > maxDocument {
		return l.bad(number, errTooLong)
	}
	if l.held == nil {
		l.held, l.from, l.key = []byte{'['}, number, key
	} else {
		l.held = append(l.held, ',')
	}
	l.held = append(l.held, line...)
	return true
}

// flush yields what is held.
func (l *lines) flush() bool {
	if l.held == nil {
		return true
	}
	d := &Document{File: l.name, Line: l.from, Data: append(l.held, ']')}
	l.held, l.key = nil, ""
	return l.yield(d, nil)
}

// rowKey tells which rows belong together: those with the same key; "" stands alone.
func rowKey(line []byte) string {
	if len(line) > 1<<20 || !bytes.HasPrefix(line, []byte("{")) {
		return ""
	}
	if !json.Valid(line) {
		return ""
	}
	row, err := cutObject(line)
	switch {
	case err != nil, row.has("messages"), row.has("history"):
	case row.has("call"), row.has("command"):
		if run := runOf(row.text("id")); run != "" { // a number stands alone
			return "run " + run
		}
	case row.text("role") != "":
		return "messages"
	case row.text("source") != "" && (row.has("action") || row.has("observation") || row.text("kind") != ""):
		return "events"
	}
	return ""
}

// runOf gives the run of a corpus row's id, "run-3" of "run-3-17"; "" where it names no step.
func runOf(id string) string {
	i := strings.LastIndexByte(id, '-')
	if i <= 0 || i == len(id)-1 || strings.Trim(id[i+1:], "0123456789") != "" || !strings.Contains(id[:i], "-") {
		return ""
	}
	return id[:i]
}

// stem gives a file's name without folders and the endings of formats.
func stem(name string) string {
	name = path.Base(filepath.ToSlash(name[strings.LastIndexByte(name, '!')+1:]))
	for _, end := range []string{".gz", ".jsonl", ".ndjson", ".json", ".traj", ".eval"} {
		name = strings.TrimSuffix(name, end)
	}
	return name
}

// reason gives an error without the path, which stands beside it.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}
