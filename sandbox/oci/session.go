package oci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"proctor/sandbox"
	"proctor/sandbox/box/link"
	"proctor/sandbox/confine"
	"proctor/sandbox/oci/tree"
)

// session is the host's hold on one sandbox. Calls go over its link; files in bulk are read and written by the host in
// the sandbox's root, looked up so that nothing in it leads outside. Safe for concurrent use.
type session struct {
	*link.Link
	engine *Engine
	id     string
}

var (
	_ sandbox.Session = (*session)(nil)
	_ sandbox.Local   = (*session)(nil)
)

func (e *Engine) newSession(s state) *session {
	return &session{engine: e, id: s.ID, Link: link.New(link.Options{
		Engine: "oci", ID: s.ID, Socket: filepath.Join(s.Folder, confine.SocketName), Machine: machine{e, s.ID}})}
}

// InitPID gives the agent's pid on this host.
func (s *session) InitPID(ctx context.Context) (int, error) {
	found, err := s.engine.load(s.id)
	if err != nil {
		return 0, err
	}
	if found.Runtime == "runsc" {
		return 0, sandbox.ErrUnavailable
	}
	if err := s.Fate(ctx); err != nil {
		return 0, err
	}
	return found.PID, nil
}

// Pull gives a file or folder as a tar stream. What is mounted inside, such as /dev/shm, is not in it.
func (s *session) Pull(ctx context.Context, path string) (io.ReadCloser, error) {
	root, err := s.files()
	if err != nil {
		return nil, err
	}
	if err := root.Exists(path); err != nil {
		return nil, errors.Join(s.filesError("pull "+path, err), root.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	read, write := io.Pipe()
	go func() {
		defer root.Close()
		write.CloseWithError(root.Pack(ctx, write, path, s.engine.opts.UserNS))
	}()
	return pulled{read, cancel}, nil
}

// pulled is a stream that stops being made when it is closed.
type pulled struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (p pulled) Close() error {
	p.cancel()
	return p.PipeReader.Close()
}

// Push unpacks a tar stream into a folder.
func (s *session) Push(ctx context.Context, dir string, tar io.Reader) error {
	root, err := s.files()
	if err != nil {
		return err
	}
	defer root.Close()
	_, err = root.Unpack(ctx, tar, tree.Unpacking{Dir: dir, Shift: s.engine.opts.UserNS})
	return s.filesError("push to "+dir, err)
}

// files opens the sandbox's root.
func (s *session) files() (*tree.Root, error) {
	found, err := s.engine.load(s.id)
	if errors.Is(err, sandbox.ErrGone) {
		return nil, s.Fate(context.Background())
	}
	if err != nil {
		return nil, err
	}
	path := filepath.Join(s.engine.folder(s.id), "m")
	if !isMounted(path) {
		if err := s.engine.mount(found); err != nil {
			return nil, err
		}
	}
	return tree.Open(path)
}

// filesError tells a missing path from all else.
func (s *session) filesError(doing string, err error) error {
	if err == nil {
		return nil
	}
	if tree.NotFound(err) {
		return fmt.Errorf("oci: %s: %w", doing, fs.ErrNotExist)
	}
	return fmt.Errorf("oci: %s: %w", doing, err)
}

// Close removes the sandbox.
func (s *session) Close(ctx context.Context) error {
	s.engine.disks.Forget(s.id)
	if err := s.End(); err != nil {
		s.engine.log.Debug("hang up", "sandbox", s.id, "error", err)
	}
	return s.engine.Remove(ctx, s.id)
}

func splitLines(text []byte) []string { return strings.Fields(string(text)) }
