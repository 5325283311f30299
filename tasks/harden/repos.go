package harden

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"sort"
	"strings"
)

// brokenRepo is a repository that could not be read.
type brokenRepo struct {
	gitDir string
	err    error
}

type pulledRepo struct {
	dir      string
	borrowed []string
	uid, gid int
}

// repoOver gives the git directory of the repository that the workdir lies in, where it is not at
// the workdir itself.
func repoOver(ctx context.Context, box Box, workdir string) (string, error) {
	for dir := path.Dir(workdir); ; dir = path.Dir(dir) {
		_, err := box.Stat(ctx, path.Join(dir, ".git"))
		if err == nil {
			return path.Join(dir, ".git"), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if dir == "/" {
			return "", nil
		}
	}
}

// followLinks takes in the repositories that .git files lead to. A work tree that is linked from
// another repository cannot be hardened alone.
func (h *hardener) followLinks(ctx context.Context) error {
	names := make([]string, 0, len(h.survey.links))
	for name := range h.survey.links {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		target := h.survey.links[name]
		_, err := h.box.Stat(ctx, target+"/commondir")
		linked := err == nil
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if linked && within(h.task.Workdir, path.Dir(name)) {
			return fmt.Errorf("%s: the workdir is a linked worktree of %s; make it a clone of its own", path.Dir(name), target)
		}
		if linked || h.survey.has(target) {
			continue
		}
		if _, err := h.box.Stat(ctx, target); errors.Is(err, fs.ErrNotExist) {
			continue // a submodule whose repository is gone
		}
		if err := h.survey.walk(ctx, h.box, target); err != nil {
			return fmt.Errorf("reading %s, to which %s leads: %w", target, name, err)
		}
		h.survey.gitDirs, h.survey.admins = nil, nil
		h.survey.findGitDirs()
	}
	return nil
}

func (h *hardener) pullRepos(ctx context.Context) error {
	for i, gitDir := range h.survey.gitDirs {
		dir := filepath.Join(h.scratch, fmt.Sprintf("repo%d", i))
		inner := h.innerDirs(gitDir)
		err := pullDir(ctx, h.box, gitDir, dir, func(name string) bool {
			for _, d := range inner {
				if within(name, d) {
					return true
				}
			}
			return false
		})
		if err != nil {
			return fmt.Errorf("reading %s: %w", gitDir, err)
		}
		borrowed, err := h.alternates(ctx, gitDir+"/objects", filepath.Join(dir, "objects"), 0)
		if err != nil {
			return fmt.Errorf("%s: %w", gitDir, err)
		}
		if h.task.Squash && h.holdsWorkdir(gitDir) {
			if err := squash(dir, borrowed); err != nil {
				return fmt.Errorf("%s: %w", gitDir, err)
			}
		}
		repo, git, err := examine(gitDir, dir, borrowed)
		if err != nil {
			h.broken = append(h.broken, brokenRepo{gitDir, err}) // no matter where it is a fixture
			continue
		}
		if err := git.Close(); err != nil {
			return err
		}
		info, err := h.box.Stat(ctx, gitDir)
		if err != nil {
			return err
		}
		repo.Tree = h.treeOf(gitDir)
		for _, hidden := range h.task.Hidden {
			if rel, ok := strings.CutPrefix(hidden, repo.Tree+"/"); ok && repo.Tree != "" {
				repo.hidden = append(repo.hidden, rel)
			}
		}
		h.repos = append(h.repos, repo)
		h.pulled[repo] = pulledRepo{dir: dir, borrowed: borrowed, uid: info.UID, gid: info.GID}
		if len(borrowed) > 0 {
			repo.leak(KindAlternates, "", "borrows objects from "+strings.Join(h.sources(borrowed), ", "))
		}
	}
	return nil
}

// holdsWorkdir reports whether a git directory's work tree is the one that the workdir lies in.
func (h *hardener) holdsWorkdir(gitDir string) bool {
	tree := h.treeOf(gitDir)
	return tree != "" && within(h.task.Workdir, tree)
}

// innerDirs gives the repositories that lie inside a git directory: those of its submodules.
func (h *hardener) innerDirs(gitDir string) []string {
	var inner []string
	for _, d := range h.survey.gitDirs {
		if d != gitDir && within(d, gitDir) {
			inner = append(inner, d)
		}
	}
	return inner
}

// treeOf gives the work tree of a git directory: its parent, or the folder whose .git file leads to
// it.
func (h *hardener) treeOf(gitDir string) string {
	if path.Base(gitDir) == ".git" {
		return path.Dir(gitDir)
	}
	for link, target := range h.survey.links {
		if target == gitDir {
			return path.Dir(link)
		}
	}
	return ""
}
