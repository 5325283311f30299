package oci

import (
	"context"
	"fmt"
	"os"
	"strings"

	"proctor/sandbox"
	"proctor/sandbox/confine"
)

// Capabilities says what the engine holds on this machine.
func (e *Engine) Capabilities(context.Context) (sandbox.Capabilities, error) {
	_, rt, err := e.open()
	if err != nil {
		return sandbox.Capabilities{}, err
	}
	if err := e.tryOverlay(); err != nil {
		return sandbox.Capabilities{}, err
	}
	f := machineFeatures()
	caps := sandbox.Capabilities{
		Version:   rt.version,
		Witness:   !rt.ownKernel() && confine.CanWatch(),
		Fork:      true,
		PTY:       true,
		Egress:    true,
		DiskWatch: true,
		UserNS:    e.opts.UserNS != 0,
		Seccomp:   kernelSeccomp(),
		CgroupV2:  f.v2,
	}
	words := []string{"no disk quota, what sandboxes write is measured instead"}
	if f.v2 {
		words = append(words, "cgroup v2 is tested by its specification only")
	}
	if files := maxOpenFiles(); files < sandbox.DefaultLimits().OpenFiles {
		words = append(words, fmt.Sprintf("open files at most %d, this process may not raise its own limit", files))
	}
	if rt.ownKernel() {
		words = append(words, "opens of files cannot be watched under "+rt.name)
	}
	caps.Unprovable = strings.Join(words, "; ")
	return caps, nil
}

// kernelSeccomp reports whether the kernel filters system calls.
func kernelSeccomp() bool {
	text, err := os.ReadFile("/proc/self/status")
	return err == nil && strings.Contains(string(text), "\nSeccomp:")
}

// tryOverlay mounts an empty overlay in the store and takes it away again.
func (e *Engine) tryOverlay() error {
	id := confine.RandomHex(idLength / 2)
	defer func() { _ = e.discard(id) }() // what stays is Sweep's
	if err := os.MkdirAll(e.folder(id), 0o711); err != nil {
		return fmt.Errorf("%w: oci: %w", sandbox.ErrUnavailable, err)
	}
	return e.mount(state{ID: id})
}
