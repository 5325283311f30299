package harden

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"sort"
	"strconv"
	"strings"

	"proctor/sandbox"
)

// Manifest is by what each new sandbox of a prepared image is verified.
//
// An image is addressed by its content, so a fresh sandbox of it can only differ where the engine,
// the image store or somebody with access to them went wrong. The manifest catches that: it knows
// every file of every git directory.
type Manifest struct {
	Dirs   []ManifestDir `json:"dirs"`
	Absent []string      `json:"absent"` // paths that must not be there
}

// ManifestDir is one git directory: every name in it.
type ManifestDir struct {
	Path  string            `json:"path"`
	Bytes int64             `json:"bytes"`
	Files map[string]string `json:"files"` // path below Path -> type, size and SHA-256
}

// fullRead is up to what size, in bytes, a git directory is read whole on each verification; larger
// ones are listed, and their pack's index is read. 32 MiB stream in well under 0.1 s.
const fullRead = 32 << 20

// Large reports whether a git directory is too large to be read whole each time.
func (m *Manifest) Large(dir string) bool {
	for _, d := range m.Dirs {
		if d.Path == dir {
			return d.Bytes > fullRead
		}
	}
	return false
}

func (m *Manifest) add(ctx context.Context, box Box, dir string) error {
	files, size, err := listDir(ctx, box, dir)
	if err != nil {
		return err
	}
	m.Dirs = append(m.Dirs, ManifestDir{Path: dir, Bytes: size, Files: files})
	return nil
}

// listDir reads a git directory whole and gives what a manifest says of it.
func listDir(ctx context.Context, box Box, dir string) (map[string]string, int64, error) {
	files, size := map[string]string{}, int64(0)
	err := eachEntry(ctx, box, dir, func(name string, h *tar.Header, content io.Reader) error {
		rel := strings.TrimPrefix(strings.TrimPrefix(name, dir), "/")
		if len(files) > maxGitFiles {
			return fmt.Errorf("more than %d files", maxGitFiles)
		}
		switch h.Typeflag {
		case tar.TypeDir:
			files[rel] = "dir"
			return nil
		case tar.TypeReg:
		default:
			files[rel] = "type " + strconv.Itoa(int(h.Typeflag)) + " " + h.Linkname
			return nil
		}
		sum := sha256.New()
		n, err := io.Copy(sum, io.LimitReader(content, maxGitBytes))
		size += n
		files[rel] = fileWord(n, sum.Sum(nil))
		return err
	})
	return files, size, err
}

func fileWord(size int64, sum []byte) string {
	return "file " + strconv.FormatInt(size, 10) + " " + hex.EncodeToString(sum)
}

// Verify compares a fresh sandbox with the manifest. Errors wrap ErrLeak where they differ.
func (m *Manifest) Verify(ctx context.Context, box Box) error {
	for _, p := range m.Absent {
		_, err := box.Stat(ctx, p)
		if err == nil {
			return leaks("hidden path %s is there", p)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("hidden path %s: %w", p, err)
		}
	}
	for _, d := range m.Dirs {
		check := d.verifyWhole
		if d.Bytes > fullRead {
			check = d.verifyList
		}
		if err := check(ctx, box); err != nil {
			return fmt.Errorf("%s: %w", d.Path, err)
		}
	}
	return nil
}

func (d ManifestDir) verifyWhole(ctx context.Context, box Box) error {
	files, _, err := listDir(ctx, box, d.Path)
	if err != nil {
		return err
	}
	return d.compare(files, func(want, got string) bool { return want == got })
}

func (d ManifestDir) compare(files map[string]string, same func(want, got string) bool) error {
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		want, ok := d.Files[name]
		if !ok {
			return leaks("%.200q is there, which the prepared image does not have", name)
		}
		if !same(want, files[name]) {
			return leaks("%.200q differs from the prepared image", name)
		}
	}
	for name := range d.Files {
		if _, ok := files[name]; !ok {
			return leaks("%.200q is missing", name)
		}
	}
	return nil
}

// verifyList compares the names and sizes of all files by a listing, and the contents of all but the
// packs themselves: a pack's index names each of its objects.
//
// The listing is made by the image's own find and stat. At this point nothing of the agent has run
// in the sandbox, and the image was audited.
func (d ManifestDir) verifyList(ctx context.Context, box Box) error {
	res, err := box.Exec(ctx, sandbox.Exec{Argv: []string{"find", d.Path, "-exec", "stat", "-c", "%s %F/%n", "{}", "+"}, Dir: "/", User: "root"})
	if err != nil {
		return err
	}
	if res.Exit == nil || *res.Exit != 0 || res.Truncated {
		return d.verifyWhole(ctx, box)
	}
	files := map[string]string{}
	for _, line := range bytes.Split(bytes.TrimSuffix(res.Stdout, []byte("\n")), []byte("\n")) {
		size, rest, _ := strings.Cut(string(line), " ")
		kind, name, _ := strings.Cut(rest, "/")
		rel := strings.TrimPrefix(strings.TrimPrefix("/"+name, d.Path), "/")
		switch kind {
		case "directory":
			files[rel] = "dir"
		case "regular file", "regular empty file":
			files[rel] = "file " + size
		default:
			files[rel] = kind
		}
	}
	err = d.compare(files, func(want, got string) bool { return want == got || strings.HasPrefix(want, got+" ") })
	if err != nil {
		return err
	}
	return d.verifySmall(ctx, box)
}

func (d ManifestDir) verifySmall(ctx context.Context, box Box) error {
	for name, want := range d.Files {
		if !strings.HasPrefix(want, "file ") || strings.HasSuffix(name, ".pack") {
			continue
		}
		data, err := box.ReadFile(ctx, path.Join(d.Path, name), maxIndexRead)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(data)
		if fileWord(int64(len(data)), sum[:]) != want {
			return leaks("%.200q differs from the prepared image", name)
		}
	}
	return nil
}

// maxIndexRead bounds a pack index that is verified, in bytes.
const maxIndexRead = 1 << 30
