package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"proctor/rules"
)

// newRulesTest runs inline tests.
func newRulesTest() *cobra.Command {
	var asJSON, cover, evade, withCore bool
	cmd := &cobra.Command{
		Use:   "test [PATH...]",
		Short: "Run the inline tests of packs",
		Long: `Test runs every inline test through the normaliser and the matcher, and each flag test of bash
again in disguise: quoted, by variable, by bash -c, eval and xargs, by absolute path.

Exit status: 0 every test holds, 1 some fail, 2 usage or a pack with errors.`,
		Example: "  proctor rules test my-pack.yaml\n  proctor rules test --cover --evasions",
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := usablePacks(cmd.ErrOrStderr(), args, withCore)
			if err != nil {
				return err
			}
			rep, err := rules.SelfTest(cmd.Context(), p, normaliseCase)
			if err != nil {
				return infra(err)
			}
			if asJSON {
				err = writeJSON(cmd.OutOrStdout(), rep)
			} else {
				err = printReport(cmd.OutOrStdout(), rep, cover, evade)
			}
			if err == nil && !rep.OK {
				return failed(errSilent)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	withCoreFlag(cmd, &withCore)
	cmd.Flags().BoolVar(&cover, "cover", false, "list the alternatives with the flag tests that hit them")
	cmd.Flags().BoolVar(&evade, "evasions", false, "list the disguises that are not seen through")
	return cmd
}

// printReport prints a self-test for a reader.
func printReport(w io.Writer, rep *rules.Report, cover, evade bool) error {
	failures, tried, caught, alts, covered := 0, 0, 0, 0, 0
	for _, r := range rep.Rules {
		for _, f := range r.Failures {
			failures++
			fmt.Fprintf(w, "FAIL %s: %s: %s: %s\n     %s\n", r.Rule, f.Pos, f.Kind, f.Message, f.Test)
		}
		for _, f := range r.TodoPassing {
			fmt.Fprintf(w, "todo %s: %s: %s %s\n     %s\n", r.Rule, f.Pos, f.Kind, f.Message, f.Test)
		}
		tried, caught = tried+r.Mutations.Tried, caught+r.Mutations.Caught
		for _, a := range r.Alternatives {
			alts++
			if a.Hits > 0 {
				covered++
			}
			if cover {
				fmt.Fprintf(w, "%4d  %s alternative %d (%s) %s\n", a.Hits, r.Rule, a.Alternative, a.Entity, a.Pos)
			}
		}
		if evade {
			for _, e := range r.Mutations.Evasions {
				fmt.Fprintf(w, "evades %s: %s: %s\n", r.Rule, e.Disguise, e.Command)
			}
		}
	}
	_, err := fmt.Fprintf(w, "%s, %s, %d failed; %d of %s hit by a flag test; %d of %s caught\n", plural(len(rep.Rules), "rule"),
		plural(rep.Tests, "test"), failures, covered, plural(alts, "alternative"), caught, plural(tried, "disguise"))
	return err
}
