package harden

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Bounds of one git directory. The Linux kernel's is 6 GB.
const (
	maxGitBytes = 16 << 30
	maxGitFiles = 2 << 20
)

// pullDir copies a folder of a sandbox into a new folder of the host: plain files and folders only,
// owned by us, never through a link. skip leaves a subtree out.
func pullDir(ctx context.Context, box Box, from, to string, skip func(name string) bool) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	x := &extractor{root: root}
	return eachEntry(ctx, box, from, func(name string, h *tar.Header, content io.Reader) error {
		if skip != nil && skip(name) {
			return nil
		}
		rel := strings.TrimPrefix(strings.TrimPrefix(name, from), "/")
		if rel == "" {
			if h.Typeflag != tar.TypeDir {
				return fmt.Errorf("%s is not a folder", from)
			}
			return nil
		}
		if err := x.entry(rel, h, content); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
}

type extractor struct {
	root  *os.Root
	files int
	bytes int64
}

func (x *extractor) entry(rel string, h *tar.Header, content io.Reader) error {
	if x.files++; x.files > maxGitFiles {
		return fmt.Errorf("more than %d files", maxGitFiles)
	}
	local := filepath.FromSlash(rel)
	switch h.Typeflag {
	case tar.TypeDir:
		return x.root.MkdirAll(local, 0o700)
	case tar.TypeSymlink:
		// HEAD was once a link; anything else is told by what it is missing for.
		if rel == "HEAD" && strings.HasPrefix(h.Linkname, "refs/heads/") {
			return x.file(local, strings.NewReader("ref: "+h.Linkname+"\n"), h)
		}
		return nil
	case tar.TypeLink:
		return x.hardLink(rel, h)
	case tar.TypeReg:
		return x.file(local, content, h)
	}
	return nil // a socket, a pipe, a device: no part of a repository
}

// hardLink copies what an earlier entry of the stream holds: `git clone --local` links objects. The
// link's name in the stream starts with the base name of what was pulled.
func (x *extractor) hardLink(rel string, h *tar.Header) error {
	_, target, ok := strings.Cut(path.Clean(h.Linkname), "/")
	if !ok {
		return fmt.Errorf("is a hard link to outside")
	}
	f, err := x.root.Open(filepath.FromSlash(target))
	if err != nil {
		return fmt.Errorf("hard link: %w", err)
	}
	defer func() { _ = f.Close() }()
	return x.file(filepath.FromSlash(rel), f, h)
}

func (x *extractor) file(local string, content io.Reader, h *tar.Header) error {
	if err := x.root.MkdirAll(filepath.Dir(local), 0o700); err != nil {
		return err
	}
	f, err := x.root.OpenFile(local, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(content, maxGitBytes-x.bytes+1))
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if x.bytes += n; err == nil && x.bytes > maxGitBytes {
		err = fmt.Errorf("more than %d bytes", int64(maxGitBytes))
	}
	if err == nil && !h.ModTime.IsZero() {
		err = x.root.Chtimes(local, h.ModTime, h.ModTime)
	}
	return err
}
