package tasks

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"strconv"
	"strings"

	"proctor/tasks/gitobj"
	"proctor/tasks/harden"
)

// Bounds of what one question reads from a sandbox.
const (
	maxRefRead    = 4 << 10
	maxPackedRead = 8 << 20
	maxLogRead    = 4 << 20
	maxLooseRead  = 32 << 20 // bytes of a loose object, compressed
	maxPullRead   = 64 << 20 // bytes of a folder
	maxPullFiles  = 20000
	maxSymbolic   = 5
)

// query is one question about a revision: the repository that it is asked in, and what has been read
// of it so far.
type query struct {
	facts  *Facts
	ctx    context.Context
	repo   *harden.Repo // what the host knows of it; nil for one that the agent made
	gitDir string       // "" where dir lies in no repository
	common string       // gitDir, or what a linked worktree shares
	packed map[string]gitobj.ID
}

// ask finds the repository that holds dir, as git does: .git in dir or above it.
func (f *Facts) ask(ctx context.Context, dir string) *query {
	q := &query{facts: f, ctx: ctx}
	if !path.IsAbs(dir) {
		dir = f.prepared.Task.Workdir
	}
	for d := path.Clean(dir); ; d = path.Dir(d) {
		info, err := f.files.Stat(ctx, path.Join(d, ".git"))
		if err == nil {
			q.enter(d, info.Mode.IsDir(), info.Real)
			return q
		}
		if q.known(d) { // the repository itself: a bare one, or inside of .git
			q.gitDir, q.common = d, d
			return q
		}
		if d == "/" || ctx.Err() != nil {
			return q
		}
	}
}

func (q *query) known(gitDir string) bool {
	for _, r := range q.facts.prepared.record.Repos {
		if r.GitDir == gitDir {
			q.repo = r
			return true
		}
	}
	return false
}

// enter takes up the repository of the work tree d. A .git file leads to the git directory, and that
// of a linked worktree to what it shares.
func (q *query) enter(d string, isDir bool, real string) {
	q.gitDir = path.Join(d, ".git")
	if isDir && path.IsAbs(real) {
		q.gitDir = real
	}
	if !isDir {
		if target, ok := strings.CutPrefix(q.text(q.gitDir), "gitdir:"); ok {
			q.gitDir = absoluteFrom(d, strings.TrimSpace(target))
		}
	}
	q.common = q.gitDir
	if shared := q.text(path.Join(q.gitDir, "commondir")); shared != "" {
		q.common = absoluteFrom(q.gitDir, shared)
	}
	q.known(q.common)
}

func absoluteFrom(dir, name string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(dir, name)
}

// text reads a small file; "" where there is none.
func (q *query) text(name string) string {
	data, err := q.facts.files.ReadFile(q.ctx, name, maxRefRead)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// ref gives what a name points to in the sandbox as it is now.
func (q *query) ref(name string) (gitobj.ID, bool) {
	if q.gitDir == "" || !gitobj.ValidRefName(name) {
		return gitobj.Zero, false
	}
	for _, place := range refPlaces {
		if place == "" && !strings.HasPrefix(name, "refs/") && strings.ToUpper(name) != name {
			continue // main is not .git/main, description, config
		}
		if id, ok := q.full(place+name, 0); ok {
			return id, true
		}
	}
	return q.full("refs/remotes/"+name+"/HEAD", 0)
}

// full gives what a full name points to, symbolic refs followed.
func (q *query) full(name string, depth int) (gitobj.ID, bool) {
	if depth > maxSymbolic || !gitobj.ValidRefName(name) {
		return gitobj.Zero, false
	}
	dir := q.common
	if !strings.HasPrefix(name, "refs/") {
		dir = q.gitDir
	}
	if data, err := q.facts.files.ReadFile(q.ctx, path.Join(dir, name), maxRefRead); err == nil {
		id, target, err := gitobj.ParseRefFile(data)
		if err != nil {
			return gitobj.Zero, false
		}
		if target != "" {
			return q.full(target, depth+1)
		}
		return id, true
	}
	id, ok := q.packedRefs()[name]
	return id, ok
}

func (q *query) packedRefs() map[string]gitobj.ID {
	if q.packed == nil {
		q.packed = map[string]gitobj.ID{}
		if data, err := q.facts.files.ReadFile(q.ctx, path.Join(q.common, "packed-refs"), maxPackedRead); err == nil {
			if refs, err := gitobj.ParsePackedRefs(data); err == nil {
				q.packed = refs
			}
		}
	}
	return q.packed
}

// loose reads a loose object.
func (q *query) loose(id gitobj.ID) (gitobj.Type, []byte, bool) {
	digits := id.String()
	data, err := q.facts.files.ReadFile(q.ctx, path.Join(q.common, "objects", digits[:2], digits[2:]), maxLooseRead)
	if q.common == "" || err != nil {
		return 0, nil, false
	}
	kind, content, err := gitobj.ReadLoose(bytes.NewReader(data), maxLooseRead)
	if err != nil || gitobj.Hash(kind, content) != id {
		return 0, nil, false
	}
	return kind, content, true
}

// there reports whether an object is in the sandbox: loose, or in a pack.
func (q *query) there(id gitobj.ID) bool {
	if q.common == "" {
		return false
	}
	digits := id.String()
	if _, err := q.facts.files.Stat(q.ctx, path.Join(q.common, "objects", digits[:2], digits[2:])); err == nil {
		return true
	}
	return q.inPacks(digits) != gitobj.Zero
}

// loosePrefix finds an object of the sandbox by the beginning of its id.
func (q *query) loosePrefix(digits string) (gitobj.ID, bool) {
	if q.common == "" {
		return gitobj.Zero, false
	}
	var found gitobj.ID
	_ = q.pull(path.Join(q.common, "objects", digits[:2]), func(name string, _ []byte) {
		if id, ok := gitobj.ParseID(digits[:2] + name); ok && strings.HasPrefix(id.String(), digits) {
			found = id
		}
	})
	if found == gitobj.Zero {
		found = q.inPacks(digits)
	}
	return found, found != gitobj.Zero
}

// inPacks finds an object by the beginning of its id in the indexes of the sandbox's packs: the
// agent's own work, after git gc. Large repositories are not read for it.
func (q *query) inPacks(digits string) gitobj.ID {
	var found gitobj.ID
	if m := q.facts.prepared.record.Manifest; m != nil && m.Large(q.common) {
		return found
	}
	_ = q.pull(path.Join(q.common, "objects/pack"), func(name string, data []byte) {
		if strings.HasSuffix(name, ".idx") && found == gitobj.Zero {
			found, _ = gitobj.FindInIndex(data, digits)
		}
	})
	return found
}

var errTooMuch = errors.New("too much to read")

// pull reads a folder of the sandbox, bounded, and calls each with names below it. Of packs only the
// names come.
func (q *query) pull(dir string, each func(name string, data []byte)) error {
	stream, err := q.facts.files.Pull(q.ctx, dir)
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	in := tar.NewReader(io.LimitReader(stream, maxPullRead))
	for range maxPullFiles {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		_, name, ok := strings.Cut(path.Clean(h.Name), "/")
		if !ok || h.Typeflag != tar.TypeReg {
			continue
		}
		var data []byte
		if !strings.HasSuffix(name, ".pack") {
			if data, err = io.ReadAll(in); err != nil {
				return err
			}
		}
		each(name, data)
	}
	return errTooMuch
}

// option answers for an option that selects refs.
func (q *query) option(text string) string {
	name, value, _ := strings.Cut(text, "=")
	switch name {
	case "--all":
		return worse(q.refsUnder("refs/", true), q.single("HEAD"))
	case "--branches":
		return q.refsUnder("refs/heads/", false)
	case "--tags":
		return q.refsUnder("refs/tags/", false)
	case "--remotes":
		return q.refsUnder("refs/remotes/", false)
	case "--glob":
		place := strings.SplitN("refs/"+strings.TrimPrefix(value, "refs/"), "*", 2)[0]
		return q.refsUnder(place[:strings.LastIndexByte(place, '/')+1], true)
	case "--reflog", "-g", "--walk-reflogs":
		return q.allReflogs()
	}
	return RefUnknown
}

// refsUnder gives the worst of the refs below a place; ancestor where there are none, since then
// nothing is shown.
func (q *query) refsUnder(place string, stash bool) string {
	worst := RefAncestor
	if q.gitDir == "" {
		return RefUnknown
	}
	seen := map[gitobj.ID]bool{}
	look := func(name string, id gitobj.ID) {
		if strings.HasPrefix(name, place) && !seen[id] && id != gitobj.Zero && (stash || name != "refs/stash") {
			seen[id] = true
			worst = worse(worst, q.object(id).standing)
		}
	}
	for name, id := range q.packedRefs() {
		look(name, id)
	}
	loose := map[string]gitobj.ID{}
	err := q.pull(path.Join(q.common, "refs"), func(name string, data []byte) {
		if id, target, err := gitobj.ParseRefFile(data); err == nil && target == "" {
			loose["refs/"+name] = id
		}
	})
	for name, id := range loose {
		look(name, id)
	}
	if err != nil {
		worst = worse(worst, RefUnknown)
	}
	return worst
}

// allReflogs gives the worst that any reflog names.
func (q *query) allReflogs() string {
	if q.gitDir == "" {
		return RefUnknown
	}
	worst := RefAncestor
	seen := map[gitobj.ID]bool{}
	_ = q.pull(path.Join(q.common, "logs"), func(_ string, data []byte) {
		worst = worse(worst, q.worstOf(data, seen))
	})
	return worst
}

func (q *query) worstOf(log []byte, seen map[gitobj.ID]bool) string {
	entries, err := gitobj.ParseReflog(log)
	if err != nil {
		return RefUnknown
	}
	worst := RefAncestor
	for _, e := range entries {
		for _, id := range []gitobj.ID{e.Old, e.New} {
			if id != gitobj.Zero && !seen[id] {
				seen[id] = true
				worst = worse(worst, q.object(id).standing)
			}
		}
	}
	return worst
}

// reflog answers for name@{inside}: the nth entry; a date, a branch before or an upstream by the
// worst that the log names.
func (q *query) reflog(name, inside string) point {
	if strings.HasPrefix(inside, "u") || strings.HasPrefix(inside, "push") {
		return q.name(or(q.upstream(name), "origin/HEAD"))
	}
	file := "HEAD"
	if name != "" && name != "HEAD" {
		full, ok := q.fullName(name)
		if !ok {
			if standing := q.removed(name); standing != "" {
				return point{standing: standing}
			}
			return point{standing: RefUnknown}
		}
		file = full
	}
	dir := q.common
	if file == "HEAD" {
		dir = q.gitDir
	}
	data, err := q.facts.files.ReadFile(q.ctx, path.Join(dir, "logs", file), maxLogRead)
	if q.gitDir == "" || err != nil {
		return point{standing: RefUnknown}
	}
	entries, err := gitobj.ParseReflog(data)
	if err != nil {
		return point{standing: RefUnknown}
	}
	if n, err := strconv.Atoi(inside); err == nil && n >= 0 {
		if n < len(entries) {
			return q.object(entries[len(entries)-1-n].New)
		}
		if n == len(entries) && n > 0 && entries[0].Old != gitobj.Zero {
			return q.object(entries[0].Old)
		}
		return point{standing: RefUnknown}
	}
	return point{standing: q.worstOf(data, map[gitobj.ID]bool{})}
}

// upstream guesses the remote branch of a branch: hardening removed what configuration said.
func (q *query) upstream(name string) string {
	if name == "" || name == "HEAD" {
		head := q.text(path.Join(q.gitDir, "HEAD"))
		name = strings.TrimPrefix(strings.TrimSpace(strings.TrimPrefix(head, "ref:")), "refs/heads/")
	}
	if !gitobj.ValidRefName(name) {
		return ""
	}
	return "origin/" + name
}

// fullName gives the full name that a short one stands for in the sandbox.
func (q *query) fullName(name string) (string, bool) {
	for _, place := range refPlaces[1:] {
		if _, ok := q.full(place+name, 0); ok {
			return place + name, true
		}
	}
	if strings.HasPrefix(name, "refs/") {
		_, ok := q.full(name, 0)
		return name, ok
	}
	return "", false
}
