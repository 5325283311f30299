package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// newCall makes one tool call.
func newCall() *cobra.Command {
	var r remote
	var callID, key, token string
	cmd := &cobra.Command{
		Use:   "call ROLLOUT TOOL [ARGUMENTS]",
		Short: "Make one tool call in a rollout",
		Long: `Makes one tool call. ARGUMENTS is the tool's arguments as JSON; "-" reads them from standard input.

With --token (or PROCTOR_AGENT_TOKEN) the call is the agent's; without, it is made with the trainer key and recorded as
the harness's, unjudged. Prints the output as it is, and exits with 1 where the call's own exit code is not 0.`,
		Example: `  proctor call r_7f3a bash '{"command": "ls"}'
  proctor call r_7f3a view '{"path": "README.md"}' --token "$AGENT_TOKEN" --json`,
		Args: cobra.RangeArgs(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			arguments, err := callArguments(args, cmd.InOrStdin())
			if err != nil {
				return usage(err)
			}
			c, err := r.open()
			if err != nil {
				return err
			}
			var headers []string
			if key != "" {
				headers = []string{"Idempotency-Key", key}
			}
			seen, err := c.Call(cmd.Context(), args[0], token, callID, args[1], arguments, headers...)
			if err != nil {
				return answered(err)
			}
			if r.asJSON {
				err = writeJSON(cmd.OutOrStdout(), seen)
			} else {
				_, err = io.WriteString(cmd.OutOrStdout(), seen.Output)
			}
			if err == nil && (seen.ExitCode == nil || *seen.ExitCode != 0) {
				return failed(errSilent)
			}
			return err
		},
	}
	r.flags(cmd)
	cmd.Flags().StringVar(&callID, "call-id", "cli", "the call's name, echoed")
	cmd.Flags().StringVar(&key, "idempotency-key", "", "runs the call once, however often it is repeated with this key")
	cmd.Flags().StringVar(&token, "token", os.Getenv("PROCTOR_AGENT_TOKEN"), "the rollout's agent token")
	return cmd
}

// callArguments reads a call's arguments from the command line or standard input.
func callArguments(args []string, stdin io.Reader) (json.RawMessage, error) {
	text := []byte("{}")
	if len(args) == 3 {
		text = []byte(args[2])
	}
	if string(text) == "-" {
		var err error
		if text, err = io.ReadAll(io.LimitReader(stdin, 16<<20)); err != nil {
			return nil, fmt.Errorf("read arguments: %w", err)
		}
	}
	if !json.Valid(text) {
		return nil, fmt.Errorf("ARGUMENTS is not JSON: %.80q; quote it for the shell, such as '{\"command\": \"ls\"}'", text)
	}
	return text, nil
}
