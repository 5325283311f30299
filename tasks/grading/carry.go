package grading

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"proctor/sandbox"
)

// member is one file of a tar stream that we write into a sandbox.
type member struct {
	name    string
	mode    string // as git's: 100644, 100755, 120000
	content []byte
}

// pack writes members as a tar stream, folders first, owned by root, readable by all.
func pack(members []member) ([]byte, error) {
	sort.Slice(members, func(i, j int) bool { return members[i].name < members[j].name })
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	made := map[string]bool{".": true}
	now := time.Unix(time.Now().Unix(), 0)
	for _, m := range members {
		for _, dir := range parents(m.name) {
			if made[dir] {
				continue
			}
			made[dir] = true
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: now}); err != nil {
				return nil, err
			}
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: m.name, Mode: 0o644, Size: int64(len(m.content)), ModTime: now}
		switch m.mode {
		case "100755":
			header.Mode = 0o755
		case "120000":
			header.Typeflag, header.Linkname, header.Size = tar.TypeSymlink, string(m.content), 0
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if header.Typeflag == tar.TypeReg {
			if _, err := w.Write(m.content); err != nil {
				return nil, err
			}
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// parents gives the folders above name, from the top.
func parents(name string) []string {
	var dirs []string
	for dir := path.Dir(name); dir != "." && dir != "/"; dir = path.Dir(dir) {
		dirs = append([]string{dir}, dirs...)
	}
	return dirs
}

// carry makes the working folder of a fresh sandbox, which holds base, hold files: what differs is
// removed first, so that a folder can take a file's place, and then pushed.
func carry(ctx context.Context, r *repo, session sandbox.Session, workdir string, base, files listing, notes *noteList) error {
	var gone []string
	for name := range base {
		if files[name] != base[name] {
			gone = append(gone, name)
		}
	}
	if err := remove(ctx, session, workdir, gone); err != nil {
		return err
	}
	var members []member
	total := int64(0)
	for name, e := range files {
		if base[name] == e {
			continue
		}
		if e.mode == "160000" {
			notes.add("left out %q: a submodule", name)
			continue
		}
		if !holdsName(name) {
			return fmt.Errorf("%w: no file system holds the name %q", errPatch, clip(name, 100))
		}
		content, err := r.blob(ctx, e.hash, maxFileBytes)
		if err != nil {
			return err
		}
		if total += int64(len(content)); total > maxFileBytes {
			return fmt.Errorf("%w: what it changes is over %d MiB", ErrTooBig, maxFileBytes>>20)
		}
		members = append(members, member{name: name, mode: e.mode, content: content})
	}
	return push(ctx, session, workdir, members)
}

// holdsName reports whether Linux's file systems can hold a path: 255 bytes a part, 4096 in all.
func holdsName(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if len(part) > 255 {
			return false
		}
	}
	return len(name) < 3500 // beside the working folder's own
}

// removeAtOnce bounds the argument list of one rm.
const removeAtOnce = 500

// remove removes files and links of the working folder, and folders that this leaves empty.
func remove(ctx context.Context, session sandbox.Session, workdir string, names []string) error {
	sort.Strings(names)
	for len(names) > 0 {
		n := min(removeAtOnce, len(names))
		argv := []string{"rm", "-rf", "--"}
		for _, name := range names[:n] {
			argv = append(argv, path.Join(workdir, name))
		}
		if err := must(ctx, session, argv); err != nil {
			return err
		}
		argv = []string{"rmdir", "-p", "--ignore-fail-on-non-empty", "--"}
		seen := map[string]bool{}
		for _, name := range names[:n] {
			if dir := path.Dir(name); dir != "." && !seen[dir] {
				seen[dir] = true
				argv = append(argv, dir)
			}
		}
		if len(seen) > 0 {
			// An image without GNU rmdir keeps its empty folders: harmless.
			_, _ = session.Exec(ctx, sandbox.Exec{Argv: argv, Dir: workdir, User: "root", Timeout: time.Minute})
		}
		names = names[n:]
	}
	return nil
}

// errExit: a program that we ran in a grader's sandbox ended with a status other than 0.
var errExit = errors.New("a step in the grader's sandbox failed")

// must runs an argv of ours as root; a status other than 0 is an error.
func must(ctx context.Context, session sandbox.Session, argv []string) error {
	res, err := session.Exec(ctx, sandbox.Exec{Argv: argv, Dir: "/", User: "root", Timeout: 2 * time.Minute})
	if err != nil {
		return err
	}
	if res.Exit == nil || *res.Exit != 0 {
		return fmt.Errorf("%w: %s: %s", errExit, argv[0], clip(string(res.Stderr), 300))
	}
	return nil
}

// push writes members under dir.
func push(ctx context.Context, session sandbox.Session, dir string, members []member) error {
	if len(members) == 0 {
		return nil
	}
	data, err := pack(members)
	if err != nil {
		return err
	}
	return session.Push(ctx, dir, bytes.NewReader(data))
}

// hostFiles reads the folder of hidden tests on the host. It was written by the task's author: links
// out of it are refused, and that is all.
func hostFiles(dir string) ([]member, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var members []member
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		m := member{name: filepath.ToSlash(name), mode: "100644"}
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := root.Readlink(name)
			if err != nil {
				return err
			}
			m.mode, m.content = "120000", []byte(target)
		case info.Mode().IsRegular():
			if info.Mode()&0o111 != 0 {
				m.mode = "100755"
			}
			f, err := root.Open(name)
			if err != nil {
				return err
			}
			defer f.Close()
			if m.content, err = io.ReadAll(io.LimitReader(f, maxFileBytes)); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%s is neither file, folder nor link", name)
		}
		members = append(members, m)
		return nil
	})
	return members, err
}

func names(members []member) []string {
	list := make([]string, 0, len(members))
	for _, m := range members {
		if !strings.HasSuffix(m.name, ".pyc") {
			list = append(list, m.name)
		}
	}
	return list
}
