package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"proctor/rules"
)

// newRulesNew writes a pack to start from.
func newRulesNew() *cobra.Command {
	var pack, rule, category string
	cmd := &cobra.Command{
		Use:   "new FILE",
		Short: "Write a pack with one rule and its tests, to start from",
		Long: `New writes a pack that lints clean and whose tests hold. It never overwrites a file.

Exit status: 0 done, 2 usage, or the file exists.`,
		Example: "  proctor rules new my-pack.yaml --pack mine --rule no-upstream",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := rules.Template(pack, rule, category)
			if err != nil {
				return usage(err)
			}
			f, err := os.OpenFile(args[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
			if errors.Is(err, fs.ErrExist) {
				return usage(fmt.Errorf("%s exists; choose another name", args[0]))
			}
			if err != nil {
				return usage(err)
			}
			_, err = f.WriteString(text)
			if cerr := f.Close(); err == nil {
				err = cerr
			}
			if err != nil {
				return infra(err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "wrote %s; next: proctor rules test %s\n", args[0], args[0])
			return err
		},
	}
	cmd.Flags().StringVar(&pack, "pack", "mine", "pack `ID`")
	cmd.Flags().StringVar(&rule, "rule", "first-rule", "rule `ID`")
	cmd.Flags().StringVar(&category, "category", rules.UpstreamFetch, "`CLASS` of cheating")
	return cmd
}
