package gitobj

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// Node is a commit in a History.
type Node struct {
	Tree    ID
	Parents []ID
	When    int64 // committer's time, Unix seconds
}

// History is a commit with all that it leads to.
type History struct {
	Base    ID
	Commits map[ID]Node
	Objects map[ID]Type // commits, trees and blobs; not the commits of submodules
}

// maxReach bounds a history, in objects.
const maxReach = 32 << 20

// Reach walks everything that can be reached from base. Every commit and tree on the way is read
// and checked; a missing one is an error, but for the parents of the commits in shallow, where a
// shallow clone ends. Blobs must be there and are not read.
func (r *Repo) Reach(base ID, shallow Set) (*History, error) {
	h := &History{Base: base, Commits: map[ID]Node{}, Objects: map[ID]Type{}}
	if base == Zero {
		return h, nil
	}
	queue := []ID{base}
	for len(queue) > 0 {
		id := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if _, ok := h.Commits[id]; ok {
			continue
		}
		kind, data, err := r.Get(id)
		if err != nil {
			return nil, err
		}
		if kind != Commit {
			return nil, fmt.Errorf("%s is a %s where a commit belongs", id, kind)
		}
		c, err := ParseCommit(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
		if shallow.Has(id) {
			c.Parents = nil
		}
		h.Commits[id] = Node{Tree: c.Tree, Parents: c.Parents, When: c.When}
		h.Objects[id] = Commit
		queue = append(queue, c.Parents...)
		if err := r.reachTree(c.Tree, h.Objects); err != nil {
			return nil, fmt.Errorf("commit %s: %w", id, err)
		}
	}
	return h, nil
}

func (r *Repo) reachTree(root ID, into map[ID]Type) error {
	queue := []ID{root}
	for len(queue) > 0 {
		id := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if _, ok := into[id]; ok {
			continue
		}
		entries, err := r.Tree(id)
		if err != nil {
			return err
		}
		if len(into) > maxReach {
			return fmt.Errorf("more than %d objects", maxReach)
		}
		into[id] = Tree
		for _, e := range entries {
			switch {
			case e.Mode == ModeTree:
				queue = append(queue, e.ID)
			case e.Mode == ModeModule:
			default:
				if _, ok := into[e.ID]; !ok && !r.Has(e.ID) {
					return fmt.Errorf("%w: %s (%s)", ErrMissing, e.ID, e.Name)
				}
				into[e.ID] = Blob
			}
		}
	}
	return nil
}

// Tree reads one tree.
func (r *Repo) Tree(id ID) ([]TreeEntry, error) {
	kind, data, err := r.Get(id)
	if err != nil {
		return nil, err
	}
	if kind != Tree {
		return nil, fmt.Errorf("%s is a %s where a tree belongs", id, kind)
	}
	entries, err := ParseTree(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", id, err)
	}
	return entries, nil
}

// Lookup finds the entry at a slash-separated path below a tree.
func (r *Repo) Lookup(tree ID, name string) (TreeEntry, bool, error) {
	e := TreeEntry{Mode: ModeTree, ID: tree}
	for _, part := range strings.Split(name, "/") {
		if e.Mode != ModeTree {
			return e, false, nil
		}
		entries, err := r.Tree(e.ID)
		if err != nil {
			return e, false, err
		}
		found := false
		for _, next := range entries {
			if next.Name == part {
				e, found = next, true
				break
			}
		}
		if !found {
			return e, false, nil
		}
	}
	return e, true, nil
}

// Files calls each for every file, link and submodule below a tree, in the order of an index.
func (r *Repo) Files(tree ID, each func(name string, e TreeEntry) error) error {
	return r.files(tree, "", 0, each)
}

// maxTreeDepth bounds folders in folders; paths of 4,096 bytes cannot be deeper.
const maxTreeDepth = 2048

func (r *Repo) files(tree ID, prefix string, depth int, each func(string, TreeEntry) error) error {
	if depth > maxTreeDepth {
		return errors.New("a tree is nested too deeply")
	}
	entries, err := r.Tree(tree)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Mode == ModeTree {
			err = r.files(e.ID, prefix+e.Name+"/", depth+1, each)
		} else {
			err = each(prefix+e.Name, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Shallow gives the commits at which a shallow clone ends.
func (r *Repo) Shallow() (Set, error) {
	data, err := r.ReadFile("shallow", maxPackedRefs)
	if errors.Is(err, fs.ErrNotExist) {
		return Set{}, nil
	}
	if err != nil {
		return Set{}, err
	}
	var ids []ID
	for _, line := range strings.Fields(string(data)) {
		id, ok := ParseID(line)
		if !ok {
			return Set{}, errors.New("shallow: a broken line")
		}
		ids = append(ids, id)
	}
	return NewSet(ids), nil
}

// Peel follows tags from id to what they mean, and gives it with the tags on the way.
func (r *Repo) Peel(id ID) (target ID, kind Type, tags []ID, when int64, err error) {
	for range maxSymbolic {
		kind, data, err := r.Get(id)
		if err != nil {
			return id, 0, tags, when, err
		}
		if kind != Tag {
			return id, kind, tags, when, nil
		}
		t, err := ParseTag(data)
		if err != nil {
			return id, 0, tags, when, fmt.Errorf("%s: %w", id, err)
		}
		tags = append(tags, id)
		when = max(when, t.When)
		id = t.Target
	}
	return id, 0, tags, when, errors.New("tags of tags without end")
}
