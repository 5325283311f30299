package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"proctor/internal/config"
	render "proctor/internal/report"
	"proctor/internal/rollouts"
	"proctor/tasks"
	"proctor/tasks/grading/predictions"
)

// gradeOptions are the flags of grade.
type gradeOptions struct {
	flags          taskFlags
	sets, packs    []string
	out, runID     string
	only           []string
	parallel       int
	once, noReview bool
	asJSON         bool
}

// newGrade grades predictions.
func newGrade() *cobra.Command {
	var o gradeOptions
	cmd := &cobra.Command{
		Use:   "grade PREDICTIONS...",
		Short: "Grade patches that came as predictions, without any agent run",
		Long: `Grade reads SWE-bench's predictions (JSONL, a JSON list, or a JSON object by instance id; - for standard input), grades each
patch in a fresh sandbox as a rollout's work is graded, and writes the reports of SWE-bench's harness. A row that is no prediction, or
is for no task, fails alone, with its class; so does a patch that does not apply or is over 64 MiB. What came out as resolved is run
once more with must-fail tests planted among the expected ones (--once leaves that out).

The folder --out keeps a journal: started again, what was graded is not graded again, unless patch or task differ; what the machine
failed is. It holds grades.jsonl, MODEL.RUN.json, logs/run_evaluation/RUN/MODEL/INSTANCE/report.json, and report.html: one page with
score, outcomes, time, and what each witness said of each patch.

Exit status: 0 all are resolved, 1 some are not, 2 rows or task files are wrong, 3 the machine failed some.`,
		Example: `  proctor grade --tasks swebench.jsonl predictions.jsonl
  proctor grade --tasks tasks/ --out grades/m -j 8 --json preds.json | jq .models
  proctor run ... --out runs/m; proctor grade --tasks tasks/ runs/m/predictions.jsonl`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.grade(cmd, args) },
	}
	o.flags.add(cmd.Flags())
	f := cmd.Flags()
	f.StringSliceVar(&o.sets, "tasks", nil, "task files, folders or sets that the predictions are for")
	f.StringSliceVar(&o.packs, "packs", nil, "rule packs beside the built-in ones, for the review of patches")
	f.StringSliceVar(&o.only, "id", nil, "only these tasks of the set")
	f.StringVar(&o.out, "out", "grades", "`FOLDER` for journal and reports")
	f.StringVar(&o.runID, "run-id", "proctor", "name of the run in the reports' paths")
	f.IntVarP(&o.parallel, "parallel", "j", runtime.NumCPU(), "gradings at once")
	f.BoolVar(&o.once, "once", false, "do not run the tests of what came out as resolved again")
	f.BoolVar(&o.noReview, "no-review", false, "do not read the patches by rules and judge")
	f.BoolVar(&o.asJSON, "json", false, "print one JSON document")
	return cmd
}

// grade reads, grades and prints.
func (o *gradeOptions) grade(cmd *cobra.Command, files []string) error {
	ctx := cmd.Context()
	if o.parallel < 1 {
		return usage(errors.New("--parallel takes a number from 1"))
	}
	if len(o.sets) == 0 {
		return usage(errors.New("--tasks is missing: name the task files, folders or sets that the predictions are for"))
	}
	settings, err := o.flags.settings()
	if err != nil {
		return err
	}
	for _, file := range files {
		if info, err := os.Stat(file); file != "-" && (err != nil || info.IsDir()) {
			return usage(fmt.Errorf("%s: is no file of predictions", file))
		}
	}
	list, problems := o.flags.load(ctx, settings, o.sets)
	for _, p := range problems {
		fmt.Fprintln(cmd.ErrOrStderr(), p.String())
	}
	if list, err = chosen(list, o.only); err != nil {
		return err
	}
	if len(list) == 0 {
		return usage(errors.New("the sets hold no task that can be graded"))
	}
	results, reports, err := o.run(cmd, settings, list, files)
	if err != nil {
		return err
	}
	sum := summarise(reports, results, len(problems))
	if err := writeWith(filepath.Join(o.out, "report.html"), func(w io.Writer) error { return render.GradesHTML(w, sum.Models, sum.Results) }); err != nil {
		return infra(err)
	}
	if err := o.print(cmd.OutOrStdout(), sum); err != nil {
		return infra(err)
	}
	return sum.verdict()
}

// run grades on an engine of its own.
func (o *gradeOptions) run(cmd *cobra.Command, settings config.Config, list []*tasks.Task, files []string) ([]predictions.Result, map[string]predictions.RunReport, error) {
	ctx, log := cmd.Context(), newLogger(settings)
	engine, err := ownEngine(ctx, "grade", settings, log)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = engine.Close() }()
	folder, err := predictions.Open(o.out, o.runID)
	if err != nil {
		return nil, nil, usage(err)
	}
	defer func() { _ = folder.Close() }()
	preparer, err := newPreparer(engine, settings, log)
	if err != nil {
		return nil, nil, err
	}
	runner := predictions.Runner{
		Engine: engine, Tasks: list, Prepare: preparer.Prepare,
		Known: folder.Known, Parallel: o.parallel, Once: o.once, Logger: log,
	}
	if !o.noReview {
		if runner.Review, err = reviewer(settings, o.packs); err != nil {
			return nil, nil, err
		}
	}
	line, done := newProgress(os.Stderr), 0
	runner.Done = func(r predictions.Result, patch []byte) error {
		done++
		line.say("%d graded, last %s: %s", done, r.InstanceID, outcomeOf(r))
		if r.Grade == nil {
			line.done()
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s: %s\n", r.Place, r.Class, r.Error)
		}
		return folder.Keep(r, patch)
	}
	results, err := runner.Grade(ctx, func(each func(predictions.Row) error) error { return readAll(cmd.InOrStdin(), files, each) })
	line.done()
	var bad *fileError
	switch {
	case errors.As(err, &bad):
		fmt.Fprintln(cmd.ErrOrStderr(), bad.Error())
		results = append(results, predictions.Result{Class: predictions.ClassRow, Error: bad.Error(), Place: bad.file})
	case err != nil:
		return nil, nil, infra(err)
	}
	set := make([]string, 0, len(list))
	for _, t := range list {
		set = append(set, t.ID)
	}
	reports, err := folder.Reports(set, results)
	if err != nil {
		return nil, nil, infra(err)
	}
	return results, reports, nil
}

// fileError is trouble with a file of predictions as a whole.
type fileError struct {
	file string
	err  error
}

func (e *fileError) Error() string { return e.err.Error() }
func (e *fileError) Unwrap() error { return e.err }

// readAll reads files of predictions one after another. One that breaks off does not keep the next from
// being read.
func readAll(stdin io.Reader, files []string, each func(predictions.Row) error) error {
	var broken error
	for _, file := range files {
		err := readFile(stdin, file, func(row predictions.Row) error {
			if err := each(row); err != nil {
				return &stopped{err}
			}
			return nil
		})
		var e *stopped
		if errors.As(err, &e) {
			return e.err
		}
		if err != nil && broken == nil {
			broken = &fileError{file, err}
		}
	}
	return broken
}

// stopped marks an error that ends the run, as told from one of a file.
type stopped struct{ err error }

func (e *stopped) Error() string { return e.err.Error() }

func readFile(stdin io.Reader, file string, each func(predictions.Row) error) error {
	if file == "-" {
		return predictions.Read("standard input", stdin, each)
	}
	f, err := os.Open(filepath.Clean(file))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return predictions.Read(file, f, each)
}

// reviewer reads patches by the rules and the judge of the settings.
func reviewer(settings config.Config, packs []string) (func(context.Context, *tasks.Task, []byte) *tasks.Review, error) {
	all, err := packsWithCore(append(slices.Clone(settings.Packs), packs...))
	if err != nil {
		return nil, err
	}
	log := newLogger(settings)
	decider, err := newJudge(settings.Judge, log)
	if err != nil {
		return nil, usage(err)
	}
	return rollouts.Reviewer(newPackSet(all), decider, policyOf(settings), log), nil
}

func outcomeOf(r predictions.Result) string {
	if r.Grade == nil {
		return r.Class
	}
	return r.Grade.Outcome
}
