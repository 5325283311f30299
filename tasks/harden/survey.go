package harden

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"sort"
	"strings"
)

// Bounds of one survey. The largest published images hold under a million files in the work tree.
const (
	maxNames    = 4 << 20
	maxNameSize = 4096
	maxLinkFile = 4 << 10
)

// survey is what a walk over folders of a sandbox found.
type survey struct {
	names   map[string]byte   // absolute path -> tar type
	links   map[string]string // .git files -> where they lead, absolute
	packs   []string          // files that hold packed objects: bundles and packs, wherever they lie
	gitDirs []string          // folders that git would take for a repository, sorted
	admins  []string          // folders that administer linked worktrees
}

// surveyOf walks the roots. A root that is not there is passed over.
func surveyOf(ctx context.Context, box Box, roots []string) (*survey, error) {
	s := &survey{names: map[string]byte{}, links: map[string]string{}}
	for _, root := range outermost(roots) {
		if _, err := box.Stat(ctx, root); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := s.walk(ctx, box, root); err != nil {
			return nil, fmt.Errorf("reading %s: %w", root, err)
		}
	}
	s.findGitDirs()
	return s, nil
}

// outermost drops roots that lie below others.
func outermost(roots []string) []string {
	sorted := append([]string{}, roots...)
	sort.Strings(sorted)
	var kept []string
	for _, r := range sorted {
		covered := false
		for _, k := range kept {
			covered = covered || within(r, k)
		}
		if !covered {
			kept = append(kept, r)
		}
	}
	return kept
}

// within reports whether p is dir or lies below it.
func within(p, dir string) bool {
	return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
}

func (s *survey) walk(ctx context.Context, box Box, root string) error {
	return eachEntry(ctx, box, root, func(name string, h *tar.Header, content io.Reader) error {
		if len(s.names) >= maxNames {
			return fmt.Errorf("more than %d files", maxNames)
		}
		s.names[name] = h.Typeflag
		if h.Typeflag != tar.TypeReg {
			return nil
		}
		if path.Base(name) == ".git" {
			data, err := io.ReadAll(io.LimitReader(content, maxLinkFile))
			if err != nil {
				return err
			}
			if target, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir:"); ok {
				s.links[name] = resolve(path.Dir(name), strings.TrimSpace(target))
			}
			return nil
		}
		return s.sniff(name, content)
	})
}

// sniff looks for git objects outside of repositories.
func (s *survey) sniff(name string, content io.Reader) error {
	head := make([]byte, 16)
	n, err := io.ReadFull(content, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if holdsObjects(head[:n]) {
		s.packs = append(s.packs, name)
	}
	return nil
}

// holdsObjects reports whether a file that starts so is a bundle or a pack.
func holdsObjects(head []byte) bool {
	return bytes.HasPrefix(head, []byte("# v2 git bundle")) || bytes.HasPrefix(head, []byte("# v3 git bundle")) ||
		bytes.HasPrefix(head, []byte("PACK\x00\x00\x00\x02"))
}

// isGitDir reports whether git would take a folder that holds "objects" for a repository, or would
// once git init had brought the rest back.
func isGitDir(dir string, has func(name string) bool) bool {
	return has(dir+"/HEAD") || has(dir+"/refs") && has(dir+"/config") || path.Base(dir) == ".git"
}

// resolve makes a path that a file in dir names absolute.
func resolve(dir, target string) string {
	if path.IsAbs(target) {
		return path.Clean(target)
	}
	return path.Join(dir, target)
}

// eachEntry reads a folder or file of a sandbox as a tar stream and calls each with absolute names.
// A name that leads out of root is an error.
func eachEntry(ctx context.Context, box Box, root string, each func(name string, h *tar.Header, content io.Reader) error) error {
	stream, err := box.Pull(ctx, root)
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	in := tar.NewReader(stream)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		name := path.Join(path.Dir(root), h.Name)
		if !within(name, root) || len(name) > maxNameSize || strings.ContainsRune(name, 0) {
			return fmt.Errorf("the stream holds a name outside of it: %.100q", h.Name)
		}
		if err := each(name, h, in); err != nil {
			return err
		}
	}
}

// findGitDirs takes a folder for a repository where git would (HEAD, objects, refs), and also where
// only the objects are left, since git init would bring the rest back.
func (s *survey) findGitDirs() {
	for name := range s.names {
		dir := path.Dir(name)
		switch path.Base(name) {
		case "objects":
			if isGitDir(dir, s.has) {
				s.gitDirs = append(s.gitDirs, dir)
			}
		case "commondir":
			if s.has(dir+"/HEAD") && s.has(dir+"/gitdir") {
				s.admins = append(s.admins, dir)
			}
		}
	}
	sort.Strings(s.gitDirs)
	sort.Strings(s.admins)
	sort.Strings(s.packs)
}

func (s *survey) has(name string) bool {
	_, ok := s.names[name]
	return ok
}

// gitDirOver gives the innermost repository that a name lies in, "" where none.
func (s *survey) gitDirOver(name string) string {
	best := ""
	for _, d := range s.gitDirs {
		if within(name, d) && len(d) > len(best) {
			best = d
		}
	}
	return best
}

// below gives the names under dir, sorted.
func (s *survey) below(dir string) []string {
	var names []string
	for name := range s.names {
		if name != dir && within(name, dir) {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}
