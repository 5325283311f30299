package main

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"proctor/internal/config"
	"proctor/internal/lab"
	"proctor/sandbox"
	"proctor/sandbox/egress"
	"proctor/sandbox/egress/index"
	"proctor/sandbox/egress/index/npm"
	"proctor/sandbox/egress/index/pypi"
	"proctor/tasks"
)

// openEgress makes the proxy that carries what tasks' allowlists name. With a registry its figures are
// counted there; commands without a server pass nil.
func openEgress(c config.Config, reg prometheus.Registerer, log *slog.Logger) (*egress.Proxy, error) {
	private, err := c.Egress.Ranges()
	if err != nil {
		return nil, usage(err)
	}
	o := egress.Options{Private: private, Bytes: int64(c.Egress.MaxMB) << 20, Log: log}
	if c.PackageIndex != "" {
		if o.Python, err = pypi.New(index.Options{Upstream: c.PackageIndex, Log: log}); err != nil {
			return nil, usage(err)
		}
	}
	if c.NPMIndex != "" {
		if o.NPM, err = npm.New(index.Options{Upstream: c.NPMIndex, Log: log}); err != nil {
			return nil, usage(err)
		}
	}
	if reg != nil {
		if o.Observe, err = egress.Metrics(reg); err != nil {
			return nil, infra(err)
		}
	}
	return egress.New(o), nil
}

// newPreparer gives the preparer of a command without a server, with what setup's allowlists need.
func newPreparer(engine sandbox.Engine, c config.Config, log *slog.Logger) (*tasks.Preparer, error) {
	carrier, err := openEgress(c, nil, log)
	if err != nil {
		return nil, err
	}
	return lab.NewPreparer(engine, c.Data, carrier, log), nil
}
