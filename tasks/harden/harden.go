package harden

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"

	"proctor/tasks/gitobj"
)

// Task is what hardening needs to know of a task.
type Task struct {
	Workdir string   // clean and absolute
	Hidden  []string // clean and absolute
	Solved  []string // files that the solution writes, relative to Workdir: their bytecode goes

	// For copies of the task's package outside of its repository; see copies.go. All may be empty.
	Package     string // as package indexes have it
	BaseVersion string // of the start commit: a release or a series
	FixVersion  string // the first release with the fix
	Fix         string // the solution, where it is a patch

	Squash bool // the history goes too
}

// Outcome is what hardening, or a look without it, found.
type Outcome struct {
	Repos []*Repo         // what the host keeps of each repository that is left
	Leaks []Leak          // what was there, in order of path
	Names map[string]byte // files at the start, absolute, under the roots that were read
	Gone  []string        // copies of the package that were removed: they must stay away
}

// Main gives the repository that holds the workdir; nil where none does.
func (o *Outcome) Main() *Repo { return mainRepo(o.Repos) }

// homes are folders beside the workdir that builds leave things in.
var homes = []string{"/root", "/home", "/tmp", "/var/tmp"}

type hardener struct {
	box      Box
	task     Task
	scratch  string
	survey   *survey
	finder   *finder
	repos    []*Repo
	pulled   map[*Repo]pulledRepo
	borrowed map[string]string // folder of objects in the sandbox -> its copy on the host
	remote   []string          // folders of objects outside of all repositories that were found
	leaks    []Leak
	broken   []brokenRepo
	gone     map[string]bool // what was removed for good
	packages []string        // what dropPackages removed
	fixtures map[string]bool // git directories that are tracked files of another repository
}

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

// Run hardens the sandbox: when it gives no error, what would give the answer away is gone from
// the sandbox as Run saw it. The proof is Audit, in a fresh sandbox. scratch is an empty folder of
// the host for the time of the call.
func Run(ctx context.Context, box Box, task Task, scratch string) (*Outcome, error) {
	h, err := look(ctx, box, task, scratch)
	if err != nil {
		return nil, err
	}
	if err := h.hiddenInHistory(); err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context) error{h.dropCopies, h.replaceRepos, h.dropWorktrees, h.dropBorrowed, h.dropBundles,
		h.dropHidden, h.dropBytecode, h.dropCaches, h.dropCredentials, h.dropPackages} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return h.outcome(), nil
}

// Look only reads: what would Run find, and whose are the objects.
func Look(ctx context.Context, box Box, task Task, scratch string) (*Outcome, error) {
	h, err := look(ctx, box, task, scratch)
	if err != nil {
		return nil, err
	}
	h.noteAll(ctx)
	return h.outcome(), nil
}

func look(ctx context.Context, box Box, task Task, scratch string) (*hardener, error) {
	h := &hardener{box: box, task: task, scratch: scratch, pulled: map[*Repo]pulledRepo{}, borrowed: map[string]string{}, fixtures: map[string]bool{}, gone: map[string]bool{}}
	roots := append([]string{task.Workdir}, homes...)
	over, err := repoOver(ctx, box, task.Workdir)
	if err != nil {
		return nil, err
	}
	if over != "" {
		roots = append(roots, over)
	}
	if h.finder, err = find(ctx, box, task, roots); err != nil {
		return nil, err
	}
	if h.survey, err = surveyOf(ctx, box, append(roots, h.finder.extra...)); err != nil {
		return nil, err
	}
	if err := h.followLinks(ctx); err != nil {
		return nil, err
	}
	if err := h.pullRepos(ctx); err != nil {
		return nil, err
	}
	h.findFixtures()
	for _, b := range h.broken {
		if !h.fixture(b.gitDir) {
			return nil, b.err
		}
	}
	return h, nil
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

func (h *hardener) sources(copies []string) []string {
	var names []string
	for _, c := range copies {
		for source, dir := range h.borrowed {
			if dir == c {
				names = append(names, source)
			}
		}
	}
	sort.Strings(names)
	return names
}

// maxBorrowing is how far alternates may lead from one to the next; git's own bound is 5.
const maxBorrowing = 5

// alternates pulls the folders of objects that a store borrows from, and gives their copies.
func (h *hardener) alternates(ctx context.Context, source, local string, depth int) ([]string, error) {
	data, err := os.ReadFile(filepath.Join(local, "info/alternates"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if depth >= maxBorrowing {
		return nil, errors.New("alternates lead from one to the next without end")
	}
	var copies []string
	for _, line := range strings.Split(string(data), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		target := resolve(source, line)
		dir, known := h.borrowed[target]
		if !known {
			if dir, err = h.borrow(ctx, target); err != nil {
				return nil, err
			}
			if dir == "" {
				continue
			}
		}
		more, err := h.alternates(ctx, target, dir, depth+1)
		if err != nil {
			return nil, err
		}
		copies = append(append(copies, dir), more...)
	}
	return copies, nil
}

// borrow pulls one folder of objects; "" where it is not there, as after a move.
func (h *hardener) borrow(ctx context.Context, target string) (string, error) {
	if _, err := h.box.Stat(ctx, target); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	dir := filepath.Join(h.scratch, fmt.Sprintf("borrowed%d", len(h.borrowed)))
	if err := pullDir(ctx, h.box, target, dir, nil); err != nil {
		return "", fmt.Errorf("reading the alternate %s: %w", target, err)
	}
	h.borrowed[target] = dir
	if h.survey.gitDirOver(target) == "" {
		h.remote = append(h.remote, target)
	}
	return dir, nil
}

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

// main gives the repository that holds the workdir; nil where none does.
func (h *hardener) main() *Repo {
	var best *Repo
	for _, r := range h.repos {
		if r.Tree != "" && within(h.task.Workdir, r.Tree) && (best == nil || len(r.Tree) > len(best.Tree)) {
			best = r
		}
	}
	return best
}

func mainRepo(repos []*Repo) *Repo {
	for _, r := range repos {
		if r.Main {
			return r
		}
	}
	return nil
}

func (h *hardener) outcome() *Outcome {
	if m := h.main(); m != nil {
		m.Main = true
	}
	o := &Outcome{Leaks: h.leaks, Names: h.survey.names, Gone: h.packages}
	for _, r := range h.repos {
		o.Leaks = append(o.Leaks, r.leaks...)
		if !h.isGone(r.GitDir) {
			o.Repos = append(o.Repos, r)
		}
	}
	sort.SliceStable(o.Leaks, func(i, j int) bool { return o.Leaks[i].Path < o.Leaks[j].Path })
	for name := range o.Names {
		if h.isGone(name) {
			delete(o.Names, name)
		}
	}
	return o
}

// isGone reports whether a name was removed, by itself or with a folder above it.
func (h *hardener) isGone(name string) bool {
	for p := name; p != "/" && p != "."; p = path.Dir(p) {
		if h.gone[p] {
			return true
		}
	}
	return false
}

func (h *hardener) leak(kind, path, text string) {
	h.leaks = append(h.leaks, Leak{Kind: kind, Path: path, Text: text})
}

// Homes gives the folders beside the workdir that are read too.
func Homes() []string { return append([]string{}, homes...) }
