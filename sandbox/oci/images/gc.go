package images

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"proctor/sandbox/oci/tree"
)

// Collected is what GC removed, or would.
type Collected struct {
	Images []Record
	Layers int
	Bytes  int64 // of the layers' files
}

// GC removes images that drop says may go and that no sandbox uses, refs that lead nowhere, layers that no image has, and what
// crashes left. used gives, once nobody can add anything any more, the layers that sandboxes have mounted; those stay,
// and images whose topmost layer is among them.
func (s *Store) GC(ctx context.Context, drop func(Record) bool, used func() (map[string]bool, error), dry bool) (Collected, error) {
	release, err := s.lock(ctx, "lock", unix.LOCK_EX)
	if err != nil {
		return Collected{}, err
	}
	defer release()
	mounted, err := used()
	if err != nil {
		return Collected{}, err
	}
	var out Collected
	kept, err := s.sortOut(drop, mounted, &out, dry)
	if err != nil {
		return out, err
	}
	err = s.dropLayers(kept, &out, dry)
	if dry {
		return out, err
	}
	return out, errors.Join(err, s.dropRefs(), s.dropWork())
}

// sortOut removes the images that may go, and gives the keys of the layers that must stay.
func (s *Store) sortOut(drop func(Record) bool, mounted map[string]bool, out *Collected, dry bool) (map[string]bool, error) {
	kept := map[string]bool{}
	for id := range mounted {
		kept[key(id)] = true
	}
	entries, err := os.ReadDir(filepath.Join(s.path, "i"))
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		r, err := s.Lookup("sha256:" + entry.Name())
		if err == nil && (!drop(r) || len(r.Layers) > 0 && mounted[r.Layers[len(r.Layers)-1]]) {
			for _, id := range r.Layers {
				kept[key(id)] = true
			}
			continue
		}
		if err == nil {
			out.Images = append(out.Images, r)
		}
		if !dry {
			if err := os.Remove(filepath.Join(s.path, "i", entry.Name())); err != nil {
				return nil, err
			}
		}
	}
	return kept, nil
}

// dropLayers removes the layers whose keys are not kept.
func (s *Store) dropLayers(kept map[string]bool, out *Collected, dry bool) error {
	entries, err := os.ReadDir(filepath.Join(s.path, "l"))
	if err != nil {
		return err
	}
	var errs []error
	for _, entry := range entries {
		if kept[entry.Name()] {
			continue
		}
		var note layerNote
		_ = s.read("m/"+entry.Name(), &note) // one without a note has no size
		out.Layers++
		out.Bytes += note.Size
		if dry {
			continue
		}
		if err := os.Remove(filepath.Join(s.path, "m", entry.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
		errs = append(errs, tree.Remove(filepath.Join(s.path, "l", entry.Name())))
	}
	return errors.Join(errs...)
}

// dropRefs removes refs whose image is gone.
func (s *Store) dropRefs() error {
	entries, err := os.ReadDir(filepath.Join(s.path, "r"))
	if err != nil {
		return err
	}
	var errs []error
	for _, entry := range entries {
		var ref refEntry
		if err := s.read("r/"+entry.Name(), &ref); err == nil {
			if _, err := s.Lookup(ref.Digest); err == nil {
				continue
			}
		}
		errs = append(errs, os.Remove(filepath.Join(s.path, "r", entry.Name())))
	}
	return errors.Join(errs...)
}

// Tidy removes work that a crash left, unless somebody is at work just now.
func (s *Store) Tidy() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	release, err := s.lock(ctx, "lock", unix.LOCK_EX)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	if err != nil {
		return err
	}
	defer release()
	return s.dropWork()
}

// dropWork removes work that nobody is at: the store is ours alone.
func (s *Store) dropWork() error {
	entries, err := os.ReadDir(filepath.Join(s.path, "t"))
	if err != nil {
		return err
	}
	var errs []error
	for _, entry := range entries {
		errs = append(errs, tree.Remove(filepath.Join(s.path, "t", entry.Name())))
	}
	return errors.Join(errs...)
}
