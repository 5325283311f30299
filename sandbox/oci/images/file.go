package images

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"proctor/sandbox"
	"proctor/sandbox/oci/tree"
)

// fromFile adds the image in a layout folder or a tar archive.
func (s *Store) fromFile(ctx context.Context, ref string, f file) (Record, error) {
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, fmt.Errorf("%w: %s: there is no %s", sandbox.ErrNoImage, ref, f.path)
	}
	if err != nil {
		return Record{}, fmt.Errorf("%w: %s: %w", sandbox.ErrNoImage, ref, err)
	}
	if info.IsDir() {
		return s.fromLayout(ctx, ref, f)
	}
	isLayout, err := holdsLayout(f.path)
	if err != nil {
		return Record{}, fmt.Errorf("%s: %w", f.path, bad("", err))
	}
	if isLayout {
		return s.fromLayoutArchive(ctx, ref, f)
	}
	var tag *name.Tag
	if f.tag != "" {
		parsed, err := name.NewTag(f.tag)
		if err != nil {
			return Record{}, fmt.Errorf("%w: %s: %w", sandbox.ErrNoImage, ref, err)
		}
		tag = &parsed
	}
	img, err := tarball.ImageFromPath(f.path, tag)
	if err != nil {
		return Record{}, fmt.Errorf("%s: %w", f.path, bad("", err))
	}
	return s.add(ctx, img, ref)
}

// holdsLayout tells an archive of an OCI layout from one of `docker save`, which of late holds both: the latter has a
// manifest.json, which is read more simply.
func holdsLayout(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	found := map[string]bool{}
	for in := tar.NewReader(f); ; {
		head, err := in.Next()
		switch {
		case errors.Is(err, io.EOF) && !found["manifest.json"] && !found["index.json"]:
			return false, errors.New("a tar archive with neither manifest.json nor index.json: no image")
		case errors.Is(err, io.EOF):
			return !found["manifest.json"], nil
		case err != nil:
			return false, fmt.Errorf("no tar archive, or a broken one: %w", err)
		}
		found[strings.TrimPrefix(head.Name, "./")] = true
	}
}

// fromLayoutArchive unpacks the archive of a layout, and takes the image from there.
func (s *Store) fromLayoutArchive(ctx context.Context, ref string, f file) (Record, error) {
	work := s.workFolder()
	if err := os.Mkdir(work, 0o700); err != nil {
		return Record{}, err
	}
	defer tree.Remove(work) // what stays is removed by GC
	archive, err := os.Open(f.path)
	if err != nil {
		return Record{}, err
	}
	defer archive.Close()
	root, err := tree.Open(work)
	if err != nil {
		return Record{}, err
	}
	defer root.Close()
	if _, err := root.Unpack(ctx, archive, tree.Unpacking{}); err != nil {
		return Record{}, fmt.Errorf("%s: %w", f.path, bad("", err))
	}
	return s.fromLayout(ctx, ref, file{work, f.tag})
}

// fromLayout adds an image of a layout folder.
func (s *Store) fromLayout(ctx context.Context, ref string, f file) (Record, error) {
	if _, err := os.Stat(filepath.Join(f.path, "index.json")); err != nil {
		return Record{}, fmt.Errorf("%s: %w", ref, bad("", fmt.Errorf("no OCI layout: %w", err)))
	}
	index, err := layout.ImageIndexFromPath(f.path)
	if err != nil {
		return Record{}, fmt.Errorf("%s: %w", ref, bad("its index", err))
	}
	img, err := choose(index, f.tag, 0)
	if err != nil {
		return Record{}, fmt.Errorf("%s: %w", ref, err)
	}
	return s.add(ctx, img, ref)
}

// refName is the annotation by which layouts name their images.
const refName = "org.opencontainers.image.ref.name"

// choose finds the image of this machine's kind, and with the tag if one is given, in an index or one that it leads to.
func choose(index v1.ImageIndex, tag string, depth int) (v1.Image, error) {
	if depth > 4 {
		return nil, bad("its index", errors.New("indexes nested too deep"))
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, bad("its index", err)
	}
	var others, tags []string
	matched := 0
	for _, d := range manifest.Manifests {
		label := d.Annotations[refName]
		tags = append(tags, label)
		if tag != "" && label != tag && d.Digest.String() != tag {
			continue
		}
		if d.Platform != nil && (d.Platform.OS != "linux" || d.Platform.Architecture != runtime.GOARCH) {
			others = append(others, d.Platform.OS+"/"+d.Platform.Architecture)
			continue
		}
		matched++
		if d.MediaType.IsIndex() {
			inner, err := index.ImageIndex(d.Digest)
			if err != nil {
				return nil, bad("its index "+d.Digest.String(), err)
			}
			return choose(inner, "", depth+1)
		}
		if !d.MediaType.IsImage() {
			continue
		}
		if tag == "" && depth == 0 && d.Platform == nil && len(manifest.Manifests) > 1 {
			return nil, fmt.Errorf("%w: it holds %d images: add one of their names after a colon: %s", sandbox.ErrNoImage, len(manifest.Manifests), strings.Join(tags, ", "))
		}
		img, err := index.Image(d.Digest)
		if err != nil {
			return nil, bad("its manifest "+d.Digest.String(), err)
		}
		return img, nil
	}
	if len(others) > 0 {
		return nil, &ArchError{Has: strings.Join(others, ", "), Want: "linux/" + runtime.GOARCH}
	}
	if tag != "" {
		return nil, fmt.Errorf("%w: none is named %q; there are %q", sandbox.ErrNoImage, tag, tags)
	}
	return nil, bad("its index", fmt.Errorf("none of its %d entries is an image", len(manifest.Manifests)))
}
