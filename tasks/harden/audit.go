package harden

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"proctor/tasks/gitobj"
)

// ErrLeak says that an image is not clean.
var ErrLeak = errors.New("the image is not clean")

// Audit proves that a sandbox holds nothing but what repos say, by reading every repository in it
// anew. It takes what is allowed from repos alone, and gives a manifest by which later sandboxes of
// the same image are verified cheaply. Errors wrap ErrLeak where something is there that must not be.
// gone are paths that hardening removed and that must be absent from every sandbox.
func Audit(ctx context.Context, box Box, task Task, repos []*Repo, gone []string, scratch string) (*Manifest, error) {
	roots := append([]string{task.Workdir}, homes...)
	f, err := find(ctx, box, task, roots)
	if err != nil {
		return nil, err
	}
	s, err := surveyOf(ctx, box, append(roots, f.extra...))
	if err != nil {
		return nil, err
	}
	known := map[string]*Repo{}
	for _, r := range repos {
		known[r.GitDir] = r
	}
	m := &Manifest{Absent: append(append([]string{}, task.Hidden...), gone...)}
	for i, r := range repos {
		dir := filepath.Join(scratch, fmt.Sprintf("audit%d", i))
		if err := pullDir(ctx, box, r.GitDir, dir, nil); err != nil {
			return nil, fmt.Errorf("%s: %w", r.GitDir, err)
		}
		if err := auditRepo(r, dir, known); err != nil {
			return nil, fmt.Errorf("%s: %w", r.GitDir, err)
		}
		if err := m.add(ctx, box, r.GitDir); err != nil {
			return nil, fmt.Errorf("%s: %w", r.GitDir, err)
		}
	}
	for _, hidden := range task.Hidden {
		if err := absent(ctx, box, hidden); err != nil {
			return nil, fmt.Errorf("%w: hidden path %w", ErrLeak, err)
		}
		if s.has(hidden) {
			return nil, fmt.Errorf("%w: hidden path %s is still there", ErrLeak, hidden)
		}
	}
	if err := auditSurvey(s, known, repos, scratch); err != nil {
		return nil, err
	}
	return m, auditPackages(task, f, s, repos, scratch)
}

// auditSurvey looks for repositories that nobody knows of.
func auditSurvey(s *survey, known map[string]*Repo, repos []*Repo, scratch string) error {
	h := auditor(s, repos, scratch)
	for _, d := range s.gitDirs {
		if known[d] == nil && !h.fixture(d) {
			return fmt.Errorf("%w: %s is a repository that was not hardened", ErrLeak, d)
		}
	}
	if len(s.admins) > 0 {
		return fmt.Errorf("%w: %s administers a linked worktree", ErrLeak, s.admins[0])
	}
	for _, name := range s.packs {
		if s.gitDirOver(name) == "" && !h.isTracked(name) {
			return fmt.Errorf("%w: %s holds git objects", ErrLeak, name)
		}
	}
	return nil
}

// auditor gives a hardener that only looks, over repositories that the audit has pulled.
func auditor(s *survey, repos []*Repo, scratch string) *hardener {
	h := &hardener{survey: s, repos: repos, pulled: map[*Repo]pulledRepo{}}
	for i, r := range repos {
		h.pulled[r] = pulledRepo{dir: filepath.Join(scratch, fmt.Sprintf("audit%d", i))}
	}
	return h
}

// fixture reports whether a repository is made of files that another one tracks.
func (h *hardener) fixture(dir string) bool {
	for _, r := range h.repos {
		if r.Tree != "" && within(dir, r.Tree) && h.allTracked(r, dir) {
			return true
		}
	}
	return false
}

func leaks(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrLeak}, args...)...)
}

// auditRepo checks one pulled git directory, file by file and object by object.
func auditRepo(r *Repo, dir string, known map[string]*Repo) error {
	if err := auditFiles(r, dir, known); err != nil {
		return err
	}
	git, err := gitobj.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = git.Close() }()
	for _, check := range []func(*Repo, *gitobj.Repo) error{auditRefs, auditReflogs, auditObjects, auditIndex} {
		if err := check(r, git); err != nil {
			return err
		}
	}
	return auditConfig(dir)
}

// plainFiles are the names that a git directory may hold beside refs, objects and reflogs.
var plainFiles = map[string]bool{"HEAD": true, "config": true, "config.worktree": true, "description": true, "index": true, "shallow": true,
	"packed-refs": true, "info/exclude": true, "info/sparse-checkout": true}

var objectFile = regexp.MustCompile(`^objects/([0-9a-f]{2}/[0-9a-f]{38}|pack/pack-[0-9a-f]{40}\.(pack|idx))$`)

// auditFiles allows no file whose meaning is not checked further on.
func auditFiles(r *Repo, dir string, known map[string]*Repo) error {
	return filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if known[path.Join(r.GitDir, rel)] != nil {
			return fs.SkipDir // a submodule's repository, audited by itself
		}
		if d.IsDir() || plainFiles[rel] || objectFile.MatchString(rel) ||
			strings.HasPrefix(rel, "refs/") || strings.HasPrefix(rel, "logs/") {
			return nil
		}
		return leaks("%.200q has no place in a hardened repository", rel)
	})
}

func auditRefs(r *Repo, git *gitobj.Repo) error {
	refs, err := git.Refs()
	if err != nil {
		return err
	}
	for _, ref := range refs {
		if ref.Name == "HEAD" {
			if ref.Target != r.Branch || idText(ref.ID) != r.Base {
				return leaks("HEAD is %.100s at %.12s", ref.Target, ref.ID)
			}
			continue
		}
		if r.Refs[ref.Name] != ref.ID.String() {
			return leaks("the ref %.200q names %.12s", ref.Name, ref.ID)
		}
	}
	return nil
}

func idText(id gitobj.ID) string {
	if id == gitobj.Zero {
		return ""
	}
	return id.String()
}

func auditReflogs(r *Repo, git *gitobj.Repo) error {
	logs, err := git.Reflogs()
	if err != nil {
		return err
	}
	for name, entries := range logs {
		for _, e := range entries {
			for _, id := range []gitobj.ID{e.Old, e.New} {
				if id != gitobj.Zero && !r.Kept.Has(id) {
					return leaks("the reflog of %.200q names %.12s", name, id)
				}
			}
		}
		return leaks("there is a reflog of %.200q", name)
	}
	return nil
}

// auditObjects reads every object there is, checks it against its id, and compares the set of them
// with what HEAD and the kept tags reach.
func auditObjects(r *Repo, git *gitobj.Repo) error {
	all, err := git.Objects()
	if err != nil {
		return err
	}
	for _, id := range all.IDs() {
		if !r.Kept.Has(id) {
			return leaks("object %s is not in the history of the start commit", id)
		}
	}
	shallow, err := git.Shallow()
	if err != nil {
		return err
	}
	for _, id := range shallow.IDs() {
		if !r.Kept.Has(id) {
			return leaks("shallow names %.12s", id)
		}
	}
	base, _ := gitobj.ParseID(r.Base)
	history, err := git.Reach(base, shallow) // reads and checks commits and trees
	if err != nil {
		return err
	}
	tags := 0
	for _, id := range all.IDs() {
		if _, ok := history.Objects[id]; ok {
			continue
		}
		kind, err := git.Kind(id)
		if err != nil {
			return err
		}
		if kind != gitobj.Tag {
			return leaks("object %s cannot be reached from the start commit", id)
		}
		tags++
	}
	if len(history.Objects)+tags != r.Kept.Len() {
		return fmt.Errorf("%d objects are there, where %d belong", len(history.Objects)+tags, r.Kept.Len())
	}
	return git.Check(func(id gitobj.ID) bool {
		kind := history.Objects[id]
		return kind == gitobj.Commit || kind == gitobj.Tree
	})
}

func auditIndex(r *Repo, git *gitobj.Repo) error {
	data, err := git.ReadFile("index", maxGitBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	x, err := gitobj.ParseIndex(data)
	if err != nil {
		return err
	}
	for _, e := range x.Extensions {
		if !keptExtensions[e] {
			return leaks("the index has an extension %.4q", e)
		}
	}
	for _, e := range x.Entries {
		if e.Mode != gitobj.ModeModule && !r.Kept.Has(e.ID) {
			return leaks("the index names %.12s for %.200q", e.ID, e.Name)
		}
	}
	return nil
}

func auditConfig(dir string) error {
	for _, name := range []string{"config", "config.worktree"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		settings, err := gitobj.ParseConfig(data)
		if err != nil {
			return err
		}
		for _, s := range settings {
			if !keptSettings[s.Name()] || s.Subsection != "" {
				return leaks("%s sets %s.%s", name, s.Section, s.Key)
			}
		}
	}
	return nil
}
