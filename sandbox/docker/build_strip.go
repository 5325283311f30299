package docker

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"proctor/sandbox"
)

// strip gives an image under ref that is from without what the build was lent: no layer holds the
// certificates, and neither history nor configuration names a setting. Layers that never had any stay
// as they are, so that the daemon keeps them once.
//
// Deleting the files in a last step would leave them in the layers below, for everybody who is given the
// image; so it is saved, changed and loaded.
func (e *Engine) strip(ctx context.Context, from, ref string, l *loan) error {
	dir, err := os.MkdirTemp("", "proctor-build-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	saved, err := e.cli.ImageSave(ctx, []string{from})
	if err != nil {
		return err
	}
	s := &stripper{loan: l, dir: dir, files: map[string]string{}}
	err = errors.Join(s.unpack(saved), saved.Close())
	if err != nil {
		return err
	}
	read, write := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := s.pack(write, ref)
		packed <- err
		write.CloseWithError(err)
	}()
	loaded, err := e.cli.ImageLoad(ctx, read)
	if err == nil {
		err = loadResult(loaded.Body)
		_ = loaded.Body.Close()
	}
	_ = read.CloseWithError(errStopped)
	if fault := <-packed; fault != nil && !errors.Is(fault, errStopped) {
		return fault
	}
	return err
}

// loadResult reads what the daemon says of a load.
func loadResult(body io.Reader) error {
	lines := json.NewDecoder(body)
	for {
		var line struct {
			Error string `json:"error"`
		}
		switch err := lines.Decode(&line); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case line.Error != "":
			return errors.New(line.Error)
		}
	}
}

// stripper holds a saved image, unpacked under names of its own.
type stripper struct {
	loan  *loan
	dir   string
	files map[string]string // name in the archive -> file on the host, or "link:" and a name
}

func (s *stripper) unpack(in io.Reader) error {
	for r := tar.NewReader(in); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := path.Clean(h.Name)
		switch h.Typeflag {
		case tar.TypeSymlink:
			s.files[name] = "link:" + path.Join(path.Dir(name), h.Linkname)
		case tar.TypeLink:
			s.files[name] = "link:" + path.Clean(h.Linkname)
		case tar.TypeReg:
			file := filepath.Join(s.dir, fmt.Sprintf("in%d", len(s.files)))
			if err := writeAll(file, r); err != nil {
				return err
			}
			s.files[name] = file
		}
	}
}

func writeAll(file string, in io.Reader) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, in)
	return errors.Join(err, f.Close())
}

// file gives the host's file of a name in the archive.
func (s *stripper) file(name string) (string, error) {
	for range 8 {
		file, ok := s.files[path.Clean(name)]
		if !ok {
			break
		}
		target, link := strings.CutPrefix(file, "link:")
		if !link {
			return file, nil
		}
		name = target
	}
	return "", fmt.Errorf("the saved image lacks %s", name)
}

// manifestEntry is one image of an archive.
type manifestEntry struct {
	Config   string
	RepoTags []string
	Layers   []string
}

func (s *stripper) pack(out io.Writer, ref string) error {
	var manifest []manifestEntry
	if err := s.readJSON("manifest.json", &manifest); err != nil {
		return err
	}
	if len(manifest) != 1 {
		return fmt.Errorf("the saved archive holds %d images", len(manifest))
	}
	m := manifest[0]
	w := tar.NewWriter(out)
	var layers, ids []string
	var dropped []bool
	for i, name := range m.Layers {
		file, err := s.file(name)
		if err != nil {
			return err
		}
		file, id, empty, err := s.layer(file, i)
		if err != nil {
			return err
		}
		dropped = append(dropped, empty)
		if empty {
			continue
		}
		name = strings.TrimPrefix(id, "sha256:") + "/layer.tar"
		layers, ids = append(layers, name), append(ids, id)
		if err := addFile(w, name, file); err != nil {
			return err
		}
	}
	config, err := s.config(m.Config, ids, dropped)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(config)
	name := hex.EncodeToString(sum[:]) + ".json"
	list, err := json.Marshal([]manifestEntry{{Config: name, RepoTags: []string{ref}, Layers: layers}})
	if err != nil {
		return err
	}
	if err := errors.Join(addBytes(w, name, config), addBytes(w, "manifest.json", list)); err != nil {
		return err
	}
	return w.Close()
}

func (s *stripper) readJSON(name string, v any) error {
	file, err := s.file(name)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

func addFile(w *tar.Writer, name, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: info.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}

func addBytes(w *tar.Writer, name string, data []byte) error {
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(data))}); err != nil {
		return err
	}
	_, err := w.Write(data)
	return err
}

// lent reports whether a name in a layer is what was lent, or the mark of its deletion; also where a
// COPY of the whole context took the folder along.
func (l *loan) lent(name string) bool {
	name = path.Clean("/" + name)
	for _, part := range strings.Split(name, "/") {
		if strings.TrimPrefix(part, ".wh.") == l.folder {
			return true
		}
	}
	return name == lentFolder || strings.HasPrefix(name, lentFolder+"/") || name == path.Join(path.Dir(lentFolder), ".wh."+path.Base(lentFolder))
}

// layer gives a layer without what was lent, and its digest; the file itself where there was nothing.
// empty says that nothing else was in it.
func (s *stripper) layer(file string, n int) (out, id string, empty bool, err error) {
	has, rest, err := s.loan.scanLayer(file)
	if err != nil {
		return "", "", false, err
	}
	if has && rest == 0 {
		return "", "", true, nil
	}
	out = file
	if has {
		out = filepath.Join(s.dir, fmt.Sprintf("out%d", n))
		if err := s.loan.filterLayer(file, out); err != nil {
			return "", "", false, err
		}
	}
	f, err := os.Open(out)
	if err != nil {
		return "", "", false, err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return out, "sha256:" + hex.EncodeToString(h.Sum(nil)), false, err
}

// scanLayer counts what is not lent in a layer; the folder above it alone counts as nothing.
func (l *loan) scanLayer(file string) (has bool, rest int, err error) {
	err = eachLayerEntry(file, func(h *tar.Header, _ io.Reader) error {
		switch {
		case l.lent(h.Name):
			has = true
		case path.Clean("/"+h.Name) != path.Dir(lentFolder):
			rest++
		}
		return nil
	})
	return has, rest, err
}

func eachLayerEntry(file string, each func(*tar.Header, io.Reader) error) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := each(h, r); err != nil {
			return err
		}
	}
}

func (l *loan) filterLayer(from, to string) error {
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	w := tar.NewWriter(f)
	err = eachLayerEntry(from, func(h *tar.Header, content io.Reader) error {
		if l.lent(h.Name) {
			return nil
		}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err := io.Copy(w, content)
		return err
	})
	return errors.Join(err, w.Close(), f.Close())
}

// givenArgs is how the builder writes a step's arguments into the history.
var givenArgs = regexp.MustCompile(`^\|[0-9]+ .*? (/bin/[a-z]*sh -c |\["?/|[A-Za-z]:\\)`)

// config gives the image's configuration with the layers that are left, and a history without what was
// lent. The builder's notes on its last container hold the arguments too, and go.
func (s *stripper) config(name string, ids []string, dropped []bool) ([]byte, error) {
	var c map[string]json.RawMessage
	if err := s.readJSON(name, &c); err != nil {
		return nil, err
	}
	delete(c, "container_config")
	delete(c, "container")
	rootfs, err := json.Marshal(map[string]any{"type": "layers", "diff_ids": ids})
	if err != nil {
		return nil, err
	}
	c["rootfs"] = rootfs
	var history []map[string]any
	if err := json.Unmarshal(c["history"], &history); err != nil && len(c["history"]) > 0 {
		return nil, err
	}
	kept := []map[string]any{}
	layer := 0
	for _, step := range history {
		empty, _ := step["empty_layer"].(bool)
		gone := false
		if !empty {
			gone = layer < len(dropped) && dropped[layer]
			layer++
		}
		by, _ := step["created_by"].(string)
		if gone || s.loan.inHistory(by) {
			if gone || empty {
				continue
			}
		}
		step["created_by"] = givenArgs.ReplaceAllString(by, "$1")
		kept = append(kept, step)
	}
	if c["history"], err = json.Marshal(kept); err != nil {
		return nil, err
	}
	out, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	for name, value := range s.loan.env {
		if len(value) >= 8 && !known[name] && strings.Contains(string(out), value) {
			return nil, fmt.Errorf("%w: its settings or history hold the value of %s: take it out of the Dockerfile", sandbox.ErrBuild, name)
		}
	}
	return out, nil
}

// inHistory reports whether a step of the history is one of the loan's lines.
func (l *loan) inHistory(by string) bool {
	by = strings.TrimSpace(strings.TrimPrefix(by, "/bin/sh -c #(nop) "))
	by = strings.TrimSpace(by)
	for _, name := range append(append(l.names(), lentCA...), "APT_CONFIG") {
		if by == "ARG "+name {
			return true
		}
	}
	return strings.Contains(by, " in "+lentFolder)
}
