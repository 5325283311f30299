package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"proctor/rules"
)

// newRulesLint reports what is wrong with packs.
func newRulesLint() *cobra.Command {
	var asJSON, strict, noTests, withCore bool
	cmd := &cobra.Command{
		Use:   "lint [PATH...]",
		Short: "Check packs: schema, references, expressions, tests",
		Long: `Lint reports errors, which keep a pack from being used, and warnings. Each finding has a code,
its place, the line, and a remedy; docs/rules-lint.md lists the codes.

Exit status: 0 no error, 1 some error (with --strict: some finding), 2 usage.`,
		Example: "  proctor rules lint my-pack.yaml\n  proctor rules lint packs/ --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			p, probs, err := loadPacks(args, withCore)
			if err != nil {
				return err
			}
			if len(rules.Errors(probs)) == 0 {
				var rep *rules.Report
				if !noTests {
					if rep, err = rules.SelfTest(cmd.Context(), p, normaliseCase); err != nil {
						return infra(err)
					}
				}
				found := rules.Lint(p, rep)
				if withCore && len(args) > 0 {
					own, _ := rules.Load(args...)
					found = slices.DeleteFunc(found, func(p rules.Problem) bool { return !slices.Contains(own.Files(), p.File) })
				}
				probs = append(probs, found...)
			}
			if err := printProblems(cmd, probs, asJSON); err != nil {
				return err
			}
			if len(rules.Errors(probs)) > 0 || strict && len(probs) > 0 {
				return failed(errSilent)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	cmd.Flags().BoolVar(&strict, "strict", false, "fail on warnings too")
	withCoreFlag(cmd, &withCore)
	cmd.Flags().BoolVar(&noTests, "no-tests", false, "leave the inline tests out")
	return cmd
}

// printProblems prints findings as JSON or as text with excerpts.
func printProblems(cmd *cobra.Command, probs []rules.Problem, asJSON bool) error {
	out := cmd.OutOrStdout()
	if asJSON {
		if probs == nil {
			probs = []rules.Problem{}
		}
		return writeJSON(out, probs)
	}
	for _, p := range probs {
		where := p.File
		if p.Line > 0 {
			where = fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
		}
		fmt.Fprintf(out, "%s: %s: %s [%s]\n", where, p.Severity, p.Message, p.Code)
		if p.Excerpt != "" {
			fmt.Fprintf(out, "    %s\n", p.Excerpt)
		}
		if p.Remedy != "" {
			fmt.Fprintf(out, "    remedy: %s\n", p.Remedy)
		}
	}
	errs := len(rules.Errors(probs))
	_, err := fmt.Fprintf(out, "%s, %s\n", plural(errs, "error"), plural(len(probs)-errs, "warning"))
	return err
}
