package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"proctor/internal/client"
	"proctor/internal/rollouts"
)

// newRollouts groups the commands on rollouts of a running server.
func newRollouts() *cobra.Command {
	cmd := &cobra.Command{Use: "rollouts", Short: "List, show, watch, fork and remove rollouts of a running server"}
	cmd.AddCommand(newRolloutsLs(), newRolloutsShow(), newRolloutsWatch(), newRolloutsRm(), newRolloutsFork(), newRolloutsSnapshot())
	return cmd
}

// newRolloutsLs lists rollouts.
func newRolloutsLs() *cobra.Command {
	var r remote
	var task, group, status string
	cmd := &cobra.Command{
		Use: "ls", Short: "List rollouts, newest first", Args: cobra.NoArgs,
		Example: "  proctor rollouts ls --status running --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := r.open()
			if err != nil {
				return err
			}
			query := url.Values{"task_id": {task}, "group_id": {group}, "status": {status}, "limit": {"1000"}}
			all := []rollouts.View{}
			for {
				page, next, err := c.List(cmd.Context(), query)
				if err != nil {
					return answered(err)
				}
				all = append(all, page...)
				if next == "" {
					break
				}
				query.Set("cursor", next)
			}
			if r.asJSON {
				return writeJSON(cmd.OutOrStdout(), map[string]any{"rollouts": all})
			}
			return printRollouts(cmd.OutOrStdout(), all)
		},
	}
	r.flags(cmd)
	cmd.Flags().StringVar(&task, "task", "", "of this task only")
	cmd.Flags().StringVar(&group, "group", "", "of this group only")
	cmd.Flags().StringVar(&status, "status", "", "creating, running, submitted, graded, failed or deleted only")
	return cmd
}

func printRollouts(out io.Writer, all []rollouts.View) error {
	tw := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	_, _ = fmt.Fprintln(tw, "ROLLOUT\tTASK\tPOLICY\tMODE\tSTATUS\tCALLS\tBLOCKED\tFLAGGED\tREWARD\tCREATED")
	for _, v := range all {
		_, _ = fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s\n", v.ID, v.TaskID, v.Policy.Name, v.Mode, v.Status,
			v.Calls, v.Blocked, v.Flagged, ptr(v.Reward), v.CreatedAt.Local().Format(time.DateTime))
	}
	return tw.Flush()
}

// newRolloutsShow shows one rollout with its calls.
func newRolloutsShow() *cobra.Command {
	var r remote
	cmd := &cobra.Command{
		Use: "show ROLLOUT", Short: "Show a rollout's record", Args: cobra.ExactArgs(1),
		Example: "  proctor rollouts show r_7f3a\n  proctor rollouts show r_7f3a --json > trajectory.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := r.open()
			if err != nil {
				return err
			}
			t, err := c.Trajectory(cmd.Context(), args[0])
			if err != nil {
				return answered(err)
			}
			if r.asJSON {
				return writeJSON(cmd.OutOrStdout(), t)
			}
			return printTrajectory(cmd.OutOrStdout(), t)
		},
	}
	r.flags(cmd)
	return cmd
}

func printTrajectory(out io.Writer, t *rollouts.Trajectory) error {
	v := t.Rollout
	_, _ = fmt.Fprintf(out, "%s  task %s  policy %s  mode %s  status %s  reward %s\n", v.ID, v.TaskID, v.Policy.Name, v.Mode, v.Status, ptr(v.Reward))
	tw := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	_, _ = fmt.Fprintln(tw, "#\tBY\tTOOL\tDECISION\tACTION\tCLASS\tRULE\tARGUMENTS")
	for _, c := range t.Calls {
		rule := ""
		if len(c.Verdict.Hits) > 0 {
			rule = c.Verdict.Hits[0].Rule
		}
		_, _ = fmt.Fprintf(tw, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%.80s\n", c.Ordinal, c.Principal, c.Name, c.Verdict.Decision, c.Verdict.Action, c.Verdict.Class, rule, c.Arguments)
	}
	return tw.Flush()
}

// newRolloutsWatch follows a rollout until it ends.
func newRolloutsWatch() *cobra.Command {
	var r remote
	cmd := &cobra.Command{
		Use: "watch ROLLOUT", Short: "Follow a rollout's calls until it ends", Args: cobra.ExactArgs(1),
		Long:    "Follows a rollout's events: a line each, or with --json one JSON document a line. Ends when the rollout does.",
		Example: "  proctor rollouts watch r_7f3a",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := r.open()
			if err != nil {
				return err
			}
			err = c.Watch(cmd.Context(), args[0], func(e client.Event) error {
				if r.asJSON {
					_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n", e.Raw)
					return err
				}
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "%d  %-10s %s\n", e.Number, e.Kind, e.Line())
				return err
			})
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return answered(err)
		},
	}
	r.flags(cmd)
	return cmd
}

// newRolloutsRm ends rollouts.
func newRolloutsRm() *cobra.Command {
	var r remote
	cmd := &cobra.Command{
		Use: "rm ROLLOUT...", Short: "End rollouts and free their sandboxes; records stay", Args: cobra.MinimumNArgs(1),
		Example: "  proctor rollouts rm r_7f3a r_81bc",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := r.open()
			if err != nil {
				return err
			}
			var errs []error
			removed := []string{}
			for _, id := range args {
				if err := c.Delete(cmd.Context(), id); err != nil {
					errs = append(errs, fmt.Errorf("%s: %w", id, err))
					continue
				}
				removed = append(removed, id)
			}
			if r.asJSON {
				errs = append(errs, writeJSON(cmd.OutOrStdout(), map[string]any{"removed": removed}))
			}
			return answered(errors.Join(errs...))
		},
	}
	r.flags(cmd)
	return cmd
}
