package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"proctor/tasks"
)

// taskRow is a task in a list.
type taskRow struct {
	ID         string `json:"id"`
	Image      string `json:"image"` // "" where it is built
	Workdir    string `json:"workdir"`
	Network    string `json:"network"` // the agent's
	Grader     string `json:"grader"`  // its kind; "" where the task cannot be graded
	Report     string `json:"report"`
	FailToPass int    `json:"fail_to_pass"`
	PassToPass int    `json:"pass_to_pass"`
	Solution   bool   `json:"solution"`
	Folder     string `json:"folder"`
}

// taskList is what `tasks ls --json` prints.
type taskList struct {
	Tasks    []taskRow       `json:"tasks"`
	Problems []tasks.Problem `json:"problems"`
}

// newTasksLs lists tasks and what is wrong with others.
func newTasksLs() *cobra.Command {
	var asJSON bool
	var flags taskFlags
	cmd := &cobra.Command{
		Use:   "ls PATH...",
		Short: "List tasks, and what is wrong with those that do not load",
		Long: `Lists the tasks that the paths hold: a task.yaml, a task's folder, a folder of such folders, or a file of rows
of a published set (JSONL, JSON, parquet; .gz too). What is wrong is told on standard error as file, line
or row, field and remedy; the other tasks are listed all the same.

Exit status: 0 every task loads, 2 one does not.`,
		Example: "  proctor tasks ls testdata/tasks\n  proctor tasks ls verified.parquet\n  proctor tasks ls --json tasks/ | jq -r '.tasks[].id'",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			settings, err := flags.settings()
			if err != nil {
				return err
			}
			list := listTasks(flags.load(cmd.Context(), settings, args))
			if err := printTasks(cmd.OutOrStdout(), list, asJSON); err != nil {
				return infra(err)
			}
			return problemsError(cmd.ErrOrStderr(), list.Problems)
		},
	}
	flags.add(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

func listTasks(loaded []*tasks.Task, problems []tasks.Problem) taskList {
	list := taskList{Tasks: []taskRow{}, Problems: append([]tasks.Problem{}, problems...)}
	for _, t := range loaded {
		row := taskRow{ID: t.ID, Image: t.Image, Workdir: t.Workdir, Network: t.Network.Agent, Solution: t.Solution != "", Folder: t.Dir}
		if t.Grader != nil {
			row.Grader, row.Report = t.Grader.Kind, t.Grader.Report
			row.FailToPass, row.PassToPass = len(t.Grader.FailToPass), len(t.Grader.PassToPass)
		}
		list.Tasks = append(list.Tasks, row)
	}
	return list
}

func printTasks(out io.Writer, list taskList, asJSON bool) error {
	if asJSON {
		return writeJSON(out, list)
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "TASK\tIMAGE\tWORKDIR\tNETWORK\tGRADER\tTESTS\tSOLUTION")
	for _, t := range list.Tasks {
		image, grader, solution := t.Image, "none", "no"
		if image == "" {
			image = "(built)"
		}
		if t.Grader != "" {
			grader = t.Grader + "/" + t.Report
		}
		if t.Solution {
			solution = "yes"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d+%d\t%s\n", t.ID, image, t.Workdir, t.Network, grader, t.FailToPass, t.PassToPass, solution)
	}
	return w.Flush()
}

// problemsError tells problems on w and gives the error that ends the command; nil without any.
func problemsError(w io.Writer, problems []tasks.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	for _, p := range problems {
		fmt.Fprintln(w, p.String())
	}
	return usage(fmt.Errorf("%s in the task files; see above", plural(len(problems), "problem")))
}
