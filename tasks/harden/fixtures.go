package harden

import (
	"strings"

	"proctor/tasks/gitobj"
)

// findFixtures finds repositories that are themselves tracked, file by file, in the start commit of
// another: test data. They tell no more than the start commit does, and changing them would show.
func (h *hardener) findFixtures() {
	for _, repo := range h.repos {
		for _, outer := range h.repos {
			if outer == repo || outer.Tree == "" || repo.GitDir == outer.GitDir || !within(repo.GitDir, outer.Tree) || within(repo.GitDir, outer.GitDir) {
				continue
			}
			if h.allTracked(outer, repo.GitDir) {
				h.fixtures[repo.GitDir] = true
			}
		}
	}
	kept := h.repos[:0]
	for _, r := range h.repos {
		if !h.fixtures[r.GitDir] {
			kept = append(kept, r)
		}
	}
	h.repos = kept
}

func (h *hardener) allTracked(outer *Repo, dir string) bool {
	var files []string
	for _, name := range h.survey.below(dir) {
		if h.survey.names[name] != '5' { // tar.TypeDir
			files = append(files, name)
		}
	}
	return len(files) > 0 && h.tracked(outer, files...)
}

// tracked reports whether all names are files of outer's start commit.
func (h *hardener) tracked(outer *Repo, names ...string) bool {
	p, ok := h.pulled[outer]
	base, _ := gitobj.ParseID(outer.Base)
	if !ok || base == gitobj.Zero {
		return false
	}
	git, err := gitobj.Open(p.dir, p.borrowed...)
	if err != nil {
		return false
	}
	defer func() { _ = git.Close() }()
	for _, name := range names {
		rel := strings.TrimPrefix(name, outer.Tree+"/")
		if rel == name {
			return false
		}
		if _, found, err := git.Lookup(outer.Commits[base].Tree, rel); err != nil || !found {
			return false
		}
	}
	return true
}
