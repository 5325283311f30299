package harden

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"proctor/tasks/gitobj"
)

// rebuild writes the scrubbed git directory into the new folder out.
func (r *Repo) rebuild(git *gitobj.Repo, from, out string) error {
	for _, dir := range []string{"objects/pack", "objects/info", "refs/heads", "refs/tags", "info"} {
		if err := os.MkdirAll(filepath.Join(out, dir), 0o700); err != nil {
			return err
		}
	}
	if _, err := git.WritePack(filepath.Join(out, "objects/pack"), r.want); err != nil {
		return err
	}
	if err := r.writeRefs(git, out); err != nil {
		return err
	}
	if err := r.writeConfig(from, out); err != nil {
		return err
	}
	if err := r.writeShallow(git, out); err != nil {
		return err
	}
	if err := r.writeIndex(git, from, out); err != nil {
		return err
	}
	if err := r.writeExclude(from, out); err != nil {
		return err
	}
	for _, name := range []string{"description", "info/sparse-checkout"} {
		err := copyTo(filepath.Join(from, name), filepath.Join(out, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	r.leakFiles(from)
	return nil
}

// writeExclude keeps the patterns of files that git passes over, but not those that name a hidden
// path: the path is gone, and its name would be a hint.
func (r *Repo) writeExclude(from, out string) error {
	data, err := os.ReadFile(filepath.Join(from, "info/exclude"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var kept []string
	for _, line := range strings.SplitAfter(string(data), "\n") {
		pattern := strings.Trim(strings.TrimSpace(line), "/*!")
		if pattern != "" && r.namesHidden(pattern) {
			r.leak(KindHidden, "info/exclude", fmt.Sprintf("info/exclude names the hidden path %.100q", pattern))
			continue
		}
		kept = append(kept, line)
	}
	return os.WriteFile(filepath.Join(out, "info/exclude"), []byte(strings.Join(kept, "")), 0o600)
}

func (r *Repo) namesHidden(pattern string) bool {
	for _, h := range r.hidden {
		if within(pattern, h) || filepath.Base(h) == pattern {
			return true
		}
	}
	return false
}

func (r *Repo) writeRefs(git *gitobj.Repo, out string) error {
	head := r.Base + "\n"
	if r.Branch != "" {
		head = "ref: " + r.Branch + "\n"
	}
	if err := os.WriteFile(filepath.Join(out, "HEAD"), []byte(head), 0o600); err != nil {
		return err
	}
	if r.Branch != "" && r.Base != "" {
		if !strings.HasPrefix(r.Branch, "refs/heads/") || !gitobj.ValidRefName(r.Branch) {
			return fmt.Errorf("HEAD is on %.100q, which is not a branch", r.Branch)
		}
		file := filepath.Join(out, filepath.FromSlash(r.Branch))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(r.Base+"\n"), 0o600); err != nil {
			return err
		}
	}
	return r.writePackedTags(git, out)
}

func (r *Repo) writePackedTags(git *gitobj.Repo, out string) error {
	var names []string
	for name := range r.Refs {
		if name != r.Branch {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	sort.Strings(names)
	var b bytes.Buffer
	b.WriteString("# pack-refs with: peeled fully-peeled sorted \n")
	for _, name := range names {
		id, _ := gitobj.ParseID(r.Refs[name])
		target, _, tags, _, err := git.Peel(id)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %s\n", id, name)
		if len(tags) > 0 {
			fmt.Fprintf(&b, "^%s\n", target)
		}
	}
	return os.WriteFile(filepath.Join(out, "packed-refs"), b.Bytes(), 0o600)
}

func (r *Repo) writeShallow(git *gitobj.Repo, out string) error {
	shallow, err := git.Shallow()
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, id := range shallow.IDs() {
		if _, ok := r.Commits[id]; ok {
			b.WriteString(id.String() + "\n")
		}
	}
	if b.Len() == 0 {
		return nil
	}
	return os.WriteFile(filepath.Join(out, "shallow"), []byte(b.String()), 0o600)
}

// writeIndex keeps the index where all that it names stays, and makes a fresh one else: what was
// staged is then an unstaged change, and the work tree is as it was.
func (r *Repo) writeIndex(git *gitobj.Repo, from, out string) error {
	name := filepath.Join(from, "index")
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if why := r.indexLeak(data); why != "" {
		r.leak(KindIndex, "index", why)
		fresh, err := git.FreshIndex(r.Commits[r.base].Tree)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(out, "index"), fresh, 0o600)
	}
	return copyTo(name, filepath.Join(out, "index"))
}

// keptExtensions of an index name nothing beyond the entries: the cached trees, offset tables, and
// what was last seen of untracked files.
var keptExtensions = map[string]bool{"TREE": true, "EOIE": true, "IEOT": true, "UNTR": true}

func (r *Repo) indexLeak(data []byte) string {
	x, err := gitobj.ParseIndex(data)
	if err != nil {
		return "the index cannot be read: " + err.Error()
	}
	for _, e := range x.Extensions {
		if !keptExtensions[e] {
			return fmt.Sprintf("the index has an extension %.4q", e)
		}
	}
	for _, e := range x.Entries {
		if _, ok := r.want[e.ID]; !ok && e.Mode != gitobj.ModeModule {
			return fmt.Sprintf("the index names %.12s for %.100q, which is not in the history of the start commit", e.ID, e.Name)
		}
	}
	return ""
}

func copyTo(from, to string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file", filepath.Base(from))
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = copyFile(out, from)
	if closeErr := out.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Chtimes(to, info.ModTime(), info.ModTime())
	}
	return err
}

func copyFile(out io.Writer, from string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	_, err = io.Copy(out, f)
	return err
}
