package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"proctor/internal/config"
	"proctor/sandbox/egress/index"
	"proctor/sandbox/egress/index/npm"
	"proctor/sandbox/egress/index/pypi"
)

// mirror is an index of any kind, as far as it can be asked in advance.
type mirror interface {
	Probe(ctx context.Context, name string) error
	Upstream() string
}

// indexCheck is what is looked at of one kind of index.
type indexCheck struct {
	name, key string
	address   string // "" where none is set
	open      func(index.Options) (mirror, error)
	probed    string // a package that every index of the kind has
	like      string // whose setting the address is like
	dated     string // an index that will do
}

// checkPython asks the index of Python packages, if there is one.
func checkPython(ctx context.Context, settings config.Config, log *slog.Logger) check {
	return indexCheck{name: "package-index", key: "package_index", address: settings.PackageIndex,
		open:   func(o index.Options) (mirror, error) { return pypi.New(o) },
		probed: "pip", like: "pip's --index-url", dated: "an index that serves JSON with upload times (PEP 700)"}.run(ctx, log)
}

// checkNPM asks the npm index, if there is one.
func checkNPM(ctx context.Context, settings config.Config, log *slog.Logger) check {
	return indexCheck{name: "npm-index", key: "npm_index", address: settings.NPMIndex,
		open:   func(o index.Options) (mirror, error) { return npm.New(o) },
		probed: "npm", like: "npm's registry setting", dated: "a registry whose documents have the time of each version"}.run(ctx, log)
}

// run asks an index whether it tells when files were uploaded.
func (x indexCheck) run(ctx context.Context, log *slog.Logger) check {
	c := check{Name: x.name}
	if x.address == "" {
		c.OK, c.Detail = true, "none set (optional): a task with a package_index is refused where no index is set"
		return c
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	m, err := x.open(index.Options{Upstream: x.address, Log: log})
	if err == nil {
		err = m.Probe(ctx, x.probed)
	}
	if err != nil {
		c.Detail, c.Remedy = err.Error(), "set "+x.key+" to an address that "+x.like+" takes, of an index that answers"
		if errors.Is(err, index.ErrUndated) {
			c.Remedy = "set " + x.key + " to " + x.dated
		}
		return c
	}
	c.OK, c.Detail = true, m.Upstream()+" tells upload times"
	return c
}
