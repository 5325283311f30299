package main

import (
	"context"
	"errors"
	"log/slog"

	"proctor/internal/rollouts"
	"proctor/monitor/witness"
	"proctor/sandbox"
)

// openWitness gives what rollouts are watched by, nil for nothing, and how that is closed. Where the
// kernel or our rights do not allow it, that is said once, and every record says `witness: none`.
func openWitness(setting string, log *slog.Logger) (func(context.Context, rollouts.WatchRequest) (rollouts.Watcher, error), func() error) {
	nothing := func() error { return nil }
	if setting == "off" {
		return nil, nothing
	}
	hub, err := witness.NewHub(log)
	if err != nil {
		log.Warn("there is no witness: records say so", "err", err)
		return nil, nothing
	}
	return func(ctx context.Context, r rollouts.WatchRequest) (rollouts.Watcher, error) {
		local, ok := r.Session.(sandbox.Local)
		if !ok {
			return nil, errors.New("the sandbox's processes are not on this machine")
		}
		pid, err := local.InitPID(ctx)
		if err != nil {
			return nil, err
		}
		return hub.Watch(pid, witness.Options{Paths: r.Paths, Deny: setting == "deny" && r.Enforce})
	}, hub.Close
}
