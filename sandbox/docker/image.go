package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/image"

	"proctor/sandbox"
)

// pullSilence is how long a registry may say nothing before it counts as not there.
const pullSilence = 20 * time.Second

// Image resolves ref among the daemon's images, and asks a registry where it is not there.
func (e *Engine) Image(ctx context.Context, ref string) (sandbox.Image, error) {
	img, err := e.localImage(ctx, ref)
	if !errors.Is(err, sandbox.ErrNoImage) || e.opts.NoPull || !pullable(ref) {
		return img, err
	}
	if pullErr := e.pull(ctx, ref); pullErr != nil {
		if ctx.Err() != nil {
			return sandbox.Image{}, ctx.Err()
		}
		return sandbox.Image{}, fmt.Errorf("%w: %s: not here, and pulling it failed: %v", sandbox.ErrNoImage, ref, pullErr)
	}
	return e.localImage(ctx, ref)
}

// localImage resolves ref among the daemon's images.
func (e *Engine) localImage(ctx context.Context, ref string) (sandbox.Image, error) {
	if ref == "" || strings.ContainsAny(ref, " \t\n\x00") {
		return sandbox.Image{}, fmt.Errorf("%w: %q is no image reference", sandbox.ErrNoImage, ref)
	}
	got, err := e.cli.ImageInspect(ctx, ref)
	if errdefs.IsNotFound(err) || errdefs.IsInvalidArgument(err) {
		return sandbox.Image{}, fmt.Errorf("%w: %s%s", sandbox.ErrNoImage, ref, remedy(ref))
	}
	if err != nil {
		return sandbox.Image{}, e.wrap("look up image "+ref, err)
	}
	img := sandbox.Image{Ref: ref, Digest: got.ID, Size: got.Size}
	if got.Config != nil {
		img.User, img.Env = got.Config.User, got.Config.Env
	}
	return img, nil
}

// ours are image names that are only ever built on the machine.
const ours = "proctor/"

// remedy says how to come by an image that only we build.
func remedy(ref string) string {
	if strings.HasPrefix(ref, ours) {
		return "; build it with `make image`"
	}
	return ""
}

// pullable reports whether a registry could know ref: a name, not an id, and not one of our own.
func pullable(ref string) bool {
	named, err := reference.ParseNormalizedNamed(ref)
	return err == nil && named != nil && !strings.HasPrefix(ref, ours) && !strings.HasPrefix(ref, "sha256:")
}

// pull asks the registry for ref. It gives up once nothing was heard for pullSilence.
func (e *Engine) pull(ctx context.Context, ref string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(pullSilence, func() {
		cancel(fmt.Errorf("no registry answered for %v", pullSilence))
	})
	defer silence.Stop()
	body, err := e.cli.ImagePull(ctx, ref, image.PullOptions{})
	if err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	defer body.Close()
	lines := json.NewDecoder(body)
	for {
		var line struct {
			Error string `json:"error"`
		}
		switch err := lines.Decode(&line); {
		case err == io.EOF:
			return nil
		case err != nil:
			return errors.Join(err, context.Cause(ctx))
		case line.Error != "":
			return errors.New(line.Error)
		}
		silence.Reset(pullSilence)
	}
}
