package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"proctor/internal/config"
	"proctor/sandbox/egress/index"
)

// probed is a project that every index of Python packages has.
const probed = "pip"

// checkIndex asks the package index, if there is one, whether it tells when files were uploaded.
func checkIndex(ctx context.Context, settings config.Config, log *slog.Logger) check {
	c := check{Name: "package-index"}
	if settings.PackageIndex == "" {
		c.OK, c.Detail = true, "none set (optional): tasks with a package_index are refused"
		return c
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	mirror, err := index.New(index.Options{Upstream: settings.PackageIndex, Log: log})
	if err == nil {
		err = mirror.Probe(ctx, probed)
	}
	if err != nil {
		c.Detail, c.Remedy = err.Error(), "set package_index to an address that pip's --index-url takes, of an index that answers"
		if errors.Is(err, index.ErrUndated) {
			c.Remedy = "set package_index to an index that serves JSON with upload times"
		}
		return c
	}
	c.OK, c.Detail = true, mirror.Upstream()+" tells upload times"
	return c
}
