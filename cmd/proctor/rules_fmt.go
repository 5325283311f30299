package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"proctor/rules"
)

// newRulesFmt puts packs into canonical form.
func newRulesFmt() *cobra.Command {
	var write, check bool
	cmd := &cobra.Command{
		Use:   "fmt FILE...",
		Short: "Put packs into canonical form",
		Long: `Fmt orders keys as the schema does and indents by two spaces; comments, quotes and flow style stay.
It prints the result, or with --write changes the files.

Exit status: 0 done, 1 with --check where some file would change, 2 usage or a file that is not YAML.`,
		Example: "  proctor rules fmt --check packs/*.yaml\n  proctor rules fmt --write my-pack.yaml",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			differ := false
			for _, file := range args {
				data, err := os.ReadFile(file)
				if err != nil {
					return usage(err)
				}
				out, probs := rules.Format(file, data)
				if len(probs) > 0 {
					return usage(probs[0])
				}
				changed := !bytes.Equal(out, data)
				differ = differ || changed
				switch {
				case check || write:
					if changed {
						fmt.Fprintln(cmd.OutOrStdout(), file)
					}
					if write && changed {
						err = os.WriteFile(file, out, 0o644)
					}
				default:
					_, err = cmd.OutOrStdout().Write(out)
				}
				if err != nil {
					return infra(err)
				}
			}
			if check && differ {
				return failed(errSilent)
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&write, "write", "w", false, "change the files, and name those that changed")
	cmd.Flags().BoolVar(&check, "check", false, "only name the files that would change")
	cmd.MarkFlagsMutuallyExclusive("write", "check")
	return cmd
}
