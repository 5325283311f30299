package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"proctor/monitor/witness"
	"proctor/sandbox"
)

// checkWitness makes sure that the kernel tells us of opens: where the other checks say that a sandbox can
// be made, in one.
func checkWitness(ctx context.Context, engine sandbox.Engine, image string, others []check) check {
	c := check{Name: "witness"}
	hub, err := witness.NewHub(nil)
	if err != nil {
		c.Detail = err.Error()
		c.Remedy = "run the server as root on Linux 5.6 or newer, outside a container; meanwhile records say witness: none, and verdicts rest on commands alone"
		return c
	}
	defer hub.Close()
	if engine == nil || slices.ContainsFunc(others, func(o check) bool { return !o.OK && o.Name != "store" }) {
		c.OK, c.Detail = true, "fanotify answers; not tried in a sandbox, since none can be made"
		return c
	}
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	if err := tryWitness(ctx, hub, engine, image); err != nil {
		c.Detail = "fanotify answers, but not of sandboxes: " + err.Error()
		c.Remedy = "run the server on the Docker daemon's own machine, in its process namespace; or set witness: off"
		return c
	}
	c.OK, c.Detail = true, "fanotify sees opens in a sandbox, and can deny them"
	return c
}

// tryWitness has a sandbox open a protected file, and be denied it.
func tryWitness(ctx context.Context, hub *witness.Hub, engine sandbox.Engine, image string) error {
	session, err := engine.Create(ctx, sandbox.Spec{Name: "doctor", Image: image, Workdir: "/tmp"})
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		_ = session.Close(ctx) // what stays is swept by label at the next doctor's or server's gc
	}()
	if _, err := session.Do(ctx, sandbox.Call{ID: "1", Op: sandbox.OpShell, Command: "echo x > /tmp/protected"}); err != nil {
		return err
	}
	local, ok := session.(sandbox.Local)
	if !ok {
		return fmt.Errorf("the engine's sandboxes are not on this machine")
	}
	pid, err := local.InitPID(ctx)
	if err != nil {
		return err
	}
	watcher, err := hub.Watch(pid, witness.Options{Paths: []string{"/tmp/protected"}, Deny: true})
	if err != nil {
		return err
	}
	defer watcher.Close()
	end := watcher.Begin(witness.Span{})
	result, err := session.Do(ctx, sandbox.Call{ID: "2", Op: sandbox.OpShell, Command: "cat /tmp/protec*"})
	if err != nil {
		return err
	}
	if seen := end(); len(seen) != 1 || !seen[0].Denied || result.Exit == nil || *result.Exit == 0 {
		return fmt.Errorf("an open was not seen: %v", seen)
	}
	return nil
}
