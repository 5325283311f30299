package tasks

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"proctor/sandbox"
	"proctor/tasks/gitobj"
	"proctor/tasks/harden"
)

// record is what the host keeps of a prepared image. On disk it is a folder named by the key:
//
//	state.json   the fields below, without those that have files of their own
//	names        every file at the start under the roots that were read, NUL after each
//	repo<i>      the commits, objects and messages of repository i (gob)
//
// The folder is made under another name and renamed when it is whole.
type record struct {
	Version  int              `json:"version"`
	Hardened bool             `json:"hardened"`
	Image    sandbox.Image    `json:"image"`
	Raw      sandbox.Image    `json:"raw"`
	Leaks    []Leak           `json:"leaks"`
	Repos    []*harden.Repo   `json:"repos"`
	Gone     []string         `json:"gone,omitempty"` // copies of the package that were removed
	Manifest *harden.Manifest `json:"manifest,omitempty"`

	names []string // sorted
}

// repoFile is what a repository's own file holds.
type repoFile struct {
	Commits []commitLine
	Kept    []byte
	Foreign []byte
	Titles  []string
}

type commitLine struct {
	ID, Tree gitobj.ID
	Parents  []gitobj.ID
	When     int64
}

func (r *record) take(found *harden.Outcome) {
	if found == nil {
		return
	}
	r.Leaks, r.Repos, r.Gone = found.Leaks, found.Repos, found.Gone
	for name := range found.Names {
		r.names = append(r.names, name)
	}
	slices.Sort(r.names)
}

func (r *record) main() *harden.Repo {
	for _, repo := range r.Repos {
		if repo.Main {
			return repo
		}
	}
	return nil
}

// atStart reports whether a file was there when the rollout started, of those under the roots that
// were read.
func (r *record) atStart(name string) bool {
	_, found := slices.BinarySearch(r.names, name)
	return found
}

// renameGit puts the names of the hardened git directories in the place of the old ones.
func (r *record) renameGit() {
	kept := make([]string, 0, len(r.names)) // not in place: an adopted record shares names with the old one
	for _, name := range r.names {
		inside := false
		for _, d := range r.Manifest.Dirs {
			inside = inside || within(name, d.Path)
		}
		if !inside {
			kept = append(kept, name)
		}
	}
	for _, d := range r.Manifest.Dirs {
		for name := range d.Files {
			kept = append(kept, path.Join(d.Path, name))
		}
	}
	slices.Sort(kept)
	r.names = slices.Compact(kept)
}

var keyForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// lookup gives the record of a key where both it and its image are there; nil where not.
func (p *Preparer) lookup(ctx context.Context, task *Task, key string) (*record, error) {
	rec, err := p.read(key)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			p.log().Warn("a kept image's state cannot be read; it is made again", "key", key, "error", err)
		}
		return nil, nil
	}
	img, err := p.Engine.Image(ctx, rec.Image.Ref)
	if errors.Is(err, sandbox.ErrNoImage) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if img.Digest == rec.Image.Digest {
		return rec, nil
	}
	return p.adopt(ctx, task, key, rec, img)
}

// adopt takes up an image that stands under the kept one's name: another data folder on this engine
// prepared the same task. It is audited as if it were new; nil where it does not hold, and is made
// again.
func (p *Preparer) adopt(ctx context.Context, task *Task, key string, rec *record, img sandbox.Image) (*record, error) {
	if !rec.Hardened {
		return nil, nil
	}
	adopted := *rec
	adopted.Image = img
	err := p.audit(ctx, task, &adopted)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		p.log().Warn("a kept image was replaced by one that does not hold; it is made again", "image", img.Ref, "error", err)
		return nil, nil
	}
	return &adopted, p.keep(key, &adopted)
}

func (p *Preparer) read(key string) (*record, error) {
	if !keyForm.MatchString(key) {
		return nil, fmt.Errorf("%w: %.80q is not a key", fs.ErrNotExist, key)
	}
	p.mu.Lock()
	rec := p.kept[key]
	p.mu.Unlock()
	if rec != nil {
		return rec, nil
	}
	rec, err := readRecord(filepath.Join(p.Dir, key))
	if err != nil {
		return nil, err
	}
	p.remember(key, rec)
	return rec, nil
}

func (p *Preparer) remember(key string, rec *record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept == nil {
		p.kept = map[string]*record{}
	}
	p.kept[key] = rec
}

func readRecord(dir string) (*record, error) {
	data, err := os.ReadFile(filepath.Join(dir, "state.json"))
	if err != nil {
		return nil, err
	}
	rec := &record{}
	if err := json.Unmarshal(data, rec); err != nil {
		return nil, err
	}
	if rec.Version != prepareVersion || rec.Hardened && rec.Manifest == nil {
		return nil, fmt.Errorf("state of version %d", rec.Version)
	}
	names, err := os.ReadFile(filepath.Join(dir, "names"))
	if err != nil {
		return nil, err
	}
	if len(names) > 0 {
		rec.names = strings.Split(strings.TrimSuffix(string(names), "\x00"), "\x00")
	}
	for i, repo := range rec.Repos {
		if err := readRepo(filepath.Join(dir, fmt.Sprintf("repo%d", i)), repo); err != nil {
			return nil, err
		}
	}
	return rec, nil
}

func readRepo(file string, repo *harden.Repo) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var f repoFile
	if err := gob.NewDecoder(bytes.NewReader(data)).Decode(&f); err != nil {
		return err
	}
	repo.Titles = f.Titles
	repo.Commits = make(map[gitobj.ID]gitobj.Node, len(f.Commits))
	for _, c := range f.Commits {
		repo.Commits[c.ID] = gitobj.Node{Tree: c.Tree, Parents: c.Parents, When: c.When}
	}
	return errors.Join(repo.Kept.UnmarshalBinary(f.Kept), repo.Foreign.UnmarshalBinary(f.Foreign))
}

// keep writes a record where read finds it, whole or not at all.
func (p *Preparer) keep(key string, rec *record) error {
	rec.Version = prepareVersion
	tmp, err := os.MkdirTemp(p.Dir, "new-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	if err := writeRecord(tmp, rec); err != nil {
		return err
	}
	final := filepath.Join(p.Dir, key)
	if err := os.RemoveAll(final); err != nil {
		return err
	}
	if err := os.Rename(tmp, final); err != nil {
		return err
	}
	p.remember(key, rec)
	return nil
}

func writeRecord(dir string, rec *record) error {
	for i, repo := range rec.Repos {
		f := repoFile{Titles: repo.Titles}
		for id, n := range repo.Commits {
			f.Commits = append(f.Commits, commitLine{ID: id, Tree: n.Tree, Parents: n.Parents, When: n.When})
		}
		var err1, err2 error
		f.Kept, err1 = repo.Kept.MarshalBinary()
		f.Foreign, err2 = repo.Foreign.MarshalBinary()
		var b bytes.Buffer
		if err := errors.Join(err1, err2, gob.NewEncoder(&b).Encode(f)); err != nil {
			return err
		}
		if err := writeSynced(filepath.Join(dir, fmt.Sprintf("repo%d", i)), b.Bytes()); err != nil {
			return err
		}
	}
	names := ""
	if len(rec.names) > 0 {
		names = strings.Join(rec.names, "\x00") + "\x00"
	}
	if err := writeSynced(filepath.Join(dir, "names"), []byte(names)); err != nil {
		return err
	}
	data, err := json.MarshalIndent(rec, "", " ")
	if err != nil {
		return err
	}
	return writeSynced(filepath.Join(dir, "state.json"), data)
}

func writeSynced(name string, data []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// lockPoll is how often a lock that another process holds is tried.
const lockPoll = 50 * time.Millisecond

// lock makes the caller the only one that works on key, in this process and among those that share
// Dir. The kernel frees the lock of a process that dies.
func (p *Preparer) lock(ctx context.Context, key string) (unlock func(), err error) {
	p.mu.Lock()
	if p.locks == nil {
		p.locks = map[string]chan struct{}{}
	}
	slot, ok := p.locks[key]
	if !ok {
		slot = make(chan struct{}, 1)
		p.locks[key] = slot
	}
	p.mu.Unlock()
	select {
	case slot <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	file, err := p.lockFile(ctx, key)
	if err != nil {
		<-slot
		return nil, err
	}
	return func() {
		_ = file.Close() // frees the lock
		<-slot
	}, nil
}

func (p *Preparer) lockFile(ctx context.Context, key string) (*os.File, error) {
	dir := filepath.Join(p.Dir, "locks")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cache of prepared images: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, key), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cache of prepared images: %w", err)
	}
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return file, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(err, file.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), file.Close())
		case <-time.After(lockPoll):
		}
	}
}
