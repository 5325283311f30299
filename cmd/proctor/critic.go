package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"proctor/internal/client"
	"proctor/internal/critic"
	"proctor/internal/rollouts"
)

// newCritic groups what is done with generative critics.
func newCritic() *cobra.Command {
	cmd := &cobra.Command{Use: "critic", Short: "Export what a generative critic trains on, and measure one"}
	cmd.AddCommand(newCriticEval(), newCriticPairs())
	return cmd
}

// newCriticEval measures a critic's values.
func newCriticEval() *cobra.Command {
	var asJSON bool
	var out string
	c := critic.Client{APIKey: os.Getenv("PROCTOR_CRITIC_API_KEY")}
	cmd := &cobra.Command{
		Use:   "eval FILE...",
		Short: "Measure a critic on pairs of state and return",
		Long: `Eval reads critic pairs (JSON lines, as critic pairs writes them; - for standard input) and prints the mean
squared error of the critic's values, that of always saying the mean return, the explained variance, the
share of answers that parse, and, over pairs that name the same fork, how often the highest value is on a
best continuation. With --critic-url it asks an OpenAI-compatible critic; without, it takes the values that
the pairs hold. The critic's key comes from PROCTOR_CRITIC_API_KEY.

A bad line is reported with its number and the rest goes on.
Exit status: 0 done, 2 usage, an unreadable file or some bad line, 3 the critic answered nothing.`,
		Example: `  proctor critic eval pairs.jsonl
  proctor critic eval pairs.jsonl --critic-url http://127.0.0.1:8000/v1 --critic-model m --json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			pairs, bad, err := readPairs(cmd.InOrStdin(), args)
			if err != nil {
				return usage(err)
			}
			pairs = critic.Pool(pairs)
			if c.BaseURL != "" {
				if err := askPairs(cmd.Context(), &c, pairs); err != nil {
					return err
				}
			}
			if out != "" {
				if err := writePairs(out, pairs); err != nil {
					return infra(err)
				}
			}
			if err := printScore(cmd.OutOrStdout(), critic.Measure(pairs), asJSON); err != nil {
				return err
			}
			for _, err := range bad {
				fmt.Fprintln(cmd.ErrOrStderr(), "proctor: "+err.Error())
			}
			if len(bad) > 0 {
				return usage(errSilent)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.BoolVar(&asJSON, "json", false, "print one JSON document")
	f.StringVar(&out, "out", "", "write the pairs with the critic's values to `FILE`")
	f.StringVar(&c.BaseURL, "critic-url", "", "base `URL` of an OpenAI-compatible critic, with /v1")
	f.StringVar(&c.Model, "critic-model", "", "model that the critic's server serves")
	f.IntVar(&c.MaxTokens, "max-tokens", 1024, "longest answer, in tokens")
	f.IntVar(&c.Concurrency, "concurrency", 8, "questions at a time")
	f.DurationVar(&c.Timeout, "timeout", 2*time.Minute, "longest wait for one answer")
	return cmd
}

func readPairs(stdin io.Reader, files []string) (pairs []critic.Pair, bad []error, err error) {
	for _, name := range files {
		r := stdin
		if name != "-" {
			f, err := os.Open(name)
			if err != nil {
				return nil, nil, err
			}
			defer f.Close()
			r = f
		}
		got, wrong := critic.ReadPairs(r)
		pairs = append(pairs, got...)
		for _, err := range wrong {
			bad = append(bad, fmt.Errorf("%s: %w", name, err))
		}
	}
	return pairs, bad, nil
}

// askPairs sets the value of every pair to the critic's. A critic that answers no question at all is not
// measured: that is an outage, not a score.
func askPairs(ctx context.Context, c *critic.Client, pairs []critic.Pair) error {
	answered, last := 0, ""
	for i := range pairs {
		p := &pairs[i]
		values, err := c.Ask(ctx, []critic.State{{Kind: p.Kind, Prefix: p.Prefix, SHA256: p.State}}, p.Conditioning)
		if err != nil {
			return usage(err)
		}
		p.Value = values[0].Value
		if last = values[0].Error; last == "" {
			answered++
		}
	}
	if answered == 0 && len(pairs) > 0 {
		return infra(fmt.Errorf("the critic at %s answered none of %d questions: %s", c.BaseURL, len(pairs), last))
	}
	return nil
}

func writePairs(name string, pairs []critic.Pair) error {
	var buf bytes.Buffer
	if err := critic.WritePairs(&buf, pairs); err != nil {
		return err
	}
	return os.WriteFile(name, buf.Bytes(), 0o644)
}

func printScore(out io.Writer, s critic.Score, asJSON bool) error {
	if asJSON {
		return writeJSON(out, s)
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "pairs\t%d\nparsed\t%d (%.3f)\n", s.Pairs, s.Parsed, s.ParseRate)
	fmt.Fprintf(w, "mean squared error\t%s\nof the mean return\t%s\nexplained variance\t%s\nreward\t%s\n",
		decimals(s.MSE), decimals(s.BaselineMSE), decimals(s.ExplainedVariance), decimals(s.Reward))
	fmt.Fprintf(w, "top 1 among continuations\t%s of %d forks\n", decimals(s.Top1), s.Forks)
	return w.Flush()
}

// decimals shows a figure that may be missing.
func decimals(x *float64) string {
	if x == nil {
		return "-"
	}
	return fmt.Sprintf("%.4f", *x)
}

// newCriticPairs exports what a critic trains on.
func newCriticPairs() *cobra.Command {
	var r remote
	var group, kinds string
	cmd := &cobra.Command{
		Use:   "pairs [ROLLOUT...]",
		Short: "Write the states of graded rollouts with their returns as JSON lines",
		Long: `Pairs writes each state of graded rollouts (before a turn, at the start of a segment, behind a verdict) with
what a critic is told beside it and the rollout's reward. States that are equal, text for text, are one
pair whose return is the mean. A rollout without a reward is refused.`,
		Example: `  proctor critic pairs r_1 r_2 > pairs.jsonl
  proctor critic pairs --group g_1 --kinds turn > pairs.jsonl`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if (group == "") == (len(args) == 0) {
				return usage(fmt.Errorf("name rollouts, or a group with --group, and not both"))
			}
			c, err := r.open()
			if err != nil {
				return err
			}
			if group != "" {
				if args, err = membersOf(cmd.Context(), c, group); err != nil {
					return answered(err)
				}
			}
			var all []critic.Pair
			for _, id := range args {
				var body []byte
				path := "/v1/rollouts/" + url.PathEscape(id) + "/critic-pairs?kinds=" + url.QueryEscape(kinds)
				if err := c.Do(cmd.Context(), "GET", path, "", nil, &body); err != nil {
					return answered(fmt.Errorf("%s: %w", id, err))
				}
				pairs, bad := critic.ReadPairs(strings.NewReader(string(body)))
				if len(bad) > 0 {
					return infra(bad[0])
				}
				all = append(all, pairs...)
			}
			all = critic.Pool(all)
			if r.asJSON {
				return writeJSON(cmd.OutOrStdout(), map[string]any{"pairs": all})
			}
			return critic.WritePairs(cmd.OutOrStdout(), all)
		},
	}
	r.flags(cmd)
	cmd.Flags().StringVar(&group, "group", "", "all rollouts of this group that have a reward")
	cmd.Flags().StringVar(&kinds, "kinds", "", "turn, segment, verdict, with commas; default all")
	return cmd
}

// membersOf gives the graded rollouts of a group.
func membersOf(ctx context.Context, c *client.Client, group string) ([]string, error) {
	var g rollouts.GroupView
	if err := c.Do(ctx, "GET", "/v1/groups/"+url.PathEscape(group), "", nil, &g); err != nil {
		return nil, err
	}
	var ids []string
	for _, r := range g.Rollouts {
		if r.Reward != nil {
			ids = append(ids, r.ID)
		}
	}
	return ids, nil
}
