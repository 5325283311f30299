package agent

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"proctor/sandbox"
)

const (
	sniffLen    = 64 << 10                  // bytes in which a NUL tells a binary file
	viewLimit   = sandbox.OutputLimit - 256 // bytes shown, leaving room for the last line of words
	folderLimit = 2000                      // names shown of a folder
	folderDepth = 2
)

// view shows a file with numbered lines, a range of them, or the names in a folder.
func (f *files) view(path string, call sandbox.Call) (sandbox.Result, error) {
	p, err := findPath(path)
	if err != nil {
		return sandbox.Result{}, err
	}
	defer p.close()
	if p.isDir() {
		if call.Range != nil {
			return sandbox.Result{}, errors.New("is a folder; view_range is for files")
		}
		return listFolder(p)
	}
	if !p.isFile() {
		return sandbox.Result{}, errors.New("is not a regular file")
	}
	first, last, err := lineRange(call.Range)
	if err != nil {
		return sandbox.Result{}, err
	}
	file, err := p.open(unix.O_RDONLY)
	if err != nil {
		return sandbox.Result{}, err
	}
	defer file.Close()
	return viewLines(file, first, last, p.stat.Size)
}

// lineRange checks a view_range; last is -1 for the end.
func lineRange(r []int) (first, last int, err error) {
	switch {
	case r == nil:
		return 1, -1, nil
	case len(r) != 2:
		return 0, 0, errors.New("view_range is not [first, last]")
	case r[0] < 1 || r[1] != -1 && r[1] < r[0]:
		return 0, 0, fmt.Errorf("view_range [%d, %d] is no range of lines: it is [first, last], from 1, last -1 for the end", r[0], r[1])
	}
	return r[0], r[1], nil
}

// viewLines reads no further than what it shows.
func viewLines(file io.Reader, first, last int, size int64) (sandbox.Result, error) {
	in := bufio.NewReaderSize(file, sniffLen)
	head, err := in.Peek(sniffLen)
	if err != nil && err != io.EOF {
		return sandbox.Result{}, err
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return sandbox.Result{}, errors.New("is a binary file (it holds NUL bytes)")
	}
	if len(head) == 0 && first == 1 {
		return done([]byte("(an empty file)\n")), nil
	}
	v := viewer{in: in}
	if err := v.show(first, last); err != nil {
		return sandbox.Result{}, err
	}
	res := done(v.out.Bytes())
	if v.cut {
		res.Truncated = true
		res.Output = lastLine(res.Output, fmt.Sprintf("only the first part is shown, to line %d; the whole file has %d bytes; ask for a view_range", v.line, size))
	}
	return res, nil
}

type viewer struct {
	in   *bufio.Reader
	out  bytes.Buffer
	line int // number of the line being read
	cut  bool
}

func (v *viewer) show(first, last int) error {
	for v.line = 1; last < 0 || v.line <= last; v.line++ {
		text, err := v.next(v.line >= first)
		if err == io.EOF && len(text) == 0 {
			if v.line <= first && first > 1 {
				return fmt.Errorf("has %d lines; line %d is not there", v.line-1, first)
			}
			return nil
		}
		if err != nil && err != io.EOF {
			return err
		}
		if v.line >= first {
			if v.out.Len()+len(text)+8 > viewLimit {
				text, v.cut = text[:max(0, min(len(text), viewLimit-8-v.out.Len()))], true
			}
			if bytes.IndexByte(text, 0) >= 0 {
				return errors.New("is a binary file (it holds NUL bytes)")
			}
			if len(text) > 0 {
				writeLine(&v.out, v.line, text)
			}
			if v.cut {
				return nil
			}
		}
	}
	return nil
}

// next reads a line; of one that is not shown, and of one too long to show, only a part is kept.
func (v *viewer) next(keep bool) ([]byte, error) {
	var line []byte
	for read := false; ; read = true {
		part, err := v.in.ReadSlice('\n')
		if keep && len(line) <= viewLimit {
			line = append(line, part...)
		}
		if err == bufio.ErrBufferFull {
			if keep && len(line) > viewLimit {
				return line, nil // enough to fill the view
			}
			continue
		}
		if !keep && (len(part) > 0 || read) {
			return lf, err0(err) // something, so that the end is told from a line
		}
		return line, err
	}
}

// err0 drops an end that came after some bytes: the next read finds it again.
func err0(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// listFolder names what is in a folder and in the folders in it, hidden ones aside.
func listFolder(p *place) (sandbox.Result, error) {
	root, err := p.open(unix.O_RDONLY | unix.O_DIRECTORY)
	if err != nil {
		return sandbox.Result{}, err
	}
	defer root.Close()
	var b bytes.Buffer
	n := 0
	cut, err := listInto(&b, root, "", folderDepth, &n)
	if err != nil {
		return sandbox.Result{}, err
	}
	if b.Len() == 0 && !cut {
		b.WriteString("(an empty folder)\n")
	}
	res := done(b.Bytes())
	if cut {
		res.Truncated = true
		res.Output = lastLine(res.Output, fmt.Sprintf("only the first %d names are shown", n))
	}
	return res, nil
}

func listInto(b *bytes.Buffer, dir *os.File, prefix string, depth int, n *int) (cut bool, err error) {
	entries, err := dir.ReadDir(16 * folderLimit)
	if err != nil && err != io.EOF {
		return false, err
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		name := prefix + e.Name()
		if *n >= folderLimit || b.Len()+len(name)+2 > viewLimit {
			return true, nil
		}
		*n++
		b.WriteString(name)
		if e.IsDir() {
			b.WriteByte('/')
		}
		b.WriteByte('\n')
		if e.IsDir() && depth > 1 {
			cut, _ = listBelow(b, dir, e.Name(), name+"/", depth-1, n) // what cannot be read shows its name only
			if cut {
				return true, nil
			}
		}
	}
	return len(entries) == 16*folderLimit, nil
}

func listBelow(b *bytes.Buffer, dir *os.File, name, prefix string, depth int, n *int) (bool, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, err
	}
	sub := os.NewFile(uintptr(fd), filepath.Base(name))
	defer sub.Close()
	return listInto(b, sub, prefix, depth, n)
}
