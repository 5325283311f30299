package sandbox

import (
	"errors"
	"io"
)

// ErrBuild says that a Dockerfile could not be built, and that the machine is not at fault.
var ErrBuild = errors.New("the image cannot be built")

// ImageBuild is what an image is built from.
type ImageBuild struct {
	Context    io.Reader // tar stream
	Dockerfile string    // a path in it
	Ref        string    // under which the image is kept
	NoNetwork  bool
	// Env and CA are lent to the build's steps: settings of proxies and package managers, and
	// certificates (PEM). Neither is in the image, its settings or its history.
	Env map[string]string
	CA  []byte
	// Progress, where set, is told each step.
	Progress func(step string)
}
