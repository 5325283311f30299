package images

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"proctor/sandbox"
	"proctor/sandbox/oci/tree"
)

// Commit keeps what an overlay's upper folder holds as a layer on top of base, as a new image under ref, which is owner's. Nobody may be
// writing to upper meanwhile. The layer is not written through to the disk, which would take longer than all else: the
// image counts until the machine starts again. The caller holds the store.
func (s *Store) Commit(ctx context.Context, base Record, upper, ref, owner string) (Record, error) {
	if _, file := fileRef(ref); file || !wellFormed(ref) {
		return Record{}, fmt.Errorf("%w: %q is no image reference", sandbox.ErrNoImage, ref)
	}
	if len(base.Layers) >= maxLayers {
		return Record{}, fmt.Errorf("%w: a chain of %d commits, at most %d layers can be mounted", sandbox.ErrBadImage, len(base.Layers), maxLayers)
	}
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	note := layerNote{ID: "made:" + hex.EncodeToString(id[:]), Boot: bootID()}
	work := s.workFolder()
	var err error
	if note.Size, err = tree.Copy(ctx, upper, work); err == nil {
		err = s.place(note, work)
	}
	if err != nil {
		return Record{}, errors.Join(err, tree.Remove(work))
	}
	r := base
	r.Layers = append(append([]string{}, base.Layers...), note.ID)
	r.Size, r.Created, r.Ref, r.Boot = base.Size+note.Size, time.Now().UTC(), ref, note.Boot
	r.Digest = ""
	text, err := json.Marshal(r)
	if err != nil {
		return Record{}, err
	}
	sum := sha256.Sum256(text)
	r.Digest = "sha256:" + hex.EncodeToString(sum[:])
	if err := s.write("i/"+hex.EncodeToString(sum[:]), r); err != nil {
		return Record{}, err
	}
	return r, s.tag(ref, r.Digest, owner)
}

// All gives every image that is there as a whole.
func (s *Store) All() ([]Record, error) {
	entries, err := os.ReadDir(filepath.Join(s.path, "i"))
	if err != nil {
		return nil, err
	}
	var all []Record
	for _, entry := range entries {
		if r, err := s.Lookup("sha256:" + entry.Name()); err == nil {
			all = append(all, r)
		}
	}
	return all, nil
}
