package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"proctor/internal/config"
	"proctor/tasks"
)

// builtRow is what became of one task's image.
type builtRow struct {
	TaskID     string       `json:"task_id"`
	OK         bool         `json:"ok"`
	Image      string       `json:"image"` // hardened; "" where there is none
	Raw        string       `json:"raw"`   // before hardening
	Base       string       `json:"base"`  // the start commit
	Leaks      []tasks.Leak `json:"leaks"` // that hardening took out
	Error      string       `json:"error"` // "" where it is ok
	DurationMS int64        `json:"duration_ms"`

	err error
}

// builtList is what `tasks build --json` prints.
type builtList struct {
	Tasks    []builtRow      `json:"tasks"`
	Problems []tasks.Problem `json:"problems"`
}

// newTasksBuild makes the images of tasks ahead of their rollouts.
func newTasksBuild() *cobra.Command {
	var flags taskFlags
	var only []string
	var parallel int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "build PATH...",
		Short: "Make and harden the images of tasks, or find those that are there",
		Long: `Makes each task's image: the set's own is fetched; a Dockerfile, or a recipe of base image, packages,
repository and lines, is built; then it is hardened and proved clean. Stages of a build are kept by
content ("proctor/built:<digest>") and shared by tasks that begin alike; a second run takes all of it from
the cache. Builds get this host's proxy, package index and certificate settings, and no image keeps them.

Rows with an install recipe take their repository from a git bundle beside the file, repos/<owner>__<name>.bundle
or the row's own "bundle", else they clone it.

Exit status: 0 every image is there, 1 a task's cannot be made, 2 a task is wrong, 3 the machine failed.`,
		Example: "  proctor tasks build rows.jsonl\n  proctor tasks build -j 4 --json verified.parquet --id django__django-11099",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if parallel < 1 {
				return usage(errors.New("-j takes a number from 1"))
			}
			settings, err := flags.settings()
			if err != nil {
				return err
			}
			list, problems := flags.load(cmd.Context(), settings, args)
			if list, err = chosen(list, only); err != nil {
				return err
			}
			rows, err := buildAll(cmd.Context(), settings, list, parallel)
			if err != nil {
				return err
			}
			if err := printBuilt(cmd.OutOrStdout(), builtList{rows, append([]tasks.Problem{}, problems...)}, asJSON); err != nil {
				return infra(err)
			}
			return builtVerdict(cmd.ErrOrStderr(), rows, problems)
		},
	}
	flags.add(cmd.Flags())
	cmd.Flags().StringSliceVar(&only, "id", nil, "only these tasks of the set")
	cmd.Flags().IntVarP(&parallel, "parallel", "j", runtime.NumCPU(), "images at once")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

func buildAll(ctx context.Context, settings config.Config, list []*tasks.Task, parallel int) ([]builtRow, error) {
	rows := make([]builtRow, len(list))
	if len(list) == 0 {
		return rows, nil
	}
	log := newLogger(settings)
	engine, err := ownEngine(ctx, "build", settings, log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = engine.Close() }()
	preparer, err := newPreparer(engine, settings, log)
	if err != nil {
		return nil, err
	}
	line := newProgress(os.Stderr)
	defer line.done()
	var mu sync.Mutex
	done := 0
	say := func(task, step string) {
		mu.Lock()
		defer mu.Unlock()
		line.say("%d of %d images; %s: %s", done, len(list), task, step)
	}
	preparer.Progress = say
	slots := make(chan struct{}, parallel)
	var wg sync.WaitGroup
	for i, task := range list {
		slots <- struct{}{}
		wg.Add(1)
		go func() {
			defer func() { <-slots; wg.Done() }()
			say(task.ID, "preparing")
			rows[i] = buildOne(ctx, preparer, task)
			mu.Lock()
			done++
			mu.Unlock()
		}()
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, infra(ctx.Err())
	}
	return rows, nil
}

func buildOne(ctx context.Context, preparer *tasks.Preparer, task *tasks.Task) builtRow {
	started := time.Now()
	row := builtRow{TaskID: task.ID, Leaks: []tasks.Leak{}}
	p, err := preparer.Prepare(ctx, task, true)
	row.DurationMS = time.Since(started).Milliseconds()
	if err != nil {
		row.Error, row.err = err.Error(), err
		return row
	}
	row.OK, row.Image, row.Raw, row.Base = true, p.Image.Ref, p.Raw.Ref, p.Base
	row.Leaks = append(row.Leaks, p.Leaks...)
	return row
}

func printBuilt(w io.Writer, list builtList, asJSON bool) error {
	if asJSON {
		return writeJSON(w, list)
	}
	for _, r := range list.Tasks {
		word, rest := "ok", fmt.Sprintf("%s, %s closed", r.Image, plural(len(r.Leaks), "leak"))
		if !r.OK {
			word, rest = "FAILED", r.Error
		}
		if _, err := fmt.Fprintf(w, "%-7s %s: %s, %.1f s\n", word, r.TaskID, rest, float64(r.DurationMS)/1000); err != nil {
			return err
		}
	}
	return nil
}

// builtVerdict turns rows into the exit status.
func builtVerdict(stderr io.Writer, rows []builtRow, problems []tasks.Problem) error {
	if err := problemsError(stderr, problems); err != nil {
		return err
	}
	failures := 0
	var worst error
	for _, r := range rows {
		if r.OK {
			continue
		}
		failures++
		status := prepareStatus(r.err)
		var e *exitError
		if errors.As(status, &e) && e.status == exitInfra {
			worst = status
		}
	}
	switch {
	case worst != nil:
		return infra(fmt.Errorf("%d of %d images could not be made on this machine", failures, len(rows)))
	case failures > 0:
		return failed(fmt.Errorf("%d of %d images cannot be made", failures, len(rows)))
	}
	return nil
}
