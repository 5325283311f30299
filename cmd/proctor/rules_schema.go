package main

import (
	"github.com/spf13/cobra"

	"proctor/rules"
)

// newRulesSchema prints the JSON Schema of packs.
func newRulesSchema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of packs, for editors",
		Long: `Schema prints the JSON Schema of pack files. An editor with a YAML language server completes and
checks packs whose first line is

    # yaml-language-server: $schema=pack.schema.json`,
		Example: "  proctor rules schema > pack.schema.json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := rules.Schema()
			if err != nil {
				return infra(err)
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
}
