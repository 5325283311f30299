package docker

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"github.com/docker/docker/api/types/container"

	"proctor/sandbox"
	"proctor/sandbox/confine"
)

// serviceConfig confines a service like a sandbox: same profile, limits and masked paths.
func (e *Engine) serviceConfig(spec ServiceSpec, image sandbox.Image) (*container.Config, *container.HostConfig, error) {
	profile, err := seccompProfile()
	if err != nil {
		return nil, nil, err
	}
	resources, err := e.resources(sandbox.DefaultLimits())
	if err != nil {
		return nil, nil, err
	}
	var env []string
	for _, name := range slices.Sorted(maps.Keys(spec.Env)) {
		env = append(env, name+"="+spec.Env[name])
	}
	config := &container.Config{
		Image: image.Digest, Entrypoint: spec.Argv, Env: env, WorkingDir: "/", StopSignal: "SIGKILL",
		Labels:      map[string]string{labelOwner: e.opts.Owner, labelName: spec.Name, labelRole: roleService},
		Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
	}
	host := &container.HostConfig{
		NetworkMode:   container.NetworkMode(spec.Network),
		CapDrop:       []string{"ALL"},
		CapAdd:        []string{"NET_BIND_SERVICE"},
		SecurityOpt:   []string{"no-new-privileges:true", "seccomp=" + profile},
		MaskedPaths:   confine.MaskedPaths(),
		ReadonlyPaths: confine.ReadonlyPaths(),
		OomScoreAdj:   confine.OOMScore,
		LogConfig:     container.LogConfig{Type: "none"},
		Resources:     resources,
		RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled},
	}
	return config, host, nil
}

// fill unpacks a tar stream into a container's root.
func (e *Engine) fill(ctx context.Context, id string, tar []byte) error {
	if tar == nil {
		return nil
	}
	err := e.cli.CopyToContainer(ctx, id, "/", bytes.NewReader(tar), container.CopyToContainerOptions{})
	return e.wrap("fill "+id, err)
}
