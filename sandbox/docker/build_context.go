package docker

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"

	"proctor/sandbox"
)

// maxDockerfile bounds a Dockerfile, in bytes.
const maxDockerfile = 1 << 20

// context copies a build's context with what is lent put in: lines in the Dockerfile, and the
// certificates, which no .dockerignore may leave out.
func (l *loan) context(out io.Writer, in io.Reader, dockerfile string) error {
	r, w := tar.NewReader(in), tar.NewWriter(out)
	found := false
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		switch name := path.Clean(h.Name); {
		case l.empty() || h.Typeflag != tar.TypeReg:
			found = found || name == path.Clean(dockerfile)
			if err = w.WriteHeader(h); err == nil {
				_, err = io.Copy(w, r)
			}
		case name == path.Clean(dockerfile):
			found = true
			err = l.change(w, r, h, l.lend)
		case name == ".dockerignore" || name == path.Clean(dockerfile)+".dockerignore":
			err = l.change(w, r, h, func(data []byte) []byte { return append(data, "\n!"+l.folder+"\n"...) })
		default:
			if err = w.WriteHeader(h); err == nil {
				_, err = io.Copy(w, r)
			}
		}
		if err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("%w: the context holds no %s", sandbox.ErrBuild, dockerfile)
	}
	if len(l.ca) > 0 {
		apt := fmt.Sprintf("Acquire::https::CAInfo %q;\n", lentFolder+"/ca.pem")
		for name, data := range map[string][]byte{"ca.pem": l.ca, "apt.conf": []byte(apt)} {
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: l.folder + "/" + name, Mode: 0o644, Size: int64(len(data))}); err != nil {
				return err
			}
			if _, err := w.Write(data); err != nil {
				return err
			}
		}
	}
	return w.Close()
}

// change copies a file of the context, changed.
func (l *loan) change(w *tar.Writer, r io.Reader, h *tar.Header, by func([]byte) []byte) error {
	data, err := io.ReadAll(io.LimitReader(r, maxDockerfile+1))
	if err != nil {
		return err
	}
	if len(data) > maxDockerfile {
		return fmt.Errorf("%w: %s is over %d bytes", sandbox.ErrBuild, h.Name, maxDockerfile)
	}
	data = by(bytes.Clone(data))
	changed := *h
	changed.Size, changed.PAXRecords = int64(len(data)), nil
	if err := w.WriteHeader(&changed); err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
