package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"proctor/internal/trajectory/credit"
)

// newCredit computes reference advantages.
func newCredit() *cobra.Command {
	var asJSON bool
	var o credit.Options
	var blocked string
	cmd := &cobra.Command{
		Use:   "credit FILE",
		Short: "Compute reference advantages and returns for recorded rollouts",
		Long: `Credit reads rollouts with their segments, masks, values and rewards, and prints the advantage of every
token, so that a trainer can hold its own numbers against them. FILE may be - for standard input.

Estimators: ` + strings.Join(credit.Estimators(), ", ") + `.
grpo, grpo-nostd, rloo and maxrl compare the rollouts of a group; gae, vcppo, compaction, chained and step
read the critic's values. Blocked turns: keep changes nothing, mask sets their loss_mask to 0 and leaves all
advantages, penalty:X adds a reward of X on their last token, reject makes the rollout's outcome 0.

FILE is {"rollouts": [{"id", "group", "reward", "segments": [{"id", "order", "action_mask", "loss_mask",
"values", "rewards", "turns", "blocked_turns"}]}]}. A rollout whose reward is null is left out of its group.

Exit status: 0 done, 2 usage or a bad document.`,
		Example: `  proctor credit --estimator grpo rollouts.json
  proctor credit --estimator compaction --lam 0.95 --blocked penalty:-0.5 --json rollouts.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.Blocked, err = credit.ParseBlocked(blocked); err != nil {
				return usage(err)
			}
			res, err := creditOf(cmd.InOrStdin(), args[0], o)
			if err != nil {
				return usage(err)
			}
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), res)
			}
			return printCredit(cmd.OutOrStdout(), res)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&asJSON, "json", false, "print one JSON document, with every token")
	f.StringVar(&o.Estimator, "estimator", "grpo", "`NAME` of the estimator")
	f.Float64Var(&o.Gamma, "gamma", 1, "discount per action token, 0 to 1")
	f.Float64Var(&o.Lambda, "lam", 1, "GAE's lambda, 0 to 1")
	f.Float64Var(&o.LambdaAlpha, "lam-alpha", 0, "where positive, lambda is 1 - 1/(`ALPHA` x action tokens) instead")
	f.IntVar(&o.DDoF, "ddof", 1, "of grpo's standard deviation: 1 (verl, slime) or 0")
	f.StringVar(&blocked, "blocked", "keep", "keep, mask, penalty:X or reject")
	f.BoolVar(&o.ShareReward, "share-reward", false, "gae and vcppo: each of K segments gets reward/K, not the whole")
	f.BoolVar(&o.Whiten, "whiten", false, "whiten the advantages over all action tokens")
	_ = cmd.RegisterFlagCompletionFunc("estimator", cobra.FixedCompletions(credit.Estimators(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("blocked", cobra.FixedCompletions([]string{"keep", "mask", "penalty:", "reject"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func creditOf(stdin io.Reader, file string, o credit.Options) (*credit.Result, error) {
	r := stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		r = f
	}
	doc, err := credit.Read(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	res, err := credit.Estimate(doc, o)
	if errors.Is(err, credit.ErrInput) {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return res, err
}

// printCredit prints a line a segment: how many tokens train, and the first and last advantage of them.
func printCredit(out io.Writer, res *credit.Result) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "ROLLOUT\tSEGMENT\tTRAINS\tN_AFTER\tFIRST\tLAST\tNOTE")
	for _, r := range res.Rollouts {
		for _, s := range r.Segments {
			n, first, last := 0, 0.0, 0.0
			for t, m := range s.LossMask {
				if m == 1 {
					if n == 0 {
						first = s.Advantages[t]
					}
					n, last = n+1, s.Advantages[t]
				}
			}
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%.6f\t%.6f\t%s\n", r.ID, s.ID, n, s.NAfter, first, last, r.Dropped)
		}
	}
	return w.Flush()
}
