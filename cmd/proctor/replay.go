package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"proctor/internal/client"
	"proctor/internal/config"
	"proctor/internal/replay"
	"proctor/internal/rollouts"
	"proctor/internal/traces"
	"proctor/monitor"
	"proctor/tasks"
)

// replayOptions are the flags of replay.
type replayOptions struct {
	trajectory, task, image, workdir, mode string
	found                                  string // data folder of a server on this machine
	tolerate                               []string
	local, asJSON                          bool
}

// newReplay runs a trajectory's calls again.
func newReplay() *cobra.Command {
	var file string
	var o replayOptions
	flags := config.Default()
	flags.Listen, flags.LogLevel = "127.0.0.1:0", "warn"
	cmd := &cobra.Command{
		Use:   "replay FILE",
		Short: "Run a trajectory's calls again, and show where observations differ",
		Long: `Replay makes the calls of a recorded trajectory, in any format that scan reads, in a fresh rollout, and compares what comes out
with what the record says was shown. The sandbox is a task's (--task, by default the one that the trajectory names) or an image's.
Mode off runs everything as it is; with enforce or shadow the monitor looks on, and what it did stands beside each difference.

With PROCTOR_URL set, that server is used; else one is started in this process with the tasks of --tasks.

Exit status: 0 the same, 1 something differs or a call could not be made, 2 usage or bad input, 3 infrastructure.`,
		Example: `  proctor replay attempt.trajectory.json --tasks tasks/ --tolerate timings,pids
  proctor replay run.traj --image proctor/base:dev --workdir /testbed --mode enforce --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := settings(cmd, file, flags)
			if err != nil {
				return usage(err)
			}
			if !cmd.Flags().Lookup("listen").Changed {
				cfg.Listen = flags.Listen
			}
			o.found = cfg.Data
			if !cmd.Flags().Lookup("data").Changed {
				cfg.Data = filepath.Join(".proctor", "replay")
			}
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.InOrStdin(), cfg, args[0])
		},
	}
	serveFlags(cmd, &file, &flags)
	f := cmd.Flags()
	f.StringVar(&o.trajectory, "trajectory", "", "`ID` of the trajectory, where the file holds several")
	f.StringVar(&o.task, "task", "", "`ID` of the task (default: the trajectory's)")
	f.StringVar(&o.image, "image", "", "`IMAGE` to run in, in place of a task's")
	f.StringVar(&o.workdir, "workdir", "", "work folder in the image (default: the trajectory's, else /)")
	f.StringVar(&o.mode, "mode", monitor.Off, "off, shadow, enforce")
	f.StringSliceVar(&o.tolerate, "tolerate", nil, "make alike before comparing: timings, pids, addresses, hashes, tempnames, space")
	f.BoolVar(&o.local, "local", false, "start a server in this process even where PROCTOR_URL is set")
	f.BoolVar(&o.asJSON, "json", false, "print one JSON document")
	for _, hidden := range []string{"ready-file", "on-exit", "listen"} {
		_ = f.MarkHidden(hidden)
	}
	return cmd
}

// run replays one trajectory.
func (o *replayOptions) run(ctx context.Context, out io.Writer, in io.Reader, cfg config.Config, file string) error {
	masks, err := replay.Masks(o.tolerate)
	if err != nil {
		return usage(err)
	}
	t, err := pickTrace(&traces.Source{Paths: []string{file}, Stdin: in}, o.trajectory)
	if err != nil {
		return usage(err)
	}
	c, stop, err := o.server(ctx, cfg)
	if err != nil {
		return err
	}
	report, err := o.play(ctx, c, t, masks)
	if err := errors.Join(err, stop()); err != nil {
		return err
	}
	if o.asJSON {
		err = writeJSON(out, report)
	} else {
		err = printReplay(out, report)
	}
	if err == nil && report.Different+report.Failed > 0 {
		return failed(errSilent)
	}
	return err
}

// play makes a rollout and replays on it.
func (o *replayOptions) play(ctx context.Context, c *client.Client, t *traces.Trace, masks []replay.Mask) (*replay.Report, error) {
	req := rollouts.CreateRequest{TaskID: t.Task, Mode: o.mode, Policy: rollouts.Policy{Name: "replay"}}
	if o.task != "" {
		req.TaskID = o.task
	}
	if o.image != "" {
		workdir := o.workdir
		if workdir == "" {
			workdir = t.Workdir
		}
		if workdir == "" {
			workdir = "/"
		}
		inline, err := json.Marshal(map[string]string{"id": "replay", "instruction": "replay", "image": o.image, "workdir": workdir})
		if err != nil {
			return nil, err
		}
		req.TaskID, req.Task = "", inline
	}
	made, err := c.Create(ctx, req)
	if err != nil {
		return nil, answered(err)
	}
	line := newProgress(os.Stderr)
	p := &replay.Player{Client: c, ID: made.ID, Token: made.AgentToken, Masks: masks, Fresh: t.Fresh}
	report, err := p.Play(ctx, t, func(done, all int) { line.say("%d of %d calls", done, all) })
	line.done()
	if err != nil {
		err = infra(err)
	}
	return report, errors.Join(err, c.Delete(context.WithoutCancel(ctx), made.ID))
}

// server finds a server, or starts one.
func (o *replayOptions) server(ctx context.Context, cfg config.Config) (*client.Client, func() error, error) {
	if os.Getenv("PROCTOR_URL") != "" && !o.local {
		c, err := client.Find(o.found, os.Getenv)
		if err != nil {
			return nil, nil, infra(err)
		}
		return c, func() error { return nil }, nil
	}
	list, err := loadTasks(ctx, cfg.Data, cfg.Tasks)
	if err != nil {
		return nil, nil, err
	}
	if list == nil {
		list = []*tasks.Task{}
	}
	r, err := startLocal(ctx, cfg, list)
	if err != nil {
		return nil, nil, err
	}
	return client.New(r.url, r.key), func() error { return r.stop(true) }, nil
}

// pickTrace reads the trajectory that is meant.
func pickTrace(src *traces.Source, id string) (*traces.Trace, error) {
	var found []*traces.Trace
	var ids []string
	for d, err := range src.Documents() {
		if err != nil {
			return nil, err
		}
		list, err := traces.Parse(d)
		if err != nil {
			return nil, err
		}
		for _, t := range list {
			if len(ids) < 10 {
				ids = append(ids, t.ID)
			}
			if id == "" || t.ID == id {
				found = append(found, t)
			}
		}
	}
	switch {
	case len(found) == 0:
		return nil, fmt.Errorf("no trajectory %q; there are %q", id, ids)
	case len(found) > 1:
		return nil, fmt.Errorf("there are several trajectories; name one with --trajectory: %q", slices.Compact(ids))
	}
	return found[0], nil
}

// printReplay prints a replay for people.
func printReplay(out io.Writer, r *replay.Report) error {
	for _, c := range r.Detail {
		fmt.Fprintf(out, "call %d: %s\n", c.Ordinal, printable(c.Text, 160))
		if c.Action != "" && c.Action != monitor.Executed {
			fmt.Fprintf(out, "  the monitor: %s, %s\n", c.Action, c.Class)
		}
		if c.Error != "" {
			fmt.Fprintf(out, "  not made: %s\n", printable(c.Error, 200))
		}
		for _, line := range splitLines(c.Diff, 40) {
			fmt.Fprintf(out, "  %s\n", printable(line, 200))
		}
	}
	_, err := fmt.Fprintf(out, "%s in mode %s: %d the same, %d different, %d not made, %d without a record of what was shown\n", plural(r.Calls, "call"), r.Mode, r.Same, r.Different, r.Failed, r.Blind)
	return err
}

// splitLines gives at most n lines of a text.
func splitLines(s string, n int) []string {
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	if s == "" {
		return nil
	}
	if len(lines) > n {
		lines = append(lines[:n], fmt.Sprintf("(%d more lines)", len(lines)-n))
	}
	return lines
}
