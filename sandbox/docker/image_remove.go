package docker

import (
	"context"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/image"
)

// RemoveImage removes an image that Commit made; nil where there is none. Containers made of it must be
// gone.
func (e *Engine) RemoveImage(ctx context.Context, ref string) error {
	_, err := e.cli.ImageRemove(ctx, ref, image.RemoveOptions{PruneChildren: true})
	if err == nil || errdefs.IsNotFound(err) {
		return nil
	}
	return e.wrap("remove image "+ref, err)
}
