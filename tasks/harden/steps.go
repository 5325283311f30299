package harden

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"proctor/tasks/gitobj"
)

// hiddenInHistory refuses a task whose hidden files are in the history that stays: deleting them
// from the work tree would leave `git show HEAD:...`.
func (h *hardener) hiddenInHistory() error {
	for _, r := range h.repos {
		if r.Tree == "" || r.base == gitobj.Zero {
			continue
		}
		for _, hidden := range h.task.Hidden {
			rel := strings.TrimPrefix(hidden, r.Tree+"/")
			if rel == hidden || within(r.GitDir, hidden) {
				continue
			}
			commit, err := h.commitWith(r, rel)
			if err != nil {
				return err
			}
			if commit != gitobj.Zero {
				return fmt.Errorf("hidden path %s is in commit %.12s, which stays: take it out of the history, or out of hidden_paths", hidden, commit)
			}
		}
	}
	return nil
}

// commitWith gives a commit of the history that has the path; Zero where none.
func (h *hardener) commitWith(r *Repo, rel string) (gitobj.ID, error) {
	p := h.pulled[r]
	git, err := gitobj.Open(p.dir, p.borrowed...)
	if err != nil {
		return gitobj.Zero, err
	}
	defer func() { _ = git.Close() }()
	first, rest, deep := strings.Cut(rel, "/")
	roots, folders := map[gitobj.ID]bool{}, map[gitobj.ID]bool{}
	for id, node := range r.Commits {
		if roots[node.Tree] {
			continue
		}
		roots[node.Tree] = true
		e, found, err := git.Lookup(node.Tree, first)
		if err != nil {
			return gitobj.Zero, err
		}
		if found && deep && e.Mode == gitobj.ModeTree && !folders[e.ID] {
			folders[e.ID] = true
			_, found, err = git.Lookup(e.ID, rest)
			if err != nil {
				return gitobj.Zero, err
			}
		} else if deep {
			found = false
		}
		if found {
			return id, nil
		}
	}
	return gitobj.Zero, nil
}

// copies gives repositories that share history with the task's own and are not on it: clones of the
// project at some other commit.
func (h *hardener) copies() []*Repo {
	own := h.main()
	if own == nil || own.base == gitobj.Zero {
		return nil
	}
	var found []*Repo
	for _, r := range h.repos {
		if r == own || r.base == gitobj.Zero {
			continue
		}
		if _, ancestor := own.Commits[r.base]; ancestor {
			continue
		}
		for id := range r.Commits {
			if _, shared := own.Commits[id]; shared {
				found = append(found, r)
				break
			}
		}
	}
	return found
}

func (h *hardener) dropCopies(ctx context.Context) error {
	for _, r := range h.copies() {
		place := r.GitDir
		if r.Tree != "" {
			place = r.Tree
		}
		h.leak(KindCopy, place, fmt.Sprintf("is a copy of the project at %.12s", r.base))
		paths := []string{place, r.GitDir}
		if err := h.remove(ctx, paths...); err != nil {
			return err
		}
		var left []*Repo
		for _, other := range h.repos {
			if other != r && !within(other.GitDir, place) && !within(other.GitDir, r.GitDir) {
				left = append(left, other)
			}
		}
		h.repos = left
	}
	return nil
}

// replaceRepos writes each repository anew and puts it in the place of the old one: outer ones
// first, since those of submodules lie inside.
func (h *hardener) replaceRepos(ctx context.Context) error {
	for i, r := range h.repos {
		p := h.pulled[r]
		out := filepath.Join(h.scratch, fmt.Sprintf("new%d", i))
		git, err := gitobj.Open(p.dir, p.borrowed...)
		if err != nil {
			return err
		}
		err = errors.Join(r.rebuild(git, p.dir, out), git.Close())
		if err != nil {
			return fmt.Errorf("%s: %w", r.GitDir, err)
		}
		if err := h.swap(ctx, r.GitDir, out, p); err != nil {
			return fmt.Errorf("%s: %w", r.GitDir, err)
		}
	}
	return nil
}

func (h *hardener) swap(ctx context.Context, gitDir, out string, p pulledRepo) error {
	if gitDir == "/" || gitDir == h.task.Workdir {
		return errors.New("the workdir is itself a bare repository: name a work tree")
	}
	if err := h.clear(ctx, gitDir); err != nil {
		return err
	}
	// A folder between this repository and the one around it went with the outer one.
	parent := path.Dir(gitDir)
	if _, err := h.box.Stat(ctx, parent); errors.Is(err, fs.ErrNotExist) {
		if parent, out, err = h.withParents(ctx, gitDir, out); err != nil {
			return err
		}
	}
	return pushDir(ctx, h.box, out, path.Join(parent, h.topOf(gitDir, parent)), p.uid, p.gid)
}

// withParents makes the missing folders above gitDir part of what is pushed. It gives the folder
// that is there, and the folder of the host that stands for the first missing one.
func (h *hardener) withParents(ctx context.Context, gitDir, out string) (string, string, error) {
	parent := path.Dir(gitDir)
	for {
		_, err := h.box.Stat(ctx, parent)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || parent == "/" {
			return "", "", err
		}
		parent = path.Dir(parent)
	}
	rel := strings.TrimPrefix(gitDir, strings.TrimSuffix(parent, "/")+"/")
	_, below, _ := strings.Cut(rel, "/")
	top := out + "-in"
	if err := os.MkdirAll(filepath.Dir(filepath.Join(top, below)), 0o700); err != nil {
		return "", "", err
	}
	return parent, top, os.Rename(out, filepath.Join(top, below))
}

// topOf is the first name of gitDir below parent.
func (h *hardener) topOf(gitDir, parent string) string {
	rel := strings.TrimPrefix(gitDir, strings.TrimSuffix(parent, "/")+"/")
	first, _, _ := strings.Cut(rel, "/")
	return first
}

// dropWorktrees removes linked work trees: each is a copy of some other commit.
func (h *hardener) dropWorktrees(ctx context.Context) error {
	for _, place := range h.worktrees(ctx) {
		if _, err := h.box.Stat(ctx, place); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := h.remove(ctx, place); err != nil {
			return err
		}
	}
	return nil
}

// worktrees reports linked work trees and gives their folders.
func (h *hardener) worktrees(ctx context.Context) []string {
	var places []string
	for link, target := range h.survey.links {
		for _, admin := range h.survey.admins {
			if target == admin {
				places = append(places, path.Dir(link))
				h.leak(KindWorktree, path.Dir(link), "is a work tree linked to "+admin)
			}
		}
	}
	for _, r := range h.repos {
		entries, err := os.ReadDir(filepath.Join(h.pulled[r].dir, "worktrees"))
		if err != nil {
			continue
		}
		for _, e := range entries {
			data, err := os.ReadFile(filepath.Join(h.pulled[r].dir, "worktrees", e.Name(), "gitdir"))
			if err != nil {
				continue
			}
			place := path.Dir(resolve(r.GitDir, strings.TrimSpace(string(data))))
			if _, seen := h.survey.links[place+"/.git"]; seen || place == "/" {
				continue
			}
			h.leak(KindWorktree, place, "is a work tree linked to "+r.GitDir)
			if _, err := h.box.Stat(ctx, place+"/.git"); err == nil {
				places = append(places, place)
			}
		}
	}
	return places
}

// dropBorrowed removes stores of objects that lie outside of all repositories that were found: what
// was needed of them has been taken over.
func (h *hardener) dropBorrowed(ctx context.Context) error {
	for _, objects := range h.remote {
		place := objects
		if path.Base(objects) == "objects" {
			if _, err := h.box.Stat(ctx, path.Dir(objects)+"/HEAD"); err == nil {
				place = path.Dir(objects)
			}
		}
		if path.Base(place) == ".git" {
			place = path.Dir(place)
		}
		if err := h.remove(ctx, place); err != nil {
			return fmt.Errorf("alternate: %w", err)
		}
	}
	return nil
}

// strayPacks gives bundles and packs that lie outside of repositories and are not files of the
// start commit.
func (h *hardener) strayPacks() []string {
	var stray []string
	for _, name := range h.survey.packs {
		if h.survey.gitDirOver(name) != "" || h.isTracked(name) {
			continue
		}
		h.leak(KindBundle, name, "holds git objects outside of any repository")
		stray = append(stray, name)
	}
	return stray
}

func (h *hardener) isTracked(name string) bool {
	for _, r := range h.repos {
		if r.Tree != "" && within(name, r.Tree) && h.tracked(r, name) {
			return true
		}
	}
	return false
}

func (h *hardener) dropBundles(ctx context.Context) error { return h.remove(ctx, h.strayPacks()...) }

// noteAll reports what Run would remove, without doing it.
func (h *hardener) noteAll(ctx context.Context) {
	for _, r := range h.copies() {
		h.leak(KindCopy, r.GitDir, fmt.Sprintf("is a copy of the project at %.12s", r.base))
	}
	for _, r := range h.repos {
		r.leakFiles(h.pulled[r].dir)
		_ = r.noteConfig(h.pulled[r].dir)
		if data, err := os.ReadFile(filepath.Join(h.pulled[r].dir, "index")); err == nil {
			if why := r.indexLeak(data); why != "" {
				r.leak(KindIndex, "index", why)
			}
		}
	}
	h.worktrees(ctx)
	h.strayPacks()
	h.presentHidden(ctx)
	h.bytecode()
	h.presentCaches(ctx)
	_, _ = h.credentials(ctx)
	h.packageCopies()
}

// presentHidden reports the hidden paths that are there, and gives them with what they lead to.
func (h *hardener) presentHidden(ctx context.Context) []string {
	var there []string
	for _, hidden := range h.task.Hidden {
		info, err := h.box.Stat(ctx, hidden)
		if errors.Is(err, fs.ErrNotExist) {
			if _, listed := h.survey.names[hidden]; !listed { // a link that leads nowhere is listed
				continue
			}
		}
		h.leak(KindHidden, hidden, "is there, and the task hides it")
		there = append(there, hidden)
		if err == nil && info.Real != "" && info.Real != hidden && !within(info.Real, hidden) {
			there = append(there, info.Real)
		}
	}
	return there
}

func (h *hardener) dropHidden(ctx context.Context) error {
	if err := h.remove(ctx, h.presentHidden(ctx)...); err != nil {
		return fmt.Errorf("hidden path: %w", err)
	}
	return nil
}
