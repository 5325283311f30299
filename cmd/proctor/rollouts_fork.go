package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"proctor/internal/rollouts"
)

// newRolloutsFork makes rollouts that go on from another.
func newRolloutsFork() *cobra.Command {
	var r remote
	var req rollouts.ForkRequest
	var seed int64
	cmd := &cobra.Command{
		Use: "fork ROLLOUT", Short: "Make rollouts that go on from where one stands", Args: cobra.ExactArgs(1),
		Long: `Makes n rollouts that begin as a running one stands, or as it stood at a snapshot: with its files, its record, and
its shell's folder and exported environment. Not carried over are running processes, what the shell did not export, what the
file tools could undo, and memory file systems (/dev/shm). They are a group, and each has a token of its own.`,
		Example: "  proctor rollouts fork r_7f3a --n 4\n  proctor rollouts fork r_7f3a --n 2 --snapshot s_19c2 --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if req.N < 1 {
				return usage(errors.New("rollouts fork: --n is at least 1"))
			}
			c, err := r.open()
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("seed") {
				req.Seed = &seed
			}
			made, err := c.Fork(cmd.Context(), args[0], req)
			if err != nil {
				return answered(err)
			}
			if r.asJSON {
				err = writeJSON(cmd.OutOrStdout(), made)
			} else {
				err = printForks(cmd.OutOrStdout(), made)
			}
			if err == nil && len(made.Failed) > 0 {
				return infra(fmt.Errorf("%d of %d could not be made: %s", len(made.Failed), made.N, made.Failed[0].Detail))
			}
			return err
		},
	}
	r.flags(cmd)
	cmd.Flags().IntVar(&req.N, "n", 1, "how many")
	cmd.Flags().StringVar(&req.Snapshot, "snapshot", "", "go on from this snapshot (default: from now)")
	cmd.Flags().Int64Var(&seed, "seed", 0, "seed of the first, the others follow (default: the rollout's)")
	cmd.Flags().IntVar(&req.WaitS, "wait", 0, "seconds to wait for a place where the server is full")
	return cmd
}

func printForks(out io.Writer, made rollouts.GroupCreated) error {
	tw := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	_, _ = fmt.Fprintln(tw, "ROLLOUT\tGROUP\tTOKEN")
	for _, f := range made.Rollouts {
		_, _ = fmt.Fprintf(tw, "%s\t%s\t%s\n", f.ID, made.ID, f.AgentToken)
	}
	return tw.Flush()
}

// newRolloutsSnapshot keeps a rollout's files, lists what is kept, or removes it.
func newRolloutsSnapshot() *cobra.Command {
	var r remote
	var list bool
	drop := ""
	cmd := &cobra.Command{
		Use: "snapshot ROLLOUT", Short: "Keep a rollout's files, to fork from later", Args: cobra.ExactArgs(1),
		Long: `Keeps a running rollout's files as they are once the call that runs has ended. Snapshots go with their rollout, at the
latest with the last fork of them. With --list or --drop it lists them, or removes one.`,
		Example: "  proctor rollouts snapshot r_7f3a\n  proctor rollouts snapshot r_7f3a --list --json\n  proctor rollouts snapshot r_7f3a --drop s_19c2",
		RunE: func(cmd *cobra.Command, args []string) error {
			if list && drop != "" {
				return usage(errors.New("rollouts snapshot: --list and --drop exclude each other"))
			}
			c, err := r.open()
			if err != nil {
				return err
			}
			out, ctx := cmd.OutOrStdout(), cmd.Context()
			switch {
			case drop != "":
				if err := c.DropSnapshot(ctx, args[0], drop); err != nil {
					return answered(err)
				}
				if r.asJSON {
					return writeJSON(out, map[string]any{"removed": []string{drop}})
				}
				return nil
			case list:
				all, err := c.Snapshots(ctx, args[0])
				if err != nil {
					return answered(err)
				}
				if r.asJSON {
					return writeJSON(out, map[string]any{"snapshots": all})
				}
				return printSnapshots(out, all)
			}
			s, err := c.Snapshot(ctx, args[0])
			if err != nil {
				return answered(err)
			}
			if r.asJSON {
				return writeJSON(out, s)
			}
			return printSnapshots(out, []rollouts.Snapshot{s})
		},
	}
	r.flags(cmd)
	cmd.Flags().BoolVar(&list, "list", false, "list them")
	cmd.Flags().StringVar(&drop, "drop", "", "remove this one")
	return cmd
}

func printSnapshots(out io.Writer, all []rollouts.Snapshot) error {
	tw := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	_, _ = fmt.Fprintln(tw, "SNAPSHOT\tAFTER CALL\tTOOK\tCREATED")
	for _, s := range all {
		_, _ = fmt.Fprintf(tw, "%s\t%d\t%d ms\t%s\n", s.ID, s.Ordinal, s.TookMS, s.CreatedAt.Local().Format(time.DateTime))
	}
	return tw.Flush()
}
