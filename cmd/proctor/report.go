package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"

	"github.com/spf13/cobra"

	"proctor/internal/evalrun"
	render "proctor/internal/report"
	"proctor/internal/rollouts"
)

// newReport makes reports of runs, and of a server's rollouts.
func newReport() *cobra.Command {
	var r remote
	var format, output, taskID, groupID string
	cmd := &cobra.Command{
		Use:   "report [RUN_FOLDER]",
		Short: "Make the report of a run, or of a server's rollouts",
		Long: `Report computes the figures of a run folder anew from its journal and rewrites report.json, report.html, the pages, predictions
and SWE-bench's reports; also while the run goes on. Without a folder it reports on the rollouts of a server, which it finds as
client commands do, and prints; attempts are numbered by task in order of creation.`,
		Example: `  proctor report runs/m
  proctor report runs/m --format markdown
  proctor report --format html --output server.html`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var rep *evalrun.Report
			var err error
			if len(args) == 1 {
				rep, err = reportFolder(args[0])
			} else {
				rep, err = reportServer(cmd.Context(), &r, url.Values{"task_id": {taskID}, "group_id": {groupID}})
			}
			if err != nil {
				return err
			}
			if r.asJSON {
				format = "json"
			}
			write, ok := map[string]func(io.Writer) error{
				"text": func(w io.Writer) error { return printRun(w, rep) }, "json": func(w io.Writer) error { return writeJSON(w, rep) },
				"markdown": func(w io.Writer) error { return render.RunMarkdown(w, rep) },
				"html":     func(w io.Writer) error { return render.RunHTML(w, rep, nil) },
			}[format]
			if !ok {
				return usage(fmt.Errorf("--format is %q; there are text, json, markdown, html", format))
			}
			if output == "" {
				return write(cmd.OutOrStdout())
			}
			if err := writeWith(output, write); err != nil {
				return infra(err)
			}
			return nil
		},
	}
	r.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&format, "format", "text", "text, json, markdown, html")
	f.StringVarP(&output, "output", "o", "", "`FILE` to write to, in place of standard output")
	f.StringVar(&taskID, "task", "", "only this task's rollouts, of a server")
	f.StringVar(&groupID, "group", "", "only this group's rollouts, of a server")
	return cmd
}

// reportFolder makes a run folder's reports anew.
func reportFolder(dir string) (*evalrun.Report, error) {
	rep, err := evalrun.Open(dir)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, usage(fmt.Errorf("%w; `proctor run --out` makes one", err))
		}
		return nil, usage(err)
	}
	if err := errors.Join(evalrun.Rewrite(dir, rep), render.RunPages(dir, rep)); err != nil {
		return nil, infra(err)
	}
	return rep, nil
}

// reportServer reports on the rollouts of a server.
func reportServer(ctx context.Context, r *remote, query url.Values) (*evalrun.Report, error) {
	c, err := r.open()
	if err != nil {
		return nil, err
	}
	for name := range query {
		if query.Get(name) == "" {
			query.Del(name)
		}
	}
	query.Set("limit", "200")
	var views []rollouts.View
	for {
		some, next, err := c.List(ctx, query)
		if err != nil {
			return nil, answered(err)
		}
		views = append(views, some...)
		if next == "" {
			break
		}
		query.Set("cursor", next)
	}
	var records []*rollouts.Trajectory
	for _, v := range views {
		t, err := c.Trajectory(ctx, v.ID)
		if err != nil {
			return nil, answered(err)
		}
		records = append(records, t)
	}
	return evalrun.FromRecords(c.URL, records), nil
}
