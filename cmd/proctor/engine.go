package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"proctor/internal/config"
	"proctor/sandbox"
	"proctor/sandbox/confine"
	"proctor/sandbox/docker"
	"proctor/sandbox/oci"
)

// engine is what commands need of a sandbox engine.
type engine interface {
	sandbox.Engine

	// Sweep removes what a crash left of a server's before any sandbox is made.
	Sweep(ctx context.Context) error
	// Leftovers gives what the owner has on the machine, but for the sandboxes in held.
	Leftovers(ctx context.Context, held []string) ([]confine.Leftover, error)
	// MadeImages gives images that can be had again and that no sandbox uses, of any owner.
	MadeImages(ctx context.Context) ([]confine.Leftover, error)
	// Snapshots lists the owner's images that keep a rollout's files.
	Snapshots(ctx context.Context) ([]string, error)
	// RemoveLeftover removes one; nil where it is gone.
	RemoveLeftover(ctx context.Context, l confine.Leftover) error
}

// openEngine opens the engine that the settings name. It does not try it: Capabilities does.
func openEngine(settings config.Config, owner string, noPull bool, log *slog.Logger) (engine, error) {
	if settings.Engine == "oci" {
		return openOCI(settings, owner, noPull, log)
	}
	made, err := docker.New(docker.Options{Owner: owner, BoxPath: settings.Boxd, NoPull: noPull, Log: log})
	if err != nil {
		return nil, err // not made: a nil *docker.Engine would be no nil engine
	}
	return made, nil
}

// openOCI opens the oci engine, with a Docker daemon's builder beside it where there may be one.
func openOCI(settings config.Config, owner string, noPull bool, log *slog.Logger) (engine, error) {
	made, err := oci.New(oci.Options{Owner: owner, BoxPath: settings.Boxd, Runtime: settings.OCI.Runtime, Store: settings.OCI.Store,
		UserNS: settings.OCI.UserNS, HidePID: settings.OCI.HidePID, NoPull: noPull, Log: log})
	if err != nil {
		return nil, err
	}
	builder, err := docker.New(docker.Options{Owner: owner, NoPull: noPull, Log: log})
	if err != nil {
		return made, nil // a daemon elsewhere: Dockerfiles cannot be built, as with none
	}
	return &built{Engine: made, builder: builder}, nil
}

// built is the oci engine where Dockerfiles are built by a Docker daemon, whose images it takes.
type built struct {
	*oci.Engine
	builder *docker.Engine
}

// BuildImage builds a Dockerfile.
func (b *built) BuildImage(ctx context.Context, o sandbox.ImageBuild) (sandbox.Image, error) {
	if _, err := b.builder.BuildImage(ctx, o); err != nil {
		return sandbox.Image{}, err
	}
	return b.Image(ctx, o.Ref)
}

// Close closes both.
func (b *built) Close() error { return errors.Join(b.Engine.Close(), b.builder.Close()) }

// ownEngine opens an engine for one command, whose sandboxes no server takes for its own, and makes sure
// that it can run here. The caller closes it. Errors are of the infrastructure.
func ownEngine(ctx context.Context, purpose string, settings config.Config, log *slog.Logger) (engine, error) {
	made, err := openEngine(settings, fmt.Sprintf("%s-%d", purpose, os.Getpid()), false, log)
	if err != nil {
		return nil, infra(err)
	}
	if _, err := made.Capabilities(ctx); err != nil {
		return nil, infra(errors.Join(err, made.Close()))
	}
	return made, nil
}
