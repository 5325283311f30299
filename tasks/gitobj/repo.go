package gitobj

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"sort"
	"strings"
)

// ErrMissing says that a repository does not hold an object.
var ErrMissing = errors.New("no such object")

// maxIndexFile bounds a pack index, in bytes: 32 million objects of 28 bytes.
const maxIndexFile = 1 << 30

// Repo is one git directory on the host, opened for reading. Not safe for concurrent use.
type Repo struct {
	stores []*store
	dir    *os.Root
}

// store is one folder of objects: the repository's own, then those it borrows from.
type store struct {
	root  *os.Root
	packs []*pack
}

// Open opens a git directory, and further folders of objects that it borrows from. Nothing is read
// through a link that leads out of them. The caller closes it.
func Open(dir string, borrowed ...string) (*Repo, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	r := &Repo{dir: root}
	for _, objects := range append([]string{path.Join(dir, "objects")}, borrowed...) {
		s, err := openStore(objects)
		if err != nil {
			_ = r.Close()
			return nil, err
		}
		r.stores = append(r.stores, s)
	}
	return r, nil
}

// Close lets go of all files.
func (r *Repo) Close() error {
	err := r.dir.Close()
	for _, s := range r.stores {
		err = errors.Join(err, s.close())
	}
	return err
}

var packName = regexp.MustCompile(`^pack-[0-9a-zA-Z_-]+\.pack$`)

func openStore(dir string) (*store, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("objects: %w", err)
	}
	s := &store{root: root}
	if err := s.openPacks(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *store) close() error {
	var err error
	for _, p := range s.packs {
		err = errors.Join(err, p.file.Close())
	}
	return errors.Join(err, s.root.Close())
}

func (s *store) openPacks() error {
	entries, err := fs.ReadDir(s.root.FS(), "pack")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("objects/pack: %w", err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".pack") {
			continue
		}
		p, err := s.openPack(e.Name())
		if err != nil {
			return fmt.Errorf("objects/pack/%s: %w", e.Name(), err)
		}
		s.packs = append(s.packs, p)
	}
	return nil
}

func (s *store) openPack(name string) (*pack, error) {
	if !packName.MatchString(name) {
		return nil, errors.New("is not a pack's name")
	}
	idx, err := readRegular(s.root, "pack/"+strings.TrimSuffix(name, ".pack")+".idx", maxIndexFile)
	if err != nil {
		return nil, err
	}
	file, err := s.root.Open("pack/" + name)
	if err != nil {
		return nil, err
	}
	p, err := openPack(file, name, idx)
	if err != nil {
		_ = file.Close()
	}
	return p, err
}

// readRegular reads a regular file of at most limit bytes.
func readRegular(root *os.Root, name string, limit int64) ([]byte, error) {
	info, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", name)
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("%s: %d bytes, over the limit of %d", name, info.Size(), limit)
	}
	return root.ReadFile(name)
}

// ReadFile reads a file of the git directory.
func (r *Repo) ReadFile(name string, limit int64) ([]byte, error) {
	return readRegular(r.dir, name, limit)
}

// Get gives an object's type and content, with the content checked against the id; it must not be
// changed. ErrMissing where it is not there.
func (r *Repo) Get(id ID) (Type, []byte, error) {
	kind, data, err := r.get(id, 0)
	if err != nil {
		return 0, nil, err
	}
	if Hash(kind, data) != id {
		return 0, nil, fmt.Errorf("object %s does not have the content that its id says", id)
	}
	return kind, data, nil
}

// maxOutside bounds how often a delta's base may be looked for in another pack.
const maxOutside = 32

func (r *Repo) get(id ID, depth int) (Type, []byte, error) {
	if depth > maxOutside {
		return 0, nil, fmt.Errorf("object %s: delta bases lead in a circle", id)
	}
	outside := func(base ID) (Type, []byte, error) { return r.get(base, depth+1) }
	for _, s := range r.stores {
		for _, p := range s.packs {
			if i, ok := p.index.find(id); ok {
				return p.at(p.index.offset(i), outside)
			}
		}
		kind, data, err := s.loose(id)
		if !errors.Is(err, fs.ErrNotExist) {
			return kind, data, err
		}
	}
	return 0, nil, fmt.Errorf("%w: %s", ErrMissing, id)
}

// Kind gives an object's type without reading its content.
func (r *Repo) Kind(id ID) (Type, error) { return r.kind(id, 0) }

func (r *Repo) kind(id ID, depth int) (Type, error) {
	if depth > maxOutside {
		return 0, fmt.Errorf("object %s: delta bases lead in a circle", id)
	}
	for _, s := range r.stores {
		for _, p := range s.packs {
			if i, ok := p.index.find(id); ok {
				return p.kind(p.index.offset(i), func(base ID) (Type, error) { return r.kind(base, depth+1) })
			}
		}
		kind, _, err := s.loose(id)
		if !errors.Is(err, fs.ErrNotExist) {
			return kind, err
		}
	}
	return 0, fmt.Errorf("%w: %s", ErrMissing, id)
}

// Check reads every object but those that skip names, and holds each against its id. Packs are read
// from front to back, so that the bases of deltas are at hand.
func (r *Repo) Check(skip func(ID) bool) error {
	for _, s := range r.stores {
		for _, p := range s.packs {
			order := make([]int, p.index.count)
			for i := range order {
				order[i] = i
			}
			sort.Slice(order, func(a, b int) bool { return p.index.offset(order[a]) < p.index.offset(order[b]) })
			for _, i := range order {
				id := p.index.id(i)
				if skip(id) {
					continue
				}
				kind, data, err := p.at(p.index.offset(i), func(base ID) (Type, []byte, error) { return r.get(base, 1) })
				if err != nil {
					return err
				}
				if Hash(kind, data) != id {
					return fmt.Errorf("object %s does not have the content that its id says", id)
				}
			}
		}
		loose, err := s.looseIDs()
		if err != nil {
			return err
		}
		for _, id := range loose {
			kind, data, err := s.loose(id)
			if err != nil {
				return err
			}
			if Hash(kind, data) != id {
				return fmt.Errorf("object %s does not have the content that its id says", id)
			}
		}
	}
	return nil
}

func loosePath(id ID) string {
	digits := id.String()
	return digits[:2] + "/" + digits[2:]
}

func (s *store) loose(id ID) (Type, []byte, error) {
	f, err := s.root.Open(loosePath(id))
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return 0, nil, err
	}
	if !info.Mode().IsRegular() {
		return 0, nil, fmt.Errorf("loose object %s is not a file", id)
	}
	kind, data, err := ReadLoose(f, 0)
	if err != nil {
		err = fmt.Errorf("%s: %w", id, err)
	}
	return kind, data, err
}

// Has reports whether an object is there, without reading it.
func (r *Repo) Has(id ID) bool {
	for _, s := range r.stores {
		for _, p := range s.packs {
			if _, ok := p.index.find(id); ok {
				return true
			}
		}
		if _, err := s.root.Stat(loosePath(id)); err == nil {
			return true
		}
	}
	return false
}

var (
	fanoutName = regexp.MustCompile(`^[0-9a-f]{2}$`)
	looseName  = regexp.MustCompile(`^[0-9a-f]{38}$`)
)

// Objects gives the id of every object, packed or loose, own or borrowed, reachable or not.
func (r *Repo) Objects() (Set, error) {
	var ids []ID
	for _, s := range r.stores {
		for _, p := range s.packs {
			for i := range p.index.count {
				ids = append(ids, p.index.id(i))
			}
		}
		loose, err := s.looseIDs()
		if err != nil {
			return Set{}, err
		}
		ids = append(ids, loose...)
	}
	return NewSet(ids), nil
}

func (s *store) looseIDs() ([]ID, error) {
	folders, err := fs.ReadDir(s.root.FS(), ".")
	if err != nil {
		return nil, err
	}
	var ids []ID
	for _, folder := range folders {
		if !fanoutName.MatchString(folder.Name()) {
			continue
		}
		files, err := fs.ReadDir(s.root.FS(), folder.Name())
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if !looseName.MatchString(f.Name()) {
				continue // tmp_obj_... of a write that was cut off
			}
			if id, ok := ParseID(folder.Name() + f.Name()); ok {
				ids = append(ids, id)
			}
		}
	}
	return ids, nil
}
