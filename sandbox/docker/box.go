package docker

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"proctor/sandbox"
	"proctor/sandbox/box"
)

// dialBox connects through package box.
func dialBox(ctx context.Context, socket string, pid int, init box.Init) (boxConn, error) {
	client, err := box.Dial(ctx, socket, box.Options{ExpectPID: pid, Init: init})
	if err != nil {
		return nil, err // not client: a nil *box.Client would be no nil boxConn
	}
	return client, nil
}

// notYet reports whether dialling again may help: the agent has not opened its socket yet, or somebody inside
// took its place, which the agent notices and mends.
func notYet(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) || blocked(err)
}

// broken reports whether err means that the connection is of no more use: package box tells so by a
// DeadError that leaves open by whose doing.
func broken(err error) bool {
	var dead *sandbox.DeadError
	return errors.As(err, &dead) && dead.Class == ""
}
