package images

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"proctor/sandbox"
)

// Store is a folder of layers, images and refs. Safe for concurrent use, by many processes as well.
type Store struct {
	path  string
	shift int // added to owners while unpacking
}

// Record is an image as the store keeps it.
type Record struct {
	Digest     string    `json:"digest"` // of its configuration, "sha256:..."
	Layers     []string  `json:"layers"` // ids, the lowest first
	User       string    `json:"user"`
	Env        []string  `json:"env"`
	Entrypoint []string  `json:"entrypoint,omitempty"`
	Cmd        []string  `json:"cmd,omitempty"`
	Size       int64     `json:"size"` // bytes of files
	Created    time.Time `json:"created"`
	Ref        string    `json:"ref"` // the first that it was known by
	// Boot is set for what was not written through to the disk: it counts only until the machine starts again.
	Boot string `json:"boot,omitempty"`
}

// Image gives a record as engines tell it, under ref.
func (r Record) Image(ref string) sandbox.Image {
	return sandbox.Image{Ref: ref, Digest: r.Digest, User: r.User, Env: r.Env, Size: r.Size}
}

// layerNote is what is known of a layer.
type layerNote struct {
	ID   string `json:"id"`
	Size int64  `json:"size"`
	Boot string `json:"boot,omitempty"`
}

// Empty is an empty folder of the store's, relative to it, for images without a layer.
const Empty = "e"

// Open opens the store at path, made if it is not there. shift is added to all owners of files, for sandboxes in
// user namespaces; a store has one shift for good.
func Open(path string, shift int) (*Store, error) {
	for _, sub := range []string{"l", "m", "i", "r", "t", Empty} {
		if err := os.MkdirAll(filepath.Join(path, sub), 0o711); err != nil {
			return nil, fmt.Errorf("open the image store: %w", err)
		}
	}
	return &Store{path: path, shift: shift}, nil
}

// Path is the store's folder.
func (s *Store) Path() string { return s.path }

// Hold keeps GC from removing anything until release is called.
func (s *Store) Hold(ctx context.Context) (release func(), err error) {
	return s.lock(ctx, "lock", unix.LOCK_SH)
}

// lock waits for a file's lock.
func (s *Store) lock(ctx context.Context, name string, how int) (release func(), err error) {
	f, err := os.OpenFile(filepath.Join(s.path, name), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the image store: %w", err)
	}
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil // closing unlocks
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock the image store: %w", err), f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), f.Close())
		case <-time.After(wait):
		}
	}
}

// key is a layer's name on disk: short, since a mount's options name every layer and have to fit into a page, and
// long enough that nobody makes a second one of the same name.
func key(id string) string {
	sum := sha256.Sum256([]byte(id))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:26])
}

// LayerPath gives a layer's folder, relative to the store's.
func LayerPath(id string) string { return "l/" + key(id) }

// layer looks a layer up.
func (s *Store) layer(id string) (layerNote, bool) {
	var note layerNote
	if err := s.read("m/"+key(id), &note); err != nil || note.ID != id || stale(note.Boot) {
		return note, false
	}
	_, err := os.Lstat(filepath.Join(s.path, LayerPath(id)))
	return note, err == nil
}

// stale reports whether what was not written through may be lost.
func stale(boot string) bool { return boot != "" && boot != bootID() }

// bootID tells one run of the machine from the next.
func bootID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}

// Lookup gives an image by digest. sandbox.ErrNoImage where it is not there as a whole.
func (s *Store) Lookup(digest string) (Record, error) {
	var r Record
	err := s.read("i/"+strings.TrimPrefix(digest, "sha256:"), &r)
	if errors.Is(err, fs.ErrNotExist) || err == nil && (r.Digest != digest || stale(r.Boot)) {
		return Record{}, fmt.Errorf("%w: %s", sandbox.ErrNoImage, digest)
	}
	if err != nil {
		return Record{}, err
	}
	for _, id := range r.Layers {
		if _, there := s.layer(id); !there {
			return Record{}, fmt.Errorf("%w: %s lacks its layer %s", sandbox.ErrNoImage, digest, id)
		}
	}
	return r, nil
}

// refEntry is a ref on disk.
type refEntry struct {
	Ref    string `json:"ref"`
	Digest string `json:"digest"`
	// Owner is whose Commit made it; "" for those that only remember what a daemon or registry said last.
	Owner string `json:"owner,omitempty"`
}

// ref gives what a ref stands for.
func (s *Store) ref(name string) (refEntry, bool) {
	var entry refEntry
	err := s.read("r/"+hashed(name), &entry)
	return entry, err == nil && entry.Ref == name
}

// tag gives an image a ref.
func (s *Store) tag(ref, digest, owner string) error {
	return s.write("r/"+hashed(ref), refEntry{ref, digest, owner})
}

// Refs lists the refs that an owner's commits made.
func (s *Store) Refs(owner string) []string {
	entries, _ := os.ReadDir(filepath.Join(s.path, "r")) // none: it names nothing
	var refs []string
	for _, file := range entries {
		var entry refEntry
		if err := s.read("r/"+file.Name(), &entry); err == nil && entry.Owner == owner {
			refs = append(refs, entry.Ref)
		}
	}
	return refs
}

// Drop removes a ref of a commit's and, where no sandbox has it mounted, its image; nil where there is none. used is as
// for GC.
func (s *Store) Drop(ctx context.Context, ref string, used func() (map[string]bool, error)) error {
	entry, known := s.ref(ref)
	if !known || entry.Owner == "" {
		return nil
	}
	if err := os.Remove(filepath.Join(s.path, "r", hashed(ref))); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, err := s.GC(ctx, func(r Record) bool { return r.Digest == entry.Digest }, used, false)
	return err
}

func hashed(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// read reads a JSON file of the store's. One that a crash left in pieces counts as not there.
func (s *Store) read(name string, into any) error {
	text, err := os.ReadFile(filepath.Join(s.path, name))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%w: %s: %v", fs.ErrNotExist, name, err)
	}
	return nil
}

// write writes a JSON file so that no reader sees half of it.
func (s *Store) write(name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	part, err := os.CreateTemp(filepath.Join(s.path, "t"), "note")
	if err != nil {
		return err
	}
	_, err = part.Write(text)
	if err = errors.Join(err, part.Close()); err == nil {
		err = os.Rename(part.Name(), filepath.Join(s.path, name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(part.Name()))
	}
	return nil
}
