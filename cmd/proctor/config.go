package main

import (
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"proctor/internal/config"
)

// newConfig groups the commands on settings.
func newConfig() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Show the settings that a server would have"}
	cmd.AddCommand(newConfigShow())
	return cmd
}

// newConfigShow prints the settings after file, variables and flags; secrets are left out.
func newConfigShow() *cobra.Command {
	var file string
	var asJSON bool
	flags := config.Default()
	cmd := &cobra.Command{
		Use: "show", Short: "Print the settings as a configuration file; secrets are left out", Args: cobra.NoArgs,
		Example: "  proctor config show > proctor.yaml\n  PROCTOR_PRESET=strict proctor config show --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := settings(cmd, file, flags)
			if err != nil {
				return usage(err)
			}
			c = c.Shown()
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), c)
			}
			return yaml.NewEncoder(cmd.OutOrStdout()).Encode(c)
		},
	}
	serveFlags(cmd, &file, &flags)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}
