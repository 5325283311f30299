package harden

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"proctor/tasks/gitobj"
)

// Repo is what the host keeps of one repository: whose its objects are. It is the ground on which
// git facts are told during a rollout.
type Repo struct {
	GitDir string `json:"git_dir"`
	Tree   string `json:"tree,omitempty"` // its work tree; "" for a bare one
	Main   bool   `json:"main,omitempty"` // it holds the workdir
	Branch string `json:"branch"`         // what HEAD is on, "refs/heads/..."; "" when detached
	Base   string `json:"base"`           // the start commit; "" where there is none

	Commits map[gitobj.ID]gitobj.Node `json:"-"`            // ancestors of base, and base
	Kept    gitobj.Set                `json:"-"`            // objects reachable from base, tags kept
	Foreign gitobj.Set                `json:"-"`            // all other objects that were there
	Refs    map[string]string         `json:"refs"`         // refs kept -> id
	Removed map[string]string         `json:"removed_refs"` // refs that were there and are not kept -> id
	Titles  []string                  `json:"-"`            // messages of foreign commits, for :/text

	want   map[gitobj.ID]gitobj.Type
	hidden []string // hidden paths, relative to Tree
	base   gitobj.ID
	leaks  []Leak
}

// examine reads a pulled repository and says what of it stays.
func examine(gitDir, dir string, borrowed []string) (*Repo, *gitobj.Repo, error) {
	repo := &Repo{GitDir: gitDir, Refs: map[string]string{}, Removed: map[string]string{}}
	if err := supported(dir); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", gitDir, err)
	}
	git, err := gitobj.Open(dir, borrowed...)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", gitDir, err)
	}
	if err := repo.read(git); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", gitDir, err), git.Close())
	}
	return repo, git, nil
}

// supported refuses formats that this reader would misread.
func supported(dir string) error {
	data, err := os.ReadFile(filepath.Join(dir, "config"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	settings, err := gitobj.ParseConfig(data)
	if err != nil {
		return err
	}
	for _, s := range settings {
		switch {
		case s.Name() == "extensions.objectformat" && !strings.EqualFold(s.Value, "sha1"),
			s.Name() == "extensions.refstorage" && !strings.EqualFold(s.Value, "files"):
			return fmt.Errorf("the repository's format is not supported: %s = %.40q; convert it to SHA-1 objects and plain refs", s.Name(), s.Value)
		}
	}
	return nil
}

func (r *Repo) read(git *gitobj.Repo) error {
	branch, base, err := git.Head()
	if err != nil {
		return err
	}
	shallow, err := git.Shallow()
	if err != nil {
		return err
	}
	history, err := git.Reach(base, shallow)
	if err != nil {
		return fmt.Errorf("history of HEAD: %w", err)
	}
	r.Branch, r.base, r.want, r.Commits = branch, base, history.Objects, history.Commits
	if base != gitobj.Zero {
		r.Base = base.String()
	}
	if err := r.sortRefs(git); err != nil {
		return err
	}
	if err := r.readReflogs(git); err != nil {
		return err
	}
	return r.sortObjects(git)
}

// sortRefs keeps the branch that HEAD is on and the tags of ancestors, which version tools need (git
// describe); all other refs go. A tag that was written after the base commit may tell in its own
// message what came next: it stays as a plain name for the commit.
func (r *Repo) sortRefs(git *gitobj.Repo) error {
	refs, err := git.Refs()
	if err != nil {
		return err
	}
	for _, ref := range refs {
		switch {
		case ref.Name == "HEAD" || ref.ID == gitobj.Zero:
		case ref.Name == r.Branch:
			r.Refs[ref.Name] = ref.ID.String()
		case strings.HasPrefix(ref.Name, "refs/tags/"):
			if err := r.sortTag(git, ref); err != nil {
				return err
			}
		default:
			r.Removed[ref.Name] = ref.ID.String()
			r.leakRef(ref)
		}
	}
	return nil
}

func (r *Repo) sortTag(git *gitobj.Repo, ref gitobj.Ref) error {
	target, kind, tags, when, err := git.Peel(ref.ID)
	if err != nil && !errors.Is(err, gitobj.ErrMissing) {
		return fmt.Errorf("%s: %w", ref.Name, err)
	}
	_, ancestor := r.Commits[target]
	if err == nil && kind == gitobj.Commit && ancestor && gitobj.ValidRefName(ref.Name) {
		if when > r.Commits[r.base].When {
			r.leak(KindTag, ref.Name, ref.Name+" was written after the start commit")
			r.Refs[ref.Name] = target.String()
			return nil
		}
		r.Refs[ref.Name] = ref.ID.String()
		for _, t := range tags {
			r.want[t] = gitobj.Tag
		}
		return nil
	}
	r.Removed[ref.Name] = ref.ID.String()
	r.leakRef(ref)
	return nil
}

func (r *Repo) leakRef(ref gitobj.Ref) {
	kind := KindRef
	switch {
	case strings.HasPrefix(ref.Name, "refs/tags/"):
		kind = KindTag
	case ref.Name == "refs/stash":
		kind = KindStash
	}
	if _, ancestor := r.Commits[ref.ID]; ancestor {
		return // an older branch: removed, but it told nothing
	}
	r.leak(kind, ref.Name, fmt.Sprintf("%s names %.12s, which is not in the history of the start commit", ref.Name, ref.ID))
}

func (r *Repo) leak(kind, name, text string) {
	r.leaks = append(r.leaks, Leak{Kind: kind, Path: r.GitDir, Name: name, Text: text})
}

func (r *Repo) readReflogs(git *gitobj.Repo) error {
	logs, err := git.Reflogs()
	if err != nil {
		return fmt.Errorf("reflogs: %w", err)
	}
	for name, entries := range logs {
		foreign := map[gitobj.ID]bool{}
		for _, e := range entries {
			for _, id := range []gitobj.ID{e.Old, e.New} {
				if _, ok := r.want[id]; !ok && id != gitobj.Zero {
					foreign[id] = true
				}
			}
		}
		if len(foreign) > 0 {
			r.leak(KindReflog, name, fmt.Sprintf("the reflog of %s names %d commits that are not in the history of the start commit", name, len(foreign)))
		}
	}
	sort.Slice(r.leaks, func(i, j int) bool { return r.leaks[i].Kind+r.leaks[i].Name < r.leaks[j].Kind+r.leaks[j].Name })
	return nil
}

// maxTitles bounds the foreign commit messages that are kept, and maxTitle each, in bytes.
const (
	maxTitles = 20000
	maxTitle  = 2000
)

func (r *Repo) sortObjects(git *gitobj.Repo) error {
	all, err := git.Objects()
	if err != nil {
		return err
	}
	var foreign []gitobj.ID
	commits := 0
	for _, id := range all.IDs() {
		if _, ok := r.want[id]; ok {
			continue
		}
		foreign = append(foreign, id)
		kind, err := git.Kind(id)
		if err != nil || kind != gitobj.Commit {
			continue // what is foreign need not be whole
		}
		commits++
		_, data, err := git.Get(id)
		if err != nil {
			continue
		}
		if c, err := gitobj.ParseCommit(data); err == nil && len(r.Titles) < maxTitles {
			r.Titles = append(r.Titles, strings.ToValidUTF8(c.Message[:min(len(c.Message), maxTitle)], ""))
		}
	}
	r.Kept, r.Foreign = gitobj.SetOf(r.want), gitobj.NewSet(foreign)
	if len(foreign) > 0 {
		r.leak(KindObject, "", fmt.Sprintf("%d objects, %d commits among them, are not in the history of the start commit", len(foreign), commits))
	}
	return nil
}
