package docker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"

	"proctor/sandbox"
	"proctor/sandbox/confine"
)

// checkNetwork refuses to join a network that is not an internal one of this owner: a name from a task's
// file must not lead to the host's or another container's network.
func (e *Engine) checkNetwork(ctx context.Context, n sandbox.Network) error {
	if n.Mode != "internal" {
		return nil
	}
	found, err := e.cli.NetworkInspect(ctx, n.Name, network.InspectOptions{})
	switch {
	case errdefs.IsNotFound(err):
		return fmt.Errorf("docker: no network %q", n.Name)
	case err != nil:
		return e.wrap("look at network "+n.Name, err)
	case !found.Internal || found.Labels[labelOwner] != e.opts.Owner:
		return fmt.Errorf("docker: network %q is not an internal one of ours", n.Name)
	}
	return nil
}

// InternalNetwork makes a network that leads nowhere but to the containers on it, for a task's stand-ins. Its
// name is visible to nobody inside. RemoveNetwork takes it away.
func (e *Engine) InternalNetwork(ctx context.Context, name string) error {
	_, err := e.cli.NetworkCreate(ctx, name, network.CreateOptions{
		Driver: "bridge", Internal: true,
		Labels: map[string]string{labelOwner: e.opts.Owner, labelRole: roleNetwork},
	})
	return e.wrap("make network "+name, err)
}

// RemoveNetwork removes a network of this owner; nil where there is none. Containers must have left it.
func (e *Engine) RemoveNetwork(ctx context.Context, name string) error {
	found, err := e.cli.NetworkInspect(ctx, name, network.InspectOptions{})
	switch {
	case errdefs.IsNotFound(err):
		return nil
	case err != nil:
		return e.wrap("look at network "+name, err)
	case found.Labels[labelOwner] != e.opts.Owner:
		return fmt.Errorf("docker: network %q is not ours", name)
	}
	if err := e.cli.NetworkRemove(ctx, found.ID); err != nil && !errdefs.IsNotFound(err) {
		return e.wrap("remove network "+name, err)
	}
	return nil
}

// ServiceSpec is a plain container beside the sandboxes, such as the demo's stand-in for an upstream host.
type ServiceSpec struct {
	Name    string // becomes a label
	Image   string
	Argv    []string
	Env     map[string]string
	Network string   // an internal network of ours
	Aliases []string // host names under which the network's containers find it
	Files   []byte   // a tar stream unpacked into / before it starts; nil for none
}

// Service is a running service container.
type Service struct {
	ID      string
	Address string // on its network
}

// StartService starts a service. It is confined as a sandbox is, but has no agent in it. Its failure leaves
// nothing behind. RemoveService, or RemoveServices at the end of a server's life, takes it away.
func (e *Engine) StartService(ctx context.Context, spec ServiceSpec) (_ Service, err error) {
	if err := e.checkNetwork(ctx, sandbox.Network{Mode: "internal", Name: spec.Network}); err != nil {
		return Service{}, err
	}
	image, err := e.Image(ctx, spec.Image)
	if err != nil {
		return Service{}, err
	}
	config, host, err := e.serviceConfig(spec, image)
	if err != nil {
		return Service{}, err
	}
	name := confine.RandomHex(6)
	defer func() {
		if err != nil {
			undo, cancel := detached(ctx, cleanupLimit)
			defer cancel()
			err = errors.Join(err, e.removeContainer(undo, name))
		}
	}()
	joined := &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{
		spec.Network: {Aliases: spec.Aliases}}}
	made, err := e.cli.ContainerCreate(ctx, config, host, joined, nil, name)
	if err != nil {
		return Service{}, e.wrap("create service "+spec.Name, err)
	}
	if err := e.fill(ctx, made.ID, spec.Files); err != nil {
		return Service{}, err
	}
	if err := e.cli.ContainerStart(ctx, made.ID, container.StartOptions{}); err != nil {
		return Service{}, e.wrap("start service "+spec.Name, err)
	}
	return e.service(ctx, made.ID, spec)
}

// service looks up a started service's address.
func (e *Engine) service(ctx context.Context, id string, spec ServiceSpec) (Service, error) {
	deadline := time.Now().Add(5 * time.Second)
	for {
		found, err := e.cli.ContainerInspect(ctx, id)
		if err != nil {
			return Service{}, e.wrap("look at service "+spec.Name, err)
		}
		if !found.State.Running {
			return Service{}, fmt.Errorf("docker: service %s ended at once with status %d", spec.Name, found.State.ExitCode)
		}
		if end := found.NetworkSettings.Networks[spec.Network]; end != nil && end.IPAddress != "" {
			return Service{ID: id, Address: end.IPAddress}, nil
		}
		if time.Now().After(deadline) {
			return Service{}, fmt.Errorf("docker: service %s has no address on %s", spec.Name, spec.Network)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// RemoveService removes a service of this owner; nil where there is none.
func (e *Engine) RemoveService(ctx context.Context, id string) error {
	found, err := e.cli.ContainerInspect(ctx, id)
	switch {
	case errdefs.IsNotFound(err):
		return nil
	case err != nil:
		return e.wrap("look at service "+id, err)
	case found.Config.Labels[labelOwner] != e.opts.Owner || found.Config.Labels[labelRole] != roleService:
		return fmt.Errorf("docker: %s is no service of ours", id)
	}
	return e.removeContainer(ctx, id)
}

// RemoveServices removes all services and networks of this owner: what a demo that was killed left behind.
func (e *Engine) RemoveServices(ctx context.Context) error {
	found, err := e.containers(ctx, roleService)
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range found {
		errs = append(errs, e.removeContainer(ctx, c.ID))
	}
	nets, err := e.cli.NetworkList(ctx, network.ListOptions{Filters: e.labelled(roleNetwork)})
	errs = append(errs, e.wrap("list networks", err))
	for _, n := range nets {
		errs = append(errs, e.RemoveNetwork(ctx, n.ID))
	}
	return errors.Join(errs...)
}
