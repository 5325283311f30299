package images

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sys/unix"

	"proctor/sandbox"
	"proctor/sandbox/oci/tree"
)

// maxLayers is how many layers fit into one mount's options of a page.
const maxLayers = 120

// add unpacks an image's layers, those that are not there yet, and records it. The caller holds the store.
func (s *Store) add(ctx context.Context, img v1.Image, ref string) (Record, error) {
	digest, err := img.ConfigName()
	if err != nil {
		return Record{}, bad("its configuration", err)
	}
	if r, err := s.Lookup(digest.String()); err == nil {
		return r, nil
	}
	config, err := img.ConfigFile()
	if err != nil {
		return Record{}, bad("its configuration", err)
	}
	if err := fits(config); err != nil {
		return Record{}, err
	}
	layers, err := img.Layers()
	if err != nil {
		return Record{}, bad("its layers", err)
	}
	if len(layers) != len(config.RootFS.DiffIDs) {
		return Record{}, bad("", fmt.Errorf("%d layers, and a configuration that speaks of %d", len(layers), len(config.RootFS.DiffIDs)))
	}
	if n := len(layers); n > maxLayers { // before they are unpacked
		return Record{}, bad("", fmt.Errorf("%d layers, at most %d can be mounted: squash it", n, maxLayers))
	}
	made := false
	for i, layer := range layers {
		id := config.RootFS.DiffIDs[i].String()
		if _, there := s.layer(id); there {
			continue
		}
		if _, err = s.unpackOnce(ctx, id, layer); err != nil {
			return Record{}, err
		}
		made = true
	}
	if made {
		s.sync()
	}
	return s.assemble(ctx, digest.String(), config, ref)
}

// emptyLayer is the id of the layer that `docker commit` makes of nothing: a tar stream of two blocks of zeros.
const emptyLayer = "sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef"

// assemble records an image whose layers are all there. The caller holds the store.
func (s *Store) assemble(ctx context.Context, digest string, config *v1.ConfigFile, ref string) (Record, error) {
	if err := fits(config); err != nil {
		return Record{}, err
	}
	if n := len(config.RootFS.DiffIDs); n > maxLayers {
		return Record{}, bad("", fmt.Errorf("%d layers, at most %d can be mounted: squash it", n, maxLayers))
	}
	r := Record{Digest: digest, User: config.Config.User, Env: config.Config.Env, Entrypoint: config.Config.Entrypoint,
		Cmd: config.Config.Cmd, Created: time.Now().UTC(), Ref: ref}
	for _, diff := range config.RootFS.DiffIDs {
		note, there := s.layer(diff.String())
		if !there && diff.String() == emptyLayer {
			empty := static.NewLayer(make([]byte, 1024), types.OCIUncompressedLayer)
			var err error
			note, err = s.unpackOnce(ctx, emptyLayer, empty)
			there = err == nil
		}
		if !there {
			return Record{}, fmt.Errorf("%w: %s lacks its layer %s", sandbox.ErrNoImage, digest, diff)
		}
		r.Layers = append(r.Layers, note.ID)
		r.Size += note.Size
	}
	return r, s.write("i/"+strings.TrimPrefix(digest, "sha256:"), r)
}

// bad says that the image is at fault.
func bad(part string, err error) error {
	if part != "" {
		err = fmt.Errorf("%s: %w", part, err)
	}
	return fmt.Errorf("%w: %w", sandbox.ErrBadImage, err)
}

// fits refuses an image for another kind of machine.
func fits(config *v1.ConfigFile) error {
	os, arch := config.OS, config.Architecture
	if os == "" {
		os = "linux"
	}
	if arch == "" {
		arch = runtime.GOARCH // `docker import` of old wrote none
	}
	if os != "linux" || arch != runtime.GOARCH {
		return &ArchError{Has: os + "/" + arch, Want: "linux/" + runtime.GOARCH}
	}
	return nil
}

// sync has the kernel write all through, so that a record never speaks of a layer that a power failure cut short.
func (s *Store) sync() {
	if f, err := os.Open(s.path); err == nil {
		_ = unix.Syncfs(int(f.Fd())) // a disk that fails is told by whoever reads
		_ = f.Close()
	}
}

// unpackOnce unpacks a layer unless another process does so at this moment, which it then waits for.
func (s *Store) unpackOnce(ctx context.Context, id string, layer v1.Layer) (layerNote, error) {
	release, err := s.lock(ctx, "t/"+key(id)+".lock", unix.LOCK_EX)
	if err != nil {
		return layerNote{}, err
	}
	defer release()
	if note, there := s.layer(id); there {
		return note, nil
	}
	note := layerNote{ID: id}
	work := s.workFolder()
	note.Size, err = s.unpack(ctx, id, layer, work)
	if err == nil {
		err = s.place(note, work)
	}
	if err != nil {
		return note, errors.Join(err, tree.Remove(work))
	}
	return note, nil
}

// workFolder gives a path that nobody else has.
func (s *Store) workFolder() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return filepath.Join(s.path, "t", hex.EncodeToString(b[:]))
}

// place puts a layer that is complete where it belongs.
func (s *Store) place(note layerNote, work string) error {
	target := filepath.Join(s.path, LayerPath(note.ID))
	if err := tree.Remove(target); err != nil { // of a crash, or of before the machine started
		return err
	}
	if err := os.Rename(work, target); err != nil {
		return err
	}
	return s.write("m/"+key(note.ID), note)
}

// unpack unpacks a layer into a new folder and makes sure that its content is what its id says.
func (s *Store) unpack(ctx context.Context, id string, layer v1.Layer, folder string) (int64, error) {
	if err := os.Mkdir(folder, 0o755); err != nil {
		return 0, err
	}
	if err := os.Chown(folder, s.shift, s.shift); err != nil && os.Geteuid() == 0 {
		return 0, err
	}
	root, err := tree.Open(folder)
	if err != nil {
		return 0, err
	}
	defer root.Close()
	stream, err := layer.Uncompressed()
	if err != nil {
		return 0, layerError(ctx, id, err)
	}
	defer stream.Close()
	sum := sha256.New()
	in := io.TeeReader(stream, sum)
	size, err := root.Unpack(ctx, in, tree.Unpacking{Layer: true, Shift: s.shift})
	if err == nil {
		_, err = io.Copy(io.Discard, in) // what follows the end of the archive counts for the id
	}
	if err != nil {
		return 0, layerError(ctx, id, err)
	}
	if got := "sha256:" + hex.EncodeToString(sum.Sum(nil)); got != id {
		return 0, layerError(ctx, id, fmt.Errorf("its content is %s", got))
	}
	return size, nil
}

// layerError names the layer, and says that the image is at fault where that is so: not where the disk is full or the
// caller left.
func layerError(ctx context.Context, id string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, ours := range []error{unix.ENOSPC, unix.EDQUOT, unix.EIO, unix.EROFS, unix.EMFILE, unix.ENFILE, unix.ENOMEM} {
		if errors.Is(err, ours) {
			return &LayerError{id, fmt.Errorf("%w: unpacking: %w", sandbox.ErrUnavailable, err)}
		}
	}
	return &LayerError{id, fmt.Errorf("%w: %w", sandbox.ErrBadImage, err)}
}
