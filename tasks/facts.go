package tasks

import (
	"context"
	"errors"
	"io/fs"
	"path"

	"proctor/sandbox"
	"proctor/tasks/gitobj"
	"proctor/tasks/harden"
)

// Standings of a git revision, as Facts.Ref tells them.
const (
	RefAncestor = "ancestor" // of the start commit, or it
	RefOwn      = "own"      // made in this rollout
	RefForeign  = "foreign"  // neither: it was in the raw image, and is not on the way to the start commit
	RefUnknown  = "unknown"
)

// States of a path, as Facts.Path tells them.
const (
	PathAbsent  = "absent"  // was not there when the rollout started
	PathVisible = "visible" // was, and is the agent's to use
	PathHidden  = "hidden"
	PathUnknown = "unknown"
)

// Facts tells what names in a rollout's calls stand for: git revisions and paths.
//
// What decides lies on the host: which objects lead to the start commit, and which others the raw
// image held. The sandbox is only asked what a name now points to, by reading files of its git
// directory; git is never run in it. The agent can make a name point anywhere, but it cannot make an
// object that was in the raw image its own: ids are hashes.
//
// Every answer is bounded, and "unknown" rather than an error. Nothing is kept from one question to
// the next, since the agent's work lies between them, but by PerCall. Safe for concurrent use.
type Facts struct {
	prepared *Prepared
	files    files
}

// Facts gives the facts of one rollout.
func (pr *Prepared) Facts(sess sandbox.Session) *Facts { return &Facts{prepared: pr, files: sess} }

// PerCall gives the same facts for the questions about one call, before which nothing of the agent's runs: each file of
// the sandbox is asked for once.
func (f *Facts) PerCall() *Facts { return &Facts{prepared: f.prepared, files: newSeen(f.files)} }

// Path says what an absolute path is to the agent: absent, visible, hidden or unknown. A path is
// hidden where it, or what it leads to, is one of the task's hidden paths or lies below one, whether
// or not it is still there.
func (f *Facts) Path(ctx context.Context, name string) string {
	if !path.IsAbs(name) || len(name) > maxFactPath {
		return PathUnknown
	}
	name = path.Clean(name)
	if f.hidden(name) {
		return PathHidden
	}
	real := f.Real(ctx, name)
	if f.hidden(real) {
		return PathHidden
	}
	rec := f.prepared.record
	if rec.atStart(name) || rec.atStart(real) {
		return PathVisible
	}
	if f.covered(real) {
		return PathAbsent
	}
	_, err := f.files.Stat(ctx, name)
	switch {
	case err == nil:
		return PathVisible
	case errors.Is(err, fs.ErrNotExist):
		return PathAbsent
	}
	return PathUnknown
}

// maxFactPath bounds a path that is asked about, in bytes: Linux's own bound.
const maxFactPath = 4096

func (f *Facts) hidden(name string) bool {
	for _, h := range f.prepared.Task.HiddenPaths {
		if within(name, h) {
			return true
		}
	}
	return false
}

// covered reports whether the host has a list of the files that were there at the start.
func (f *Facts) covered(name string) bool {
	for _, root := range append([]string{f.prepared.Task.Workdir}, harden.Homes()...) {
		if within(name, root) {
			return true
		}
	}
	return false
}

// Real gives a path after all links, as far as it is there, or the path itself.
func (f *Facts) Real(ctx context.Context, name string) string {
	if !path.IsAbs(name) || len(name) > maxFactPath {
		return name
	}
	clean := path.Clean(name)
	rest := ""
	for dir := clean; ; dir = path.Dir(dir) {
		info, err := f.files.Stat(ctx, dir)
		if err == nil && path.IsAbs(info.Real) {
			return path.Join(info.Real, rest)
		}
		if dir == "/" || ctx.Err() != nil {
			return clean
		}
		rest = path.Join(path.Base(dir), rest)
	}
}

// Read gives at most limit bytes of a file as it now is.
func (f *Facts) Read(ctx context.Context, name string, limit int64) ([]byte, bool) {
	if !path.IsAbs(name) || len(name) > maxFactPath {
		return nil, false
	}
	data, err := f.files.ReadFile(ctx, name, limit)
	return data, err == nil
}

// standing says whose an object is by what the host knows; "" where it knows nothing of it.
func (f *Facts) standing(id gitobj.ID) string {
	foreign := false
	for _, r := range f.prepared.record.Repos {
		if r.Kept.Has(id) {
			return RefAncestor
		}
		foreign = foreign || r.Foreign.Has(id)
	}
	if foreign {
		return RefForeign
	}
	return ""
}

// badness orders standings for the worst of a set.
var badness = map[string]int{RefAncestor: 0, RefOwn: 1, RefUnknown: 2, RefForeign: 3}

func worse(a, b string) string {
	if badness[b] > badness[a] {
		return b
	}
	return a
}
