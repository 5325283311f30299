package docker

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"syscall"
)

// boxArgs are the agent's arguments for a socket inside the sandbox.
func boxArgs(socket string) []string { return []string{"--", socket} }

// dialBox connects through package box.
func dialBox(ctx context.Context, socket string, pid int, init *boxInit) (boxConn, error) {
	return nil, errors.New("no box protocol yet")
}

// notYet reports whether err only means that the agent has not opened its socket yet.
func notYet(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}

// broken reports whether err means that the connection is of no more use.
func broken(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.ECONNREFUSED)
}
