package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"proctor/internal/config"
	render "proctor/internal/report"
	"proctor/tasks"
	"proctor/tasks/grading"
)

// newTasksValidate proves tasks both ways.
func newTasksValidate() *cobra.Command {
	var flags taskFlags
	var only []string
	var runs, parallel int
	var asJSON bool
	var report string
	cmd := &cobra.Command{
		Use:   "validate PATHS",
		Short: "Prove that each task's solution passes and that doing nothing fails",
		Long: `Prepares each task's image, lists what leaked in it before hardening, and grades the task's solution and an
empty patch, each -k times, in fresh sandboxes. A task that a run of its own kind contradicts is flaky.

Exit status: 0 every task holds, 1 one does not, 2 a task file is wrong, 3 the machine failed.`,
		Example: "  proctor tasks validate testdata/tasks\n  proctor tasks validate rows.jsonl -j 4 --id psf__requests-6028 --report validation.html\n  proctor tasks validate -k 5 --json tasks/ | jq '.[] | select(.ok | not)'",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if runs < 1 || parallel < 1 {
				return usage(errors.New("-k and --parallel take numbers from 1"))
			}
			settings, err := flags.settings()
			if err != nil {
				return err
			}
			list, problems := flags.load(cmd.Context(), settings, args)
			if list, err = chosen(list, only); err != nil {
				return err
			}
			for _, p := range problems {
				fmt.Fprintln(cmd.ErrOrStderr(), p.String())
			}
			found := []grading.Validation{}
			if len(list) > 0 {
				v := grading.Validator{Runs: runs, Parallel: parallel, Progress: onTerminal(cmd.ErrOrStderr())}
				if found, err = validate(cmd.Context(), settings, v, list); err != nil {
					return err
				}
			}
			if report != "" {
				if err := writeWith(report, func(w io.Writer) error { return render.ValidationHTML(w, found) }); err != nil {
					return infra(err)
				}
			}
			if err := printValidations(cmd.OutOrStdout(), found, asJSON); err != nil {
				return infra(err)
			}
			return validationVerdict(found, len(problems))
		},
	}
	flags.add(cmd.Flags())
	cmd.Flags().StringSliceVar(&only, "id", nil, "only these tasks of the set")
	cmd.Flags().IntVarP(&runs, "runs", "k", 3, "gradings of each kind")
	cmd.Flags().IntVarP(&parallel, "parallel", "j", runtime.NumCPU(), "gradings at once")
	cmd.Flags().StringVar(&report, "report", "", "also write a page to `FILE`: results, leaks, time, and what failed why")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// chosen gives the tasks of these ids; all where there are none.
func chosen(list []*tasks.Task, ids []string) ([]*tasks.Task, error) {
	if len(ids) == 0 {
		return list, nil
	}
	var out []*tasks.Task
	for _, id := range ids {
		i := slices.IndexFunc(list, func(t *tasks.Task) bool { return t.ID == id })
		if i < 0 {
			return nil, usage(fmt.Errorf("--id: no task is called %q", id))
		}
		out = append(out, list[i])
	}
	return out, nil
}

// validate runs v on an engine of its own, whose sandboxes no server takes for its own.
func validate(ctx context.Context, settings config.Config, v grading.Validator, list []*tasks.Task) ([]grading.Validation, error) {
	log := newLogger(settings)
	engine, err := ownEngine(ctx, "validate", settings, log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = engine.Close() }()
	preparer, err := newPreparer(engine, settings, log)
	if err != nil {
		return nil, err
	}
	v.Engine, v.Prepare, v.Logger = engine, preparer.Prepare, log
	found, err := v.Validate(ctx, list)
	if err != nil {
		return nil, infra(err)
	}
	return found, nil
}

// onTerminal shows progress where w is a terminal; nil elsewhere.
func onTerminal(w io.Writer) func(task string, done, total int) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return func(task string, done, total int) {
		end := ""
		if done == total {
			end = "\n"
		}
		fmt.Fprintf(w, "\r\x1b[K%d of %d gradings, last %s%s", done, total, task, end)
	}
}

func printValidations(w io.Writer, found []grading.Validation, asJSON bool) error {
	if asJSON {
		return writeJSON(w, found)
	}
	for _, v := range found {
		word := "ok"
		if !v.OK {
			word = "FAILED"
		}
		if _, err := fmt.Fprintf(w, "%-7s %s: gold %s x%d, empty %s x%d, %s closed, %.1f s\n", word, v.TaskID,
			orNone(v.Gold.Outcome), v.Gold.Runs, orNone(v.Empty.Outcome), v.Empty.Runs, plural(len(v.Leaks), "leak"), float64(v.DurationMS)/1000); err != nil {
			return err
		}
		if err := printLeaks(w, v.Leaks); err != nil {
			return err
		}
		for _, problem := range v.Problems {
			if _, err := fmt.Fprintf(w, "        %s\n", strings.ReplaceAll(problem, "\n", "\n        ")); err != nil {
				return err
			}
		}
	}
	return nil
}

// leaksShown is how many leaks of one kind are listed: a project has a hundred later tags.
const leaksShown = 4

// printLeaks lists the first leaks of each kind, and how many more there are.
func printLeaks(w io.Writer, leaks []tasks.Leak) error {
	seen := map[string]int{}
	for _, leak := range leaks {
		if seen[leak.Kind]++; seen[leak.Kind] > leaksShown {
			continue
		}
		if _, err := fmt.Fprintf(w, "        leak %-10s %s\n", leak.Kind, leak.String()); err != nil {
			return err
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(seen)) {
		if more := seen[kind] - leaksShown; more > 0 {
			if _, err := fmt.Fprintf(w, "        leak %-10s and %d more; --json lists them\n", kind, more); err != nil {
				return err
			}
		}
	}
	return nil
}

func orNone(s string) string {
	if s == "" {
		return "not run"
	}
	return s
}

// validationVerdict turns validations into the exit status: bad task files before trouble of the
// machine before tasks that do not hold.
func validationVerdict(found []grading.Validation, problems int) error {
	failures, broken := 0, 0
	for _, v := range found {
		if v.Infra {
			broken++
		} else if !v.OK {
			failures++
		}
	}
	switch {
	case problems > 0:
		return usage(fmt.Errorf("%s in the task files; see above", plural(problems, "problem")))
	case broken > 0:
		return infra(fmt.Errorf("%d of %s could not be validated on this machine", broken, plural(len(found), "task")))
	case failures > 0:
		return failed(fmt.Errorf("%d of %s failed validation", failures, plural(len(found), "task")))
	}
	return nil
}
