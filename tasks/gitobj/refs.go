package gitobj

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"sort"
	"strings"
)

// Bounds of what is read beside objects.
const (
	maxRefFile    = 4 << 10  // bytes of one ref's file
	maxPackedRefs = 64 << 20 // bytes
	maxRefs       = 1 << 20
	maxSymbolic   = 5 // links from ref to ref; git's own bound
)

// Ref is one ref: a name under refs/, or a name in capitals beside them such as ORIG_HEAD.
type Ref struct {
	Name   string
	ID     ID     // Zero where it points to nothing
	Target string // of a symbolic ref, the name it points to; "" else
}

// ParseRefFile reads what a ref's file says: an id, or "ref: name". FETCH_HEAD's longer lines start
// with an id too.
func ParseRefFile(data []byte) (id ID, target string, err error) {
	text := strings.TrimRight(string(data), "\n\r\t ")
	if rest, ok := strings.CutPrefix(text, "ref:"); ok {
		target = strings.TrimSpace(rest)
		if !ValidRefName(target) {
			return id, "", errors.New("symbolic ref with a broken name")
		}
		return id, target, nil
	}
	word, _, _ := strings.Cut(text, "\n")
	if i := strings.IndexAny(word, " \t"); i >= 0 {
		word = word[:i]
	}
	id, ok := ParseID(word)
	if !ok {
		return id, "", errors.New("ref that holds no id")
	}
	return id, "", nil
}

// ValidRefName keeps out what could leave the git directory or confuse a reader: git's own rules
// (git check-ref-format), of which it checks those that matter here.
func ValidRefName(name string) bool {
	if name == "" || len(name) > 1024 || strings.HasPrefix(name, "/") || path.Clean(name) != name || strings.Contains(name, "..") {
		return false
	}
	for _, c := range name {
		if c < ' ' || c == 0x7f || strings.ContainsRune(" ~^:?*[\\", c) {
			return false
		}
	}
	return true
}

// ParsePackedRefs reads a packed-refs file. Peeled lines are passed over: the objects say the same.
func ParsePackedRefs(data []byte) (map[string]ID, error) {
	refs := map[string]ID{}
	for n, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if line == "" || line[0] == '#' || line[0] == '^' {
			continue
		}
		word, name, _ := strings.Cut(line, " ")
		id, ok := ParseID(word)
		if !ok || !ValidRefName(name) {
			return nil, fmt.Errorf("packed-refs:%d: broken line", n+1)
		}
		if len(refs) >= maxRefs {
			return nil, fmt.Errorf("packed-refs: more than %d refs", maxRefs)
		}
		refs[name] = id
	}
	return refs, nil
}

var pseudoRef = regexp.MustCompile(`^[A-Z][A-Z_]*$`)

// Refs gives every ref, loose ones before packed ones of the same name, the refs in capitals beside
// them too (ORIG_HEAD, FETCH_HEAD, MERGE_HEAD, ...), sorted by name. HEAD is among them.
func (r *Repo) Refs() ([]Ref, error) {
	found := map[string]Ref{}
	packed, err := r.packedRefs()
	if err != nil {
		return nil, err
	}
	for name, id := range packed {
		found[name] = Ref{Name: name, ID: id}
	}
	if err := r.looseRefs(found); err != nil {
		return nil, err
	}
	if err := r.pseudoRefs(found); err != nil {
		return nil, err
	}
	refs := make([]Ref, 0, len(found))
	for _, ref := range found {
		if ref.Target != "" {
			ref.ID = resolveIn(found, ref.Target)
		}
		refs = append(refs, ref)
	}
	sort.Slice(refs, func(i, j int) bool { return refs[i].Name < refs[j].Name })
	return refs, nil
}

func resolveIn(found map[string]Ref, name string) ID {
	for range maxSymbolic {
		ref := found[name]
		if ref.Target == "" {
			return ref.ID
		}
		name = ref.Target
	}
	return Zero
}

func (r *Repo) packedRefs() (map[string]ID, error) {
	data, err := r.ReadFile("packed-refs", maxPackedRefs)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return ParsePackedRefs(data)
}

func (r *Repo) looseRefs(found map[string]Ref) error {
	err := fs.WalkDir(r.dir.FS(), "refs", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() || strings.HasSuffix(name, ".lock") {
			return nil
		}
		if len(found) >= maxRefs {
			return fmt.Errorf("more than %d refs", maxRefs)
		}
		return r.readRef(name, found)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (r *Repo) readRef(name string, found map[string]Ref) error {
	data, err := r.ReadFile(name, maxPackedRefs)
	if err != nil {
		return err
	}
	id, target, err := ParseRefFile(data)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	found[name] = Ref{Name: name, ID: id, Target: target}
	return nil
}

func (r *Repo) pseudoRefs(found map[string]Ref) error {
	entries, err := fs.ReadDir(r.dir.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() || !pseudoRef.MatchString(e.Name()) || e.Name() == "COMMIT_EDITMSG" {
			continue
		}
		if err := r.readRef(e.Name(), found); err != nil && e.Name() == "HEAD" {
			return err
		} else if err != nil {
			found[e.Name()] = Ref{Name: e.Name()} // MERGE_MSG and the like: a file of text
		}
	}
	return nil
}

// Head tells what HEAD says: the branch it is on ("" when detached) and its commit (Zero on a
// branch without commits).
func (r *Repo) Head() (branch string, id ID, err error) {
	refs, err := r.Refs()
	if err != nil {
		return "", Zero, err
	}
	for _, ref := range refs {
		if ref.Name == "HEAD" {
			return ref.Target, ref.ID, nil
		}
	}
	return "", Zero, errors.New("HEAD is missing")
}
