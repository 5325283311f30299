package docker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"

	"proctor/sandbox"
	"proctor/sandbox/confine"
)

// Attach takes up a sandbox by id. One that is dead is attached too: its session says so.
func (e *Engine) Attach(ctx context.Context, id string) (sandbox.Session, error) {
	found, err := e.inspectOurs(ctx, id)
	if err != nil {
		return nil, err
	}
	folder := folderOf(found.Mounts)
	if folder == "" {
		return nil, fmt.Errorf("%w: %s has no run folder", sandbox.ErrGone, id)
	}
	s := e.newSession(found.ID, folder)
	if !found.State.Running {
		return s, nil
	}
	if err := s.Resume(ctx, readyLimit); err != nil {
		return nil, err
	}
	e.watchDisk(s, found)
	return s, nil
}

// inspectOurs looks at a sandbox of this owner; ErrGone where there is none.
func (e *Engine) inspectOurs(ctx context.Context, id string) (container.InspectResponse, error) {
	found, err := e.cli.ContainerInspect(ctx, id)
	switch {
	case id == "" || errdefs.IsNotFound(err):
		return found, fmt.Errorf("%w: %s", sandbox.ErrGone, id)
	case err != nil:
		return found, e.wrap("look at container "+id, err)
	case found.Config == nil || found.Config.Labels[labelOwner] != e.opts.Owner || found.Config.Labels[labelRole] != roleSandbox:
		return found, fmt.Errorf("%w: %s is not one of ours", sandbox.ErrGone, id)
	}
	return found, nil
}

// folderOf gives the run folder on the host among a container's mounts, or "".
func folderOf(mounts []container.MountPoint) string {
	for _, m := range mounts {
		if m.Destination == confine.FolderInside {
			return m.Source
		}
	}
	return ""
}

// List gives the sandboxes of this owner, running or dead.
func (e *Engine) List(ctx context.Context) ([]sandbox.Listed, error) {
	found, err := e.containers(ctx, roleSandbox)
	if err != nil {
		return nil, err
	}
	var listed []sandbox.Listed
	for _, c := range found {
		listed = append(listed, sandbox.Listed{
			ID: c.ID, Name: c.Labels[labelName], Running: c.State == container.StateRunning,
			Created: time.Unix(c.Created, 0), Labels: c.Labels,
		})
	}
	return listed, nil
}

// containers lists this owner's containers with a role.
func (e *Engine) containers(ctx context.Context, role string) ([]container.Summary, error) {
	found, err := e.cli.ContainerList(ctx, container.ListOptions{All: true, Filters: e.labelled(role)})
	return found, e.wrap("list containers", err)
}

// labelled filters by this owner and, unless it is "", a role.
func (e *Engine) labelled(role string) filters.Args {
	args := filters.NewArgs(filters.Arg("label", labelOwner+"="+e.opts.Owner))
	if role != "" {
		args.Add("label", labelRole+"="+role)
	}
	return args
}

// Remove removes a sandbox of this owner, dead or alive; nil where there is none.
func (e *Engine) Remove(ctx context.Context, id string) error {
	found, err := e.inspectOurs(ctx, id)
	if errors.Is(err, sandbox.ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	return e.remove(ctx, found.ID, folderOf(found.Mounts))
}

// remove removes a container and its run folder.
func (e *Engine) remove(ctx context.Context, id, folder string) error {
	if err := e.removeContainer(ctx, id); err != nil {
		return err
	}
	if folder == "" {
		return nil
	}
	return e.root.Drop(folder)
}

// Sweep removes run folders that no container has: those of a create that a crash cut short. Call it before
// the first Create, as a server does at start.
func (e *Engine) Sweep(ctx context.Context) error {
	folders, err := e.root.Folders()
	if err != nil || len(folders) == 0 {
		return err
	}
	found, err := e.containers(ctx, roleSandbox)
	if err != nil {
		return err
	}
	var errs []error
	for _, folder := range folders {
		held := slices.ContainsFunc(found, func(c container.Summary) bool { return folderOf(c.Mounts) == folder })
		if !held {
			errs = append(errs, e.root.Drop(folder))
		}
	}
	return errors.Join(errs...)
}
