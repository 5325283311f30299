package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"proctor/internal/config"
	"proctor/sandbox/docker"
)

// ownEngine opens an engine for one command, whose sandboxes no server takes for its own, and makes sure
// that its daemon answers. The caller closes it. Errors are of the infrastructure.
func ownEngine(ctx context.Context, purpose string, settings config.Config, log *slog.Logger) (*docker.Engine, error) {
	engine, err := docker.New(docker.Options{Owner: fmt.Sprintf("%s-%d", purpose, os.Getpid()), BoxPath: settings.Boxd, Log: log})
	if err != nil {
		return nil, infra(err)
	}
	if _, err := engine.Capabilities(ctx); err != nil {
		return nil, infra(errors.Join(err, engine.Close()))
	}
	return engine, nil
}
