package sandbox

import "context"

// Local is what a Session may also be whose sandbox's processes run on this host's kernel, so that
// the host can look at them and at their files from outside.
type Local interface {
	// InitPID gives the sandbox's first process by its pid on this host. ErrGone, or a *DeadError,
	// where there is none any more. A pid is good for as long as the sandbox lives.
	InitPID(ctx context.Context) (int, error)
}
