package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"proctor/tasks"
)

// importedList is what `tasks import --json` prints.
type importedList struct {
	Folder   string          `json:"folder"`
	Tasks    []taskRow       `json:"tasks"`
	Problems []tasks.Problem `json:"problems"`
}

// newTasksImport writes tasks of published sets down as native folders.
func newTasksImport() *cobra.Command {
	var flags taskFlags
	var only []string
	var out string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "import PATH... --out FOLDER",
		Short: "Write the tasks of a published set down as native folders",
		Long: `Reads the tasks of published sets and writes each to a folder of its own below --out, with a task.yaml, its
patches and scripts, so that it can be read, changed and kept. All other commands read the sets
themselves: nothing needs to be imported first.

A row that is wrong is told with file, row and field, and the others are written. A folder that is there
already is left as it is, and said so.

Exit status: 0 all are written, 2 a row is wrong or its folder is there already.`,
		Example: "  proctor tasks import rows.jsonl --out tasks/\n  proctor tasks import lite.parquet --source swe-bench --out tasks/ --id django__django-11099",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return usage(errors.New("--out is missing: name the folder to write to"))
			}
			settings, err := flags.settings()
			if err != nil {
				return err
			}
			list, problems := flags.load(cmd.Context(), settings, args)
			if list, err = chosen(list, only); err != nil {
				return err
			}
			written, more, err := importAll(list, out)
			if err != nil {
				return infra(err)
			}
			problems = append(problems, more...)
			rows := listTasks(written, problems)
			if asJSON {
				err = writeJSON(cmd.OutOrStdout(), importedList{out, rows.Tasks, rows.Problems})
			} else {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s written to %s\n", plural(len(written), "task"), out)
			}
			if err != nil {
				return infra(err)
			}
			return problemsError(cmd.ErrOrStderr(), problems)
		},
	}
	flags.add(cmd.Flags())
	cmd.Flags().StringVar(&out, "out", "", "the folder to write to; made if it is not there")
	cmd.Flags().StringSliceVar(&only, "id", nil, "only these tasks of the set")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// importAll copies tasks' folders; each appears whole or not at all.
func importAll(list []*tasks.Task, out string) ([]*tasks.Task, []tasks.Problem, error) {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, nil, err
	}
	var written []*tasks.Task
	var problems []tasks.Problem
	for _, task := range list {
		to := filepath.Join(out, task.ID)
		if _, err := os.Lstat(to); err == nil {
			problems = append(problems, tasks.Problem{File: to, Task: task.ID, Message: "is there already", Remedy: "remove it, or name another folder"})
			continue
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, err
		}
		if err := importOne(task, out, to); err != nil {
			return nil, nil, err
		}
		copied := *task
		copied.Dir = to
		written = append(written, &copied)
	}
	return written, problems, nil
}

func importOne(task *tasks.Task, out, to string) error {
	tmp, err := os.MkdirTemp(out, ".new-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	if err := os.CopyFS(tmp, os.DirFS(task.Dir)); err != nil {
		return err
	}
	text, err := task.YAML()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(tmp, tasks.TaskFile), text, 0o644); err != nil {
		return err
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	return os.Rename(tmp, to)
}
