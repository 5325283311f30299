package grading

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"proctor/sandbox"
	"proctor/tasks"
)

// fromImage gives the hidden files that the task's raw image holds, read from a sandbox of it in which
// nothing was run.
func (g *grading) fromImage(ctx context.Context) (_ []member, err error) {
	wanted := g.subject.Task.Grader.FromImage
	if len(wanted) == 0 {
		return nil, nil
	}
	if g.subject.Raw == "" {
		return nil, fmt.Errorf("%w: grader.from_image: the task's raw image is not known here", errTask)
	}
	subject := g.subject
	subject.Image = subject.Raw
	spec := graderSpec(subject)
	session, err := g.engine.Create(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("sandbox of the raw image: %w", err)
	}
	defer func() { err = errors.Join(err, session.Close(context.WithoutCancel(ctx))) }()
	var members []member
	for _, w := range wanted {
		found, err := pullMembers(ctx, session, w)
		if err != nil {
			return nil, fmt.Errorf("%w: grader.from_image: %s: %w", errTask, w.Path, err)
		}
		members = append(members, found...)
	}
	return members, nil
}

// pullMembers reads files and links below a path of a sandbox.
func pullMembers(ctx context.Context, session sandbox.Session, w tasks.ImageFiles) ([]member, error) {
	stream, err := session.Pull(ctx, w.Path)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	var members []member
	total := int64(0)
	for in := tar.NewReader(stream); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return members, nil
		}
		if err != nil {
			return nil, err
		}
		_, rel, _ := strings.Cut(path.Clean(h.Name), "/")
		name := path.Join(w.To, rel)
		if strings.HasPrefix(name, "../") || path.IsAbs(name) {
			return nil, fmt.Errorf("holds a name outside of it: %q", clip(h.Name, 100))
		}
		switch h.Typeflag {
		case tar.TypeSymlink:
			members = append(members, member{name: name, mode: "120000", content: []byte(h.Linkname)})
		case tar.TypeReg:
			content, err := io.ReadAll(io.LimitReader(in, maxFileBytes+1))
			if err != nil {
				return nil, err
			}
			if total += int64(len(content)); total > maxFileBytes {
				return nil, fmt.Errorf("%w: over %d MiB", ErrTooBig, maxFileBytes>>20)
			}
			mode := "100644"
			if h.Mode&0o100 != 0 {
				mode = "100755"
			}
			members = append(members, member{name: name, mode: mode, content: content})
		}
	}
}
