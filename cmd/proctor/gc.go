package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"proctor/internal/config"
	"proctor/internal/rollouts"
	"proctor/internal/store"
)

// collected is what gc did, or would do.
type collected struct {
	DryRun  bool      `json:"dry_run"`
	Removed []garbage `json:"removed"` // or what would be
	Failed  []garbage `json:"failed"`
	Bytes   int64     `json:"bytes"` // of images; layers that others share are counted as well
}

// garbage is one thing that nothing needs any more.
type garbage struct {
	Kind    string     `json:"kind"` // sandbox, service, network, run folder, image
	Name    string     `json:"name"`
	ID      string     `json:"id"`
	Created *time.Time `json:"created"`
	Bytes   int64      `json:"bytes"`
	Error   string     `json:"error,omitempty"`
}

// newGC removes what nothing needs any more.
func newGC() *cobra.Command {
	var file, data string
	var dry, asJSON bool
	var older time.Duration
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Remove sandboxes, networks and images that nothing needs any more",
		Long: `Removes what earlier servers on the data folder left on this machine: sandboxes that no live rollout
holds, a demo's stand-ins, networks and run folders; and the images that were made from tasks
(proctor/raw, proctor/built, proctor/prepared) which no container uses and which are older than --older-than; and
snapshots (proctor/snapshot) that no live rollout keeps. Images of tasks are shared by all data folders of the machine, and are made again when they are needed.

Containers and networks are known by the data folder's own label: nothing of others is touched. The folder must not
be held by a server; one that runs does the same, images aside, when it starts. Records are never removed, and
what a sandbox spilled goes with it.

Exit status: 0 done, 1 something could not be removed, 2 usage or no data folder, 3 no daemon, or a server runs.`,
		Example: "  proctor gc --dry-run\n  proctor gc --data /var/lib/proctor --older-than 24h --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.Load(file, os.Getenv)
			if err != nil {
				return usage(err)
			}
			if data != "" {
				cfg.Data = data
			}
			if older < 0 {
				return usage(fmt.Errorf("--older-than is %v; it must not be negative", older))
			}
			out, err := collect(cmd.Context(), cfg, older, dry)
			if err != nil {
				return err
			}
			if asJSON {
				err = writeJSON(cmd.OutOrStdout(), out)
			} else {
				err = out.print(cmd.OutOrStdout())
			}
			if err == nil && len(out.Failed) > 0 {
				return failed(errSilent)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "YAML file with settings")
	cmd.Flags().StringVar(&data, "data", "", "data folder (default the configured one)")
	cmd.Flags().DurationVar(&older, "older-than", 7*24*time.Hour, "age from which an unused image goes")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only say what would be removed")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// collect finds the garbage of a data folder and removes it.
func collect(ctx context.Context, cfg config.Config, older time.Duration, dry bool) (collected, error) {
	out := collected{DryRun: dry, Removed: []garbage{}, Failed: []garbage{}}
	if _, err := os.Stat(filepath.Join(cfg.Data, "proctor.db")); err != nil {
		return out, usage(fmt.Errorf("%s is no data folder: %w; name it with --data", cfg.Data, err))
	}
	st, err := store.Open(ctx, cfg.Data, store.Options{})
	if err != nil {
		return out, infra(err)
	}
	defer st.Close()
	live, err := st.Rollouts(ctx, store.Filter{Statuses: []string{rollouts.StatusRunning, rollouts.StatusSubmitted}})
	if err != nil {
		return out, infra(err)
	}
	var held []string
	for _, row := range live {
		held = append(held, row.Box)
	}
	engine, err := openEngine(cfg, st.Owner(), true, nil)
	if err != nil {
		return out, infra(err)
	}
	defer engine.Close()
	found, err := engine.Leftovers(ctx, held)
	if err != nil {
		return out, infra(err)
	}
	images, err := engine.MadeImages(ctx)
	if err != nil {
		return out, infra(err)
	}
	own, err := engine.Snapshots(ctx)
	if err != nil {
		return out, infra(err)
	}
	needed, err := rollouts.HeldImages(live)
	if err != nil {
		return out, infra(err)
	}
	for _, img := range images {
		if time.Since(img.Created) >= older || slices.Contains(own, img.ID) && !slices.Contains(needed, img.ID) {
			found = append(found, img)
		}
	}
	for _, l := range found {
		g := garbage{Kind: l.Kind, Name: l.Name, ID: l.ID, Bytes: l.Bytes}
		if !l.Created.IsZero() {
			g.Created = &l.Created
		}
		if !dry {
			if err := engine.RemoveLeftover(ctx, l); err != nil {
				g.Error = err.Error()
				out.Failed = append(out.Failed, g)
				continue
			}
		}
		out.Removed = append(out.Removed, g)
		out.Bytes += g.Bytes
	}
	return out, nil
}

// print tells it to people.
func (c collected) print(w io.Writer) error {
	word := "removed"
	if c.DryRun {
		word = "would remove"
	}
	var errs []error
	say := func(format string, args ...any) {
		_, err := fmt.Fprintf(w, format, args...)
		errs = append(errs, err)
	}
	for _, g := range c.Removed {
		say("%s %s %s\n", word, g.Kind, g.Name)
	}
	for _, g := range c.Failed {
		say("FAILED %s %s: %s\n", g.Kind, g.Name, g.Error)
	}
	say("%s %s, images of %d MB\n", word, plural(len(c.Removed), "thing"), c.Bytes/1e6)
	return errors.Join(errs...)
}
