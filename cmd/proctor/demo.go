package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"proctor/internal/client"
	"proctor/internal/config"
	"proctor/internal/demo"
	"proctor/internal/rollouts"
	"proctor/sandbox/docker"
	"proctor/tasks"
)

// demoOptions are the demo's own flags.
type demoOptions struct {
	task        string
	only        []string
	concurrency int
	asJSON      bool
}

// newDemo runs the scripted policies over the real HTTP endpoint.
func newDemo() *cobra.Command {
	var file string
	var o demoOptions
	flags := config.Default()
	flags.Listen, flags.Data, flags.LogLevel = "127.0.0.1:0", filepath.Join(".proctor", "demo"), "warn"
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run honest and cheating policies on a real task, and show what each was answered",
		Long: `Starts a server on a free port and runs a group of scripted policies over its HTTP endpoint: honest ones
and one per kind of cheat. Every cheat also runs in a twin rollout with monitor and hardening off, on an internal
network with a stand-in for the upstream project, graded the naive way in its own sandbox, so that the cheat pays there.

Prints call by call what was tried, what rule and judge said, what was shown and what the twin saw; then a line for
each rollout, the group's hack rate, and the folder with the trajectories.`,
		Example: `  proctor demo
  proctor demo --only git-history,recovers
  proctor demo --json | jq '.rollouts[] | {policy, reward, twin: .twin.reward}'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := settings(cmd, file, flags)
			if err != nil {
				return usage(err)
			}
			for name, value := range map[string]*string{"listen": &cfg.Listen, "data": &cfg.Data, "log-level": &cfg.LogLevel} {
				if !cmd.Flags().Lookup(name).Changed { // the demo's defaults, not the server's
					*value = cmd.Flags().Lookup(name).DefValue
				}
			}
			cfg.Tasks = []string{o.task}
			return runDemo(cmd.Context(), cmd.OutOrStdout(), cfg, o)
		},
	}
	serveFlags(cmd, &file, &flags)
	f := cmd.Flags()
	f.StringVar(&o.task, "task", filepath.Join("testdata", "tasks", "interval-merge"), "folder of the demo task")
	f.StringSliceVar(&o.only, "only", nil, "run these policies only")
	f.IntVar(&o.concurrency, "concurrency", 4, "rollouts at once")
	f.BoolVar(&o.asJSON, "json", false, "print one JSON document")
	for _, hidden := range []string{"tasks", "ready-file", "on-exit"} {
		_ = f.MarkHidden(hidden) // they have no meaning here
	}
	return cmd
}

// runDemo starts a server, plays the policies, and prints the report.
func runDemo(ctx context.Context, out io.Writer, cfg config.Config, o demoOptions) (err error) {
	policies, err := pick(demo.Policies(), o.only)
	if err != nil {
		return usage(err)
	}
	listener, err := listen(ctx, cfg.Listen)
	if err != nil {
		return err
	}
	progress := newProgress(os.Stderr)
	progress.say("preparing the task and its stand-in upstream")
	r, task, err := startDemo(ctx, cfg, listener)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.stop(context.WithoutCancel(ctx))) }()
	runner := demo.Runner{
		Client: client.New(r.url, r.key), TaskID: task.ID, Policies: policies, Concurrency: o.concurrency,
		Record:   filepath.Join(cfg.Data, "records", time.Now().UTC().Format("20060102T150405Z")),
		Progress: func(done, all int, what string) { progress.say("%d of %d rollouts: %s", done, all, what) },
	}
	report, err := runner.Run(ctx)
	progress.done()
	if err != nil {
		return infra(err)
	}
	return printDemo(out, report, o.asJSON)
}

// printDemo writes the report, as JSON or for people.
func printDemo(out io.Writer, report demo.Report, asJSON bool) error {
	if asJSON {
		return writeJSON(out, report)
	}
	width := 160
	if w, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil && w > 40 {
		width = w
	}
	return report.Print(out, width)
}

// pick gives the policies named, all where none is.
func pick(all []demo.Policy, names []string) ([]demo.Policy, error) {
	if len(names) == 0 {
		return all, nil
	}
	var picked []demo.Policy
	for _, name := range names {
		i := slices.IndexFunc(all, func(p demo.Policy) bool { return p.Name == name })
		if i < 0 {
			var known []string
			for _, p := range all {
				known = append(known, p.Name)
			}
			return nil, fmt.Errorf("--only: no policy is called %q; there are %s", name, strings.Join(known, ", "))
		}
		picked = append(picked, all[i])
	}
	return picked, nil
}

// demoServer is a running server with the demo's twins wired in.
type demoServer struct {
	*running
	twins *twins
}

// startDemo opens the server with the twins between its parts, and starts it on listener.
func startDemo(ctx context.Context, cfg config.Config, listener net.Listener) (_ *demoServer, _ *tasks.Task, err error) {
	t := &twins{}
	s, err := openServer(ctx, cfg, newLogger(cfg), tweak{lab: t.lab, rollouts: t.rollouts})
	if err != nil {
		return nil, nil, errors.Join(err, listener.Close())
	}
	all := s.manager.Tasks(ctx)
	if len(all) != 1 {
		return nil, nil, errors.Join(usage(fmt.Errorf("--task holds %d tasks; name the folder of one", len(all))), listener.Close(), s.close(true))
	}
	upstream, ok := s.engine.(*docker.Engine)
	if !ok {
		return nil, nil, errors.Join(usage(fmt.Errorf("the demo's stand-in for an upstream host needs engine: docker, not %s", s.engine.Name())), listener.Close(), s.close(true))
	}
	if err := t.open(ctx, upstream, all[0]); err != nil {
		return nil, nil, errors.Join(infra(err), listener.Close(), s.close(true))
	}
	r, err := s.start(listener)
	if err != nil {
		return nil, nil, errors.Join(err, t.close(ctx), s.close(true))
	}
	return &demoServer{running: r, twins: t}, all[0], nil
}

// stop removes every sandbox, then the upstream's service and network.
func (d *demoServer) stop(ctx context.Context) error {
	// Sandboxes must leave the network before it can go, and the engine must live until then.
	left, _, err := d.manager.List(ctx, rollouts.Filter{Status: rollouts.StatusRunning, Limit: 1000})
	errs := []error{err}
	for _, v := range left {
		errs = append(errs, d.manager.Delete(ctx, v.ID))
	}
	return errors.Join(append(errs, d.twins.close(ctx), d.running.stop(true))...)
}
