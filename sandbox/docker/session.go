package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"proctor/sandbox"
	"proctor/sandbox/box/link"
	"proctor/sandbox/confine"
)

// session is the host's hold on one container. Calls go over its link, files in bulk through the daemon. Safe
// for concurrent use.
type session struct {
	*link.Link
	engine *Engine
	id     string
	folder string // the run folder on the host
}

var (
	_ sandbox.Session = (*session)(nil)
	_ sandbox.Relayer = (*session)(nil)
)

func (e *Engine) newSession(id, folder string) *session {
	return &session{engine: e, id: id, folder: folder, Link: link.New(link.Options{Engine: "docker", ID: id,
		Socket: filepath.Join(folder, confine.SocketName), Machine: machine{e, id}, Dial: e.dial, Settle: settleLimit})}
}

// Pull gives a file or folder as a tar stream, from the daemon's archive of the container.
func (s *session) Pull(ctx context.Context, path string) (io.ReadCloser, error) {
	body, _, err := s.engine.cli.CopyFromContainer(ctx, s.id, path)
	if err != nil {
		return nil, s.archiveError(ctx, "pull "+path, err)
	}
	return body, nil
}

// Push unpacks a tar stream into a folder.
func (s *session) Push(ctx context.Context, dir string, tar io.Reader) error {
	err := s.engine.cli.CopyToContainer(ctx, s.id, dir, tar, container.CopyToContainerOptions{})
	return s.archiveError(ctx, "push to "+dir, err)
}

// archiveError tells a missing path from a missing container.
func (s *session) archiveError(ctx context.Context, doing string, err error) error {
	if err == nil || !errdefs.IsNotFound(err) {
		return s.engine.wrap(doing, err)
	}
	if _, gone := s.engine.inspectOurs(ctx, s.id); errors.Is(gone, sandbox.ErrGone) {
		return s.Fate(ctx)
	}
	return fmt.Errorf("docker: %s: %w", doing, fs.ErrNotExist)
}

// Detach lets go; the sandbox lives on.
func (s *session) Detach() error {
	s.engine.disks.Forget(s.id)
	return s.Link.Detach()
}

// Close removes the sandbox.
func (s *session) Close(ctx context.Context) error {
	s.engine.disks.Forget(s.id)
	if err := s.End(); err != nil {
		s.engine.log.Debug("hang up", "sandbox", s.id, "error", err)
	}
	return s.engine.remove(ctx, s.id, s.folder)
}
