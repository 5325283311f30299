package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"proctor/rules"
)

// newRulesDocs makes a page for each rule.
func newRulesDocs() *cobra.Command {
	var dir, rule string
	cmd := &cobra.Command{
		Use:   "docs [PATH...]",
		Short: "Make a Markdown page for each rule",
		Long: `Docs writes a page for each rule and an index (README.md) into --out, or prints the page of one
--rule.

Exit status: 0 done, 1 no such rule, 2 usage or a pack with errors.`,
		Example: "  proctor rules docs --out rule-pages\n  proctor rules docs my-pack.yaml --rule mine/no-upstream",
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := usablePacks(cmd.ErrOrStderr(), args, false)
			if err != nil {
				return err
			}
			switch {
			case rule != "":
				r, ok := p.Rule(rule)
				if !ok {
					return failed(fmt.Errorf("there is no rule %q; `proctor rules ls` lists them", rule))
				}
				_, err = io.WriteString(cmd.OutOrStdout(), rules.Page(r))
				return err
			case dir == "":
				return usage(fmt.Errorf("name a folder with --out, or a rule with --rule"))
			}
			if err := writePages(dir, p); err != nil {
				return infra(err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "wrote %s to %s\n", plural(len(p.Rules()), "page"), dir)
			return err
		},
	}
	cmd.Flags().StringVar(&dir, "out", "", "`FOLDER` for the pages; made where it is missing")
	cmd.Flags().StringVar(&rule, "rule", "", "print the page of this rule (full `ID`)")
	cmd.MarkFlagsMutuallyExclusive("out", "rule")
	return cmd
}

// writePages writes every page and the index.
func writePages(dir string, p *rules.Packs) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, r := range p.Rules() {
		if err := os.WriteFile(filepath.Join(dir, rules.PageName(r)), []byte(rules.Page(r)), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "README.md"), []byte(rules.Index(p.Rules())), 0o644)
}
