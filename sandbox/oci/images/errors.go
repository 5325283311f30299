package images

import (
	"fmt"

	"proctor/sandbox"
)

// LayerError says which layer of an image could not be unpacked. It wraps sandbox.ErrBadImage where the image is at
// fault.
type LayerError struct {
	Layer string // its content id
	Err   error
}

func (e *LayerError) Error() string { return fmt.Sprintf("layer %s: %v", e.Layer, e.Err) }
func (e *LayerError) Unwrap() error { return e.Err }

// ArchError says that an image is for another kind of machine. It wraps sandbox.ErrBadImage.
type ArchError struct {
	Has  string // what the image is for
	Want string // what this machine is
}

func (e *ArchError) Error() string {
	return fmt.Sprintf("the image is for %s and this machine is %s: build or pull it for %s", e.Has, e.Want, e.Want)
}

// Unwrap makes it a bad image.
func (e *ArchError) Unwrap() error { return sandbox.ErrBadImage }
