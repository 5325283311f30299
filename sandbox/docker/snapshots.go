package docker

import (
	"context"
	"strings"

	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
)

// snapshots is the repository of images that keep a rollout's files; labelSnapshot says whose they are, on the
// image only: what runs of it is known by labelOwner.
const (
	snapshots     = "proctor/snapshot"
	labelSnapshot = "proctor.snapshot"
)

// Snapshots lists the references of the owner's images in the repository of snapshots.
func (e *Engine) Snapshots(ctx context.Context) ([]string, error) {
	found, err := e.cli.ImageList(ctx, image.ListOptions{Filters: filters.NewArgs(
		filters.Arg("reference", snapshots), filters.Arg("label", labelSnapshot+"="+e.opts.Owner))})
	if err != nil {
		return nil, e.wrap("list snapshots", err)
	}
	var refs []string
	for _, img := range found {
		for _, ref := range img.RepoTags {
			if strings.HasPrefix(ref, snapshots+":") {
				refs = append(refs, ref)
			}
		}
	}
	return refs, nil
}
