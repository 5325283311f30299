package harden

import (
	"context"
	"path"
	"sort"
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
