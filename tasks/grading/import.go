package grading

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"sort"
	"strings"
)

// Bounds on a working folder, far over what real ones hold (the largest SWE-bench repositories have
// some 20,000 files and 200 MB) and far under what would hurt the host.
const (
	maxFiles     = 300_000
	maxFileBytes = 512 << 20
	maxTreeBytes = 4 << 30
	maxPathBytes = 4096
	maxPatch     = 64 << 20 // a patch of 100 MB is refused
)

// ErrTooBig: the working folder, or the patch, is over a bound.
var ErrTooBig = errors.New("too big to grade")

// errTar: the stream that should hold the working folder is broken.
var errTar = errors.New("the working folder could not be read")

// importTar reads the working folder from a tar stream into r and gives its tree. The stream is
// hostile: no name is used on the host, sizes and counts are bounded, and only files and symbolic
// links are taken. notes say what was left out and why.
func (r *repo) importTar(ctx context.Context, stream io.Reader, branch string) (tree string, notes []string, err error) {
	cmd := r.command(ctx, "fast-import", "--quiet", "--force", "--done", "--max-pack-size=4g")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	errs := &capped{limit: 1 << 16}
	cmd.Stderr = errs
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("grading needs git on this machine: %w", err)
	}
	out := bufio.NewWriterSize(stdin, 1<<16)
	im := &importer{out: out, files: map[string]imported{}}
	tail := &tailReader{in: stream}
	readErr := im.read(tar.NewReader(tail))
	if readErr == nil && tail.zeros < 1024 {
		readErr = fmt.Errorf("%w: the stream ends early", errTar)
	}
	if readErr == nil {
		readErr = im.commit(branch)
	}
	_ = stdin.Close()
	waitErr := cmd.Wait()
	if readErr != nil {
		return "", nil, readErr
	}
	if waitErr != nil {
		return "", nil, &gitError{args: "fast-import", stderr: clip(errs.kept.String(), 2000), err: waitErr}
	}
	hash, err := r.git(ctx, nil, "rev-parse", "refs/heads/"+branch+"^{tree}")
	if err != nil {
		return "", nil, err
	}
	return strings.TrimSpace(string(hash)), im.notes.lines(), nil
}

// tailReader counts the zero bytes at the end of what was read so far. A tar stream ends with 1024 of
// them; archive/tar takes one that breaks off between two files for whole, and the files that did not
// come would be graded as deleted.
type tailReader struct {
	in    io.Reader
	zeros int
}

func (t *tailReader) Read(p []byte) (int, error) {
	n, err := t.in.Read(p)
	for i := n - 1; ; i-- {
		if i < 0 {
			t.zeros += n
			break
		}
		if p[i] != 0 {
			t.zeros = n - 1 - i
			break
		}
	}
	return n, err
}

// imported is a file on its way into the repository.
type imported struct {
	mode string
	mark int
}

// importer turns a tar stream into one for git fast-import.
type importer struct {
	out   *bufio.Writer
	files map[string]imported
	notes noteList
	mark  int
	count int
	total int64
}

func (im *importer) read(in *tar.Reader) error {
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %w", errTar, err)
		}
		if im.count++; im.count > maxFiles {
			return fmt.Errorf("%w: over %d files", ErrTooBig, maxFiles)
		}
		name, ok := treePath(header.Name)
		if !ok {
			continue // the folder itself, the agent's .git, and names that lead out
		}
		if isJunk(name) {
			continue
		}
		if err := im.take(in, header, name); err != nil {
			return err
		}
	}
}

// take puts one member of the stream in its place.
func (im *importer) take(in *tar.Reader, header *tar.Header, name string) error {
	switch header.Typeflag {
	case tar.TypeReg:
		mode := "100644"
		if header.Mode&0o111 != 0 {
			mode = "100755"
		}
		return im.blob(name, mode, header.Size, in)
	case tar.TypeSymlink:
		return im.blob(name, "120000", int64(len(header.Linkname)), strings.NewReader(header.Linkname))
	case tar.TypeLink:
		target, ok := treePath(header.Linkname)
		first, known := im.files[target]
		if !ok || !known {
			im.notes.add("left out %q: a hard link to a file that is not carried", name)
			return nil
		}
		im.files[name] = first
	case tar.TypeDir:
	default:
		im.notes.add("left out %q: neither file, folder nor link", name)
	}
	return nil
}

// blob sends size bytes of content to git and remembers them under name.
func (im *importer) blob(name, mode string, size int64, content io.Reader) error {
	im.total += size
	if size < 0 || size > maxFileBytes || im.total > maxTreeBytes {
		return fmt.Errorf("%w: %q brings the working folder over its bounds (%d MiB a file, %d MiB in all)",
			ErrTooBig, clip(name, 200), maxFileBytes>>20, maxTreeBytes>>20)
	}
	im.mark++
	if _, err := fmt.Fprintf(im.out, "blob\nmark :%d\ndata %d\n", im.mark, size); err != nil {
		return err
	}
	if n, err := io.CopyN(im.out, content, size); err != nil {
		return fmt.Errorf("%w: %q ends after %d of %d bytes: %w", errTar, clip(name, 200), n, size, err)
	}
	im.files[name] = imported{mode: mode, mark: im.mark}
	return im.out.WriteByte('\n')
}

// commit makes one commit of all files, in order of name so that equal folders give equal trees.
func (im *importer) commit(branch string) error {
	names := make([]string, 0, len(im.files))
	for name := range im.files {
		names = append(names, name)
	}
	sort.Strings(names)
	fmt.Fprintf(im.out, "commit refs/heads/%s\ncommitter proctor <proctor@localhost> 0 +0000\ndata 0\n", branch)
	for _, name := range names {
		f := im.files[name]
		fmt.Fprintf(im.out, "M %s :%d %s\n", f.mode, f.mark, quotePath(name))
	}
	fmt.Fprint(im.out, "done\n")
	return im.out.Flush()
}

// treePath takes the first component (the working folder's own name) off a tar name, and gives the
// rest as a clean relative path; false for the folder itself, for anything in or called .git, and
// for names that no honest archive holds.
func treePath(name string) (string, bool) {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "./"), "/")
	_, rest, ok := strings.Cut(name, "/")
	if !ok || len(rest) > maxPathBytes || strings.ContainsRune(rest, 0) {
		return "", false
	}
	rest = strings.TrimSuffix(rest, "/")
	if rest == "" || path.IsAbs(rest) || path.Clean(rest) != rest {
		return "", false
	}
	for _, part := range strings.Split(rest, "/") {
		if part == ".." || part == "." || strings.EqualFold(part, ".git") {
			return "", false
		}
	}
	return rest, true
}

// junkFolders are made by tools, never written by hand, and change with every run.
var junkFolders = map[string]bool{
	"__pycache__": true, ".pytest_cache": true, ".mypy_cache": true, ".ruff_cache": true, ".hypothesis": true,
	".tox": true, ".nox": true, "node_modules": true, ".ipynb_checkpoints": true,
}

// isJunk reports whether path is left out of trees and patches: caches, and compiled Python, which
// would also be read in place of the source that the patch shows.
func isJunk(name string) bool {
	for _, part := range strings.Split(name, "/") {
		if junkFolders[part] {
			return true
		}
	}
	return strings.HasSuffix(name, ".pyc") || strings.HasSuffix(name, ".pyo") || path.Base(name) == ".coverage"
}

// quotePath writes a path as git's C-style quoting does.
func quotePath(name string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
