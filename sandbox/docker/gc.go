package docker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/network"

	"proctor/sandbox/confine"
)

// Kinds of a Leftover.
const (
	LeftSandbox = confine.LeftSandbox
	LeftService = confine.LeftService
	LeftNetwork = confine.LeftNetwork
	LeftFolder  = confine.LeftFolder
	LeftImage   = confine.LeftImage
)

// Leftover is something of ours that the machine keeps.
type Leftover = confine.Leftover

// Leftovers gives the owner's sandboxes, services, networks and run folders that no sandbox has. Those
// in held, by id, are in use and left out.
func (e *Engine) Leftovers(ctx context.Context, held []string) ([]Leftover, error) {
	var out []Leftover
	boxes, err := e.containers(ctx, roleSandbox)
	if err != nil {
		return nil, err
	}
	var mounted []string
	for _, c := range boxes {
		mounted = append(mounted, folderOf(c.Mounts))
		if !slices.Contains(held, c.ID) {
			out = append(out, Leftover{Kind: LeftSandbox, ID: c.ID, Name: c.Labels[labelName], Created: time.Unix(c.Created, 0)})
		}
	}
	services, err := e.containers(ctx, roleService)
	if err != nil {
		return nil, err
	}
	for _, c := range services {
		out = append(out, Leftover{Kind: LeftService, ID: c.ID, Name: c.Labels[labelName], Created: time.Unix(c.Created, 0)})
	}
	nets, err := e.cli.NetworkList(ctx, network.ListOptions{Filters: e.labelled(roleNetwork)})
	if err != nil {
		return nil, e.wrap("list networks", err)
	}
	for _, n := range nets {
		out = append(out, Leftover{Kind: LeftNetwork, ID: n.ID, Name: n.Name, Created: n.Created})
	}
	folders, err := e.root.Folders()
	for _, f := range folders {
		if !slices.Contains(mounted, f) {
			out = append(out, Leftover{Kind: LeftFolder, ID: f, Name: f})
		}
	}
	return out, err
}

// madeHere are the repositories of images that are made from tasks, and can be made again.
var madeHere = []string{"proctor/raw", "proctor/built", "proctor/prepared", snapshots}

// MadeImages gives the images that were made from tasks and that no container uses, of any owner.
func (e *Engine) MadeImages(ctx context.Context) ([]Leftover, error) {
	args := filters.NewArgs()
	for _, name := range madeHere {
		args.Add("reference", name)
	}
	found, err := e.cli.ImageList(ctx, image.ListOptions{Filters: args})
	if err != nil {
		return nil, e.wrap("list images", err)
	}
	used, err := e.usedImages(ctx)
	if err != nil {
		return nil, err
	}
	var out []Leftover
	for _, img := range found {
		for _, ref := range img.RepoTags {
			repo, _, _ := strings.Cut(ref, ":")
			if slices.Contains(madeHere, repo) && !slices.Contains(used, img.ID) {
				out = append(out, Leftover{Kind: LeftImage, ID: ref, Name: ref, Created: time.Unix(img.Created, 0), Bytes: img.Size})
			}
		}
	}
	slices.SortFunc(out, func(a, b Leftover) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// usedImages gives the images of all containers on the machine, whosever they are.
func (e *Engine) usedImages(ctx context.Context) ([]string, error) {
	all, err := e.cli.ContainerList(ctx, container.ListOptions{All: true})
	if err != nil {
		return nil, e.wrap("list containers", err)
	}
	var ids []string
	for _, c := range all {
		ids = append(ids, c.ImageID)
	}
	return ids, nil
}

// RemoveLeftover removes one; nil where it is gone already. An image that a container has come to use
// meanwhile is refused by the daemon.
func (e *Engine) RemoveLeftover(ctx context.Context, l Leftover) error {
	switch l.Kind {
	case LeftSandbox:
		return e.Remove(ctx, l.ID)
	case LeftService:
		return e.removeContainer(ctx, l.ID)
	case LeftNetwork:
		return e.RemoveNetwork(ctx, l.ID)
	case LeftFolder:
		return e.root.Drop(l.ID)
	case LeftImage:
		_, err := e.cli.ImageRemove(ctx, l.ID, image.RemoveOptions{})
		if errdefs.IsNotFound(err) {
			return nil
		}
		return e.wrap("remove image "+l.ID, err)
	}
	return errors.New("docker: leftovers of kind " + l.Kind + " are not known")
}
