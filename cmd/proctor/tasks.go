package main

import "github.com/spf13/cobra"

// newTasks groups what is done with task sets.
func newTasks() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tasks",
		Short: "Work with task sets",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTasksLs(), newTasksShow(), newTasksImport(), newTasksBuild(), newTasksValidate())
	return cmd
}
