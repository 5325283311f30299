package grading

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"sort"
	"strings"

	"proctor/sandbox"
)

// scan reads what a sandbox holds at and below root and tells each path that the policy cares for, with
// its content where it has one. Hostile input: names lead nowhere on the host, counts and sizes are bounded.
func (p statePolicy) scan(ctx context.Context, session sandbox.Session, root string, tell func(name string, h *tar.Header, f found, content []byte) error) error {
	stream, err := session.Pull(ctx, "/"+root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer stream.Close()
	parent := path.Dir(root)
	sums := map[string]found{} // for hard links
	total := int64(0)
	for in, n := tar.NewReader(stream), 0; ; n++ {
		h, err := in.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%w: %w", errTar, err)
		case n > maxFiles*2:
			return fmt.Errorf("%w: over %d files in /%s", ErrTooBig, maxFiles*2, root)
		}
		name := path.Join(parent, path.Clean("/" + h.Name)[1:])
		if p.of(name) == kept && !p.leads(name) && name != "etc/passwd" && !(h.Typeflag == tar.TypeSymlink && isMetadata(name)) {
			continue
		}
		f := found{kind: h.Typeflag, mode: h.Mode & 0o7777, uid: h.Uid, gid: h.Gid, link: h.Linkname}
		var content []byte
		switch h.Typeflag {
		case tar.TypeReg:
			if total += h.Size; h.Size > maxFileBytes || total > 4*maxTreeBytes {
				return fmt.Errorf("%w: /%s", ErrTooBig, name)
			}
			if content, err = io.ReadAll(in); err != nil {
				return fmt.Errorf("%w: %w", errTar, err)
			}
			f.sum = sha256.Sum256(content)
			sums[name] = f
			if decides(name) && len(content) < 1<<20 {
				f.text = content
			}
		case tar.TypeLink: // to a file of the same archive: alike where that is
			target := path.Join(parent, path.Clean("/" + h.Linkname)[1:])
			f.kind, f.link, f.sum = tar.TypeReg, "", sums[target].sum
			sums[name] = f
		}
		if err := tell(name, h, f, content); err != nil {
			return err
		}
	}
}

// listed reads all that the policy cares for.
func (p statePolicy) listed(ctx context.Context, session sandbox.Session) (map[string]found, error) {
	all := map[string]found{}
	for _, root := range p.roots() {
		err := p.scan(ctx, session, root, func(name string, _ *tar.Header, f found, _ []byte) error {
			if len(all) > maxFiles*2 {
				return fmt.Errorf("%w: over %d files", ErrTooBig, maxFiles*2)
			}
			all[name] = f
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// errForged: the state holds what no honest work leaves, and nothing may be run beside it.
var errForged = errors.New("the state steers the grader")

// reset puts what steers a verifier back as the task's image has it: image is a sandbox of that, in which
// nothing was run, and state one of what the agent left.
func (p statePolicy) reset(ctx context.Context, image, state sandbox.Session, notes *noteList) error {
	now, err := p.listed(ctx, state)
	if err != nil {
		return fmt.Errorf("what the agent left: %w", err)
	}
	before, err := p.putBack(ctx, image, state, now, notes)
	if err != nil {
		return err
	}
	known := p.shadowed(before)
	var gone []string
	led := map[string]string{}
	for name, f := range now {
		if _, ok := before[name]; ok || name == "etc/passwd" {
			continue
		}
		why, forged := "", name == "etc/ld.so.preload"
		switch {
		case p.of(name) == whole:
			why = "runs before or beside the verifier"
		case (p.leads(name) || isMetadata(name)) && f.kind == tar.TypeSymlink:
			why = "leads elsewhere what steers a verifier"
		case p.of(name) == system:
			why, forged = p.hook(name, f, known)
		}
		switch {
		case forged:
			return fmt.Errorf("%w: /%s: %s", errForged, name, why)
		case why != "":
			gone = append(gone, name)
			notes.add("took out /%s: %s", name, why)
		case strings.HasSuffix(name, ".pth"):
			for _, dir := range ledTo(name, f) {
				led[dir] = name
			}
		}
	}
	if err := p.takeOut(ctx, state, gone, before); err != nil {
		return err
	}
	return p.clearLed(ctx, image, state, led, before, notes)
}

// putBack pushes the image's files that differ, and gives all that the policy cares for of the image.
// Loader and libraries come first into being this way: no program of the state runs before.
func (p statePolicy) putBack(ctx context.Context, image, state sandbox.Session, now map[string]found, notes *noteList) (map[string]found, error) {
	before := map[string]found{}
	reader, writer := io.Pipe()
	out := tar.NewWriter(writer)
	written := make(chan error, 1)
	go func() {
		err := p.differing(ctx, image, now, before, out, notes)
		if err == nil {
			// An engine that has read the archive's end may hang up before it has read ours.
			if err = out.Close(); errors.Is(err, io.ErrClosedPipe) {
				err = nil
			}
		}
		writer.CloseWithError(err)
		written <- err
	}()
	pushed := state.Push(ctx, "/", reader)
	reader.CloseWithError(errors.Join(pushed, io.ErrClosedPipe))
	err := <-written
	switch {
	case errors.Is(err, errForged) || errors.Is(err, ErrTooBig):
		return nil, err
	case pushed != nil:
		return nil, fmt.Errorf("putting the image's files back: %w", pushed)
	}
	return before, err
}

// differing writes the image's files that are not as they were.
func (p statePolicy) differing(ctx context.Context, image sandbox.Session, now, before map[string]found, out *tar.Writer, notes *noteList) error {
	for _, root := range p.roots() {
		err := p.scan(ctx, image, root, func(name string, h *tar.Header, f found, content []byte) error {
			before[name] = f
			got, there := now[name]
			if name == "etc/passwd" {
				return p.sameUsers(got, f)
			}
			if p.of(name) == kept { // on the way to what is guarded: what matters is that it leads there
				if there && (got.kind != f.kind || got.link != f.link) {
					return fmt.Errorf("%w: /%s leads elsewhere", errForged, name)
				}
				return nil
			}
			if there && got.same(f) {
				return nil
			}
			if there && (got.kind == tarDir) != (f.kind == tarDir) {
				return fmt.Errorf("%w: /%s is no longer what it was: a folder, or a file", errForged, name)
			}
			notes.add("restored /%s", name)
			return write(out, name, h, content)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// write puts a member of another archive under its path from the root.
func write(out *tar.Writer, name string, h *tar.Header, content []byte) error {
	header := *h
	header.Name = name
	header.Format = tar.FormatUnknown
	switch {
	case h.Typeflag == tar.TypeDir:
		header.Name += "/"
	case h.Typeflag == tar.TypeLink:
		root := strings.TrimSuffix(name, path.Clean("/" + h.Name)[1:])
		header.Linkname = path.Join(root, path.Clean("/" + h.Linkname)[1:])
	}
	if err := out.WriteHeader(&header); err != nil {
		return err
	}
	_, err := out.Write(content)
	return err
}

// takeOut removes paths by the image's own rm, which is back in its place.
func (p statePolicy) takeOut(ctx context.Context, state sandbox.Session, gone []string, image map[string]found) error {
	if len(gone) == 0 {
		return nil
	}
	rm := ""
	for _, place := range []string{"usr/bin/rm", "bin/rm"} {
		if _, ok := image[place]; ok {
			rm = "/" + place
		}
	}
	if rm == "" {
		return fmt.Errorf("%w: the image has no rm to take out /%s", errTask, gone[0])
	}
	sort.Strings(gone)
	for len(gone) > 0 {
		n := min(len(gone), removeAtOnce)
		argv := []string{rm, "-rf", "--"}
		for _, name := range gone[:n] {
			argv = append(argv, "/"+name)
		}
		if err := must(ctx, state, argv); err != nil {
			return err
		}
		gone = gone[n:]
	}
	return nil
}
