package link

import (
	"context"
	"fmt"

	"proctor/sandbox"
)

// Do makes a call; over a broken connection, once more: the call's ID keeps it from running twice.
func (l *Link) Do(ctx context.Context, call sandbox.Call) (result sandbox.Result, err error) {
	err = l.With(ctx, func(c Conn) error {
		result, err = c.Do(ctx, call)
		return err
	})
	return result, err
}

// State tells what the sandbox knows of a call.
func (l *Link) State(ctx context.Context, callID string) (state sandbox.CallState, err error) {
	err = l.With(ctx, func(c Conn) error {
		state, err = c.State(ctx, callID)
		return err
	})
	return state, err
}

// Exec runs one argv outside the shell. Without an ID it is not tried again over a broken connection: nobody
// could tell whether it ran.
func (l *Link) Exec(ctx context.Context, e sandbox.Exec) (result sandbox.ExecResult, err error) {
	sent := false
	err = l.With(ctx, func(c Conn) error {
		if e.ID == "" && sent {
			return fmt.Errorf("%w: %s: the connection to %s broke while %.60q ran", sandbox.ErrUnavailable, l.engine, l.id, e.Argv)
		}
		sent = true
		result, err = c.Exec(ctx, e)
		return err
	})
	return result, err
}

// ReadFile gives at most limit bytes of a regular file.
func (l *Link) ReadFile(ctx context.Context, path string, limit int64) (data []byte, err error) {
	err = l.With(ctx, func(c Conn) error {
		data, err = c.ReadFile(ctx, path, limit)
		return err
	})
	return data, err
}

// Stat describes what a path leads to.
func (l *Link) Stat(ctx context.Context, path string) (info sandbox.FileInfo, err error) {
	err = l.With(ctx, func(c Conn) error {
		info, err = c.Stat(ctx, path)
		return err
	})
	return info, err
}
