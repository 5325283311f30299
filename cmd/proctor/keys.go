package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"proctor/internal/keys"
)

// newKeys groups what is done with the API keys of a data folder.
func newKeys() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Make, list and remove API keys with roles",
		Long: `API keys of a data folder, beside its trainer key, which opens everything. Roles: reviewer reads records and
reviews verdicts; trainer also runs rollouts; admin also does what concerns the whole server. A running server
follows within a second, and logs who changed what by the key's name.`,
	}
	cmd.AddCommand(newKeysAdd(), newKeysLs(), newKeysRm())
	return cmd
}

// keysFlags are common to all three.
type keysFlags struct {
	data   string
	asJSON bool
}

func (k *keysFlags) add(cmd *cobra.Command) {
	data := os.Getenv("PROCTOR_DATA")
	if data == "" {
		data = ".proctor"
	}
	cmd.Flags().StringVar(&k.data, "data", data, "data folder of the server")
	cmd.Flags().BoolVar(&k.asJSON, "json", false, "print one JSON document")
}

func newKeysAdd() *cobra.Command {
	var k keysFlags
	var role string
	cmd := &cobra.Command{
		Use: "add NAME", Short: "Make a key and print its secret, which is shown only now", Args: cobra.ExactArgs(1),
		Example: "  proctor keys add reviewers --role reviewer",
		RunE: func(cmd *cobra.Command, args []string) error {
			secret, err := keys.Add(filepath.Clean(k.data), args[0], role)
			if err != nil {
				return keysError(err)
			}
			if k.asJSON {
				return writeJSON(cmd.OutOrStdout(), map[string]string{"name": args[0], "role": role, "key": secret})
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), secret)
			return err
		},
	}
	cmd.Flags().StringVar(&role, "role", "reviewer", "reviewer, trainer or admin")
	k.add(cmd)
	return cmd
}

func newKeysLs() *cobra.Command {
	var k keysFlags
	cmd := &cobra.Command{
		Use: "ls", Short: "List keys, without their secrets", Args: cobra.NoArgs,
		Example: "  proctor keys ls --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := keys.List(filepath.Clean(k.data))
			if err != nil {
				return keysError(err)
			}
			if k.asJSON {
				return writeJSON(cmd.OutOrStdout(), map[string]any{"keys": all})
			}
			tw := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 4, 2, ' ', 0)
			_, _ = fmt.Fprintln(tw, "NAME\tROLE\tMADE") // Flush gives the error
			for _, key := range all {
				_, _ = fmt.Fprintf(tw, "%s\t%s\t%s\n", key.Name, key.Role, key.CreatedAt.Format(time.RFC3339))
			}
			return tw.Flush()
		},
	}
	k.add(cmd)
	return cmd
}

func newKeysRm() *cobra.Command {
	var k keysFlags
	cmd := &cobra.Command{
		Use: "rm NAME", Short: "Remove a key", Args: cobra.ExactArgs(1),
		Example: "  proctor keys rm reviewers",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := keys.Remove(filepath.Clean(k.data), args[0]); err != nil {
				return keysError(err)
			}
			if k.asJSON {
				return writeJSON(cmd.OutOrStdout(), map[string]string{"removed": args[0]})
			}
			return nil
		},
	}
	k.add(cmd)
	return cmd
}

// keysError tells a folder that cannot be used from bad input.
func keysError(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return infra(err)
	}
	return usage(err)
}
