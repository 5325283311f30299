package harden

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"io"
	"path"
	"strings"
)

func isArchive(base string) bool {
	for _, end := range []string{".whl", ".egg", ".zip", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".jar", ".gem", ".crate", ".deb", ".tar.xz", ".conda"} {
		if strings.HasSuffix(base, end) {
			return true
		}
	}
	return false
}

// archive looks into a package's file.
func (f *finder) archive(name string, size int64, content io.Reader) error {
	base := path.Base(name)
	if version, ok := f.task.archived(base); ok && (f.task.newer(version) || releaseOf(f.task.BaseVersion) == nil) {
		f.found = append(f.found, finding{file: name, fatal: true, why: "is release " + version + " of " + f.task.Package})
		return nil
	}
	if len(f.fix) == 0 || size > maxArchive {
		return nil
	}
	switch {
	case strings.HasSuffix(base, ".tar.gz"), strings.HasSuffix(base, ".tgz"), strings.HasSuffix(base, ".crate"):
		if z, err := gzip.NewReader(content); err == nil {
			f.tarArchive(name, z)
		}
	case strings.HasSuffix(base, ".tar.bz2"), strings.HasSuffix(base, ".tbz2"):
		f.tarArchive(name, bzip2.NewReader(content))
	case strings.HasSuffix(base, ".whl"), strings.HasSuffix(base, ".egg"), strings.HasSuffix(base, ".zip"), strings.HasSuffix(base, ".jar"):
		data, err := io.ReadAll(io.LimitReader(content, maxArchive))
		if err != nil {
			return err
		}
		f.zipArchive(name, data)
	}
	return nil
}

// tarArchive and zipArchive read what can be read: a broken archive is of no use to anybody else.
func (f *finder) tarArchive(name string, in io.Reader) {
	r := tar.NewReader(io.LimitReader(in, maxArchive*4))
	for range maxEntries {
		h, err := r.Next()
		if err != nil {
			return
		}
		if h.Typeflag == tar.TypeReg {
			f.member(name, h.Name, h.Size, func() (io.ReadCloser, error) { return io.NopCloser(r), nil })
		}
	}
}

func (f *finder) zipArchive(name string, data []byte) {
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return
	}
	for i, m := range r.File {
		if i >= maxEntries {
			return
		}
		f.member(name, m.Name, int64(m.UncompressedSize64), m.Open)
	}
}

func (f *finder) member(archive, name string, size int64, open func() (io.ReadCloser, error)) {
	base := path.Base(name)
	version := (base == "__version__.py" || base == "_version.py" || base == "__init__.py") && f.packageFolder(path.Base(path.Dir(name)))
	source := sourceEndings[path.Ext(base)] && (f.nearest(name) != nil || f.anyFar())
	if size > maxSource || !version && !source {
		return
	}
	in, err := open()
	if err != nil {
		return
	}
	defer func() { _ = in.Close() }()
	data, err := io.ReadAll(io.LimitReader(in, maxSource))
	if err != nil {
		return
	}
	if m := versionLine.FindSubmatch(data); version && m != nil {
		f.versions[archive+"//"+path.Dir(name)] = string(m[1])
	}
	if source {
		f.source(archive, name, data)
	}
}
