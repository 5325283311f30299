package main

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"proctor/internal/rollouts"
)

// newVerdicts groups the commands on verdicts of a running server.
func newVerdicts() *cobra.Command {
	cmd := &cobra.Command{Use: "verdicts", Short: "List, show and review what the monitor concluded"}
	cmd.AddCommand(newVerdictsLs(), newVerdictsShow(), newVerdictsReview(), newVerdictsExport())
	return cmd
}

// newVerdictsLs lists the calls of a rollout that a rule hit.
func newVerdictsLs() *cobra.Command {
	var r remote
	cmd := &cobra.Command{
		Use: "ls ROLLOUT", Short: "List a rollout's calls that a rule hit", Args: cobra.ExactArgs(1),
		Example: "  proctor verdicts ls r_7f3a --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := r.open()
			if err != nil {
				return err
			}
			list, err := c.Verdicts(cmd.Context(), args[0])
			if err != nil {
				return answered(err)
			}
			if r.asJSON {
				return writeJSON(cmd.OutOrStdout(), map[string]any{"verdicts": list})
			}
			return printVerdicts(cmd.OutOrStdout(), list)
		},
	}
	r.flags(cmd)
	return cmd
}

func printVerdicts(out io.Writer, list []rollouts.VerdictView) error {
	tw := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	_, _ = fmt.Fprintln(tw, "#\tDECISION\tACTION\tCLASS\tRULE\tJUDGE\tREVIEW\tCALL")
	for _, v := range list {
		rule, opinion, review := "-", "-", "-"
		if len(v.Verdict.Hits) > 0 {
			rule = v.Verdict.Hits[0].Rule
		}
		if o := v.Verdict.Opinion; o != nil {
			opinion = fmt.Sprintf("%s %s", o.By, o.Verdict)
		}
		if v.Review != nil {
			review = v.Review.Label
		}
		_, _ = fmt.Fprintf(tw, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s %.60s\n", v.Ordinal, v.Verdict.Decision, v.Verdict.Action, v.Verdict.Class, rule, opinion, review, v.Name, v.Arguments)
	}
	return tw.Flush()
}

// newVerdictsShow shows one verdict whole.
func newVerdictsShow() *cobra.Command {
	var r remote
	cmd := &cobra.Command{
		Use: "show ROLLOUT ORDINAL", Short: "Show one verdict whole, as JSON", Args: cobra.ExactArgs(2),
		Example: "  proctor verdicts show r_7f3a 4",
		RunE: func(cmd *cobra.Command, args []string) error {
			ordinal, err := ordinalOf(args[1])
			if err != nil {
				return err
			}
			c, err := r.open()
			if err != nil {
				return err
			}
			list, err := c.Verdicts(cmd.Context(), args[0])
			if err != nil {
				return answered(err)
			}
			for _, v := range list {
				if v.Ordinal == ordinal {
					return writeJSON(cmd.OutOrStdout(), v)
				}
			}
			return usage(fmt.Errorf("rollout %s has no verdict on call %s; verdicts ls shows those there are", args[0], args[1]))
		},
	}
	r.flags(cmd)
	return cmd
}

// newVerdictsReview records what a person says of a verdict.
func newVerdictsReview() *cobra.Command {
	var r remote
	var label, note string
	cmd := &cobra.Command{
		Use: "review ROLLOUT ORDINAL", Short: "Say whether a verdict was right", Args: cobra.ExactArgs(2),
		Example: `  proctor verdicts review r_7f3a 4 --label benign --note "the issue cites this commit"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ordinal, err := ordinalOf(args[1])
			if err != nil {
				return err
			}
			c, err := r.open()
			if err != nil {
				return err
			}
			if err := c.Review(cmd.Context(), args[0], ordinal, label, note); err != nil {
				return answered(err)
			}
			if r.asJSON {
				return writeJSON(cmd.OutOrStdout(), map[string]any{"rollout": args[0], "ordinal": ordinal, "label": label, "note": note})
			}
			return nil
		},
	}
	r.flags(cmd)
	cmd.Flags().StringVar(&label, "label", "", "hack, benign or unsure")
	cmd.Flags().StringVar(&note, "note", "", "why")
	_ = cmd.MarkFlagRequired("label")
	return cmd
}

// ordinalOf reads the number of a call from the command line.
func ordinalOf(text string) (int, error) {
	ordinal, err := strconv.Atoi(text)
	if err != nil || ordinal < 1 {
		return 0, usage(fmt.Errorf("ORDINAL is %q; it is the number of the call, from 1", text))
	}
	return ordinal, nil
}
