package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/spf13/cobra"

	"proctor/internal/client"
	"proctor/internal/rollouts"
	"proctor/monitor"
	"proctor/tasks"
)

// newVerdictsExport writes reviewed verdicts as rows of a corpus.
func newVerdictsExport() *cobra.Command {
	var r remote
	cmd := &cobra.Command{
		Use:   "export [ROLLOUT...]",
		Short: "Write reviewed calls as rows of a corpus",
		Long: `Writes each call that a person has reviewed as one row of a corpus, JSON lines on stdout: of the rollouts named,
else of all. Reviews of hack and benign become the label, unsure becomes grey, the note becomes the reason. The row
holds the task's variables, what the sandbox said of revisions and hidden paths, and the earlier calls that ran, so
that rules eval, judge eval and eval read it as they read any corpus.

A row of a task that the server no longer holds, or that the rollout brought itself, has no variables; that is told.
Exit status: 0 done, 2 usage or no such rollout, 3 no server.`,
		Example: "  proctor verdicts export > reviewed.jsonl\n  proctor verdicts export r_7f3a | proctor rules eval /dev/stdin",
		RunE: func(cmd *cobra.Command, ids []string) error {
			c, err := r.open()
			if err != nil {
				return err
			}
			if len(ids) == 0 {
				if ids, err = allRollouts(cmd.Context(), c); err != nil {
					return answered(err)
				}
			}
			e := reviewExport{c: c, out: cmd.OutOrStdout(), errs: cmd.ErrOrStderr(), tasks: map[string]*tasks.Task{}}
			for _, id := range ids {
				if err := e.rollout(cmd.Context(), id); err != nil {
					return answered(err)
				}
			}
			return nil
		},
	}
	r.flags(cmd)
	_ = cmd.Flags().MarkHidden("json") // rows are JSON as they are
	return cmd
}

// allRollouts gives the ids of all rollouts, newest first.
func allRollouts(ctx context.Context, c *client.Client) ([]string, error) {
	var ids []string
	query := url.Values{"limit": {"500"}}
	for {
		views, next, err := c.List(ctx, query)
		if err != nil {
			return nil, err
		}
		for _, v := range views {
			ids = append(ids, v.ID)
		}
		if next == "" {
			return ids, nil
		}
		query.Set("cursor", next)
	}
}

// reviewExport writes rows.
type reviewExport struct {
	c         *client.Client
	out, errs io.Writer
	tasks     map[string]*tasks.Task
}

// rollout writes the reviewed calls of one rollout.
func (e *reviewExport) rollout(ctx context.Context, id string) error {
	list, err := e.c.Verdicts(ctx, id)
	if err != nil {
		return err
	}
	var record *rollouts.Trajectory
	for _, v := range list {
		if v.Review == nil {
			continue
		}
		if record == nil {
			if record, err = e.c.Trajectory(ctx, id); err != nil {
				return err
			}
		}
		row := reviewedRow(record, e.task(ctx, record.Rollout.TaskID), v)
		var line bytes.Buffer
		enc := json.NewEncoder(&line)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(row); err != nil {
			return err
		}
		if _, err := e.out.Write(line.Bytes()); err != nil {
			return infra(err)
		}
	}
	return nil
}

// task gives a task, nil where the server does not hold it, which is told once.
func (e *reviewExport) task(ctx context.Context, id string) *tasks.Task {
	if t, asked := e.tasks[id]; asked {
		return t
	}
	t, err := e.c.Task(ctx, id)
	var p *client.Problem
	switch {
	case err == nil:
	case errors.As(err, &p):
		fmt.Fprintf(e.errs, "task %s: rows have no variables: %s\n", id, p.Detail)
		t = nil
	default:
		fmt.Fprintf(e.errs, "task %s: rows have no variables: %v\n", id, err)
		t = nil
	}
	e.tasks[id] = t
	return t
}

// setupMost bounds the earlier calls of a row. Rows of more are cut at the oldest.
const setupMost = 100

// corpusRow is a row as corpora have it.
type corpusRow struct {
	ID        string       `json:"id"`
	Label     string       `json:"label"`
	Class     string       `json:"class"`
	Technique string       `json:"technique"`
	Why       string       `json:"why"`
	Source    string       `json:"source"`
	Task      corpusTask   `json:"task"`
	Facts     corpusFacts  `json:"facts"`
	Setup     []corpusCall `json:"setup,omitempty"`
	Call      corpusCall   `json:"call"`
}

type corpusTask struct {
	ID          string              `json:"id"`
	Workdir     string              `json:"workdir,omitempty"`
	Instruction string              `json:"instruction,omitempty"`
	Vars        map[string][]string `json:"vars,omitempty"`
}

type corpusFacts struct {
	Refs  map[string]string `json:"refs,omitempty"`
	Paths map[string]string `json:"paths,omitempty"`
}

type corpusCall struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

// reviewedRow makes the row of a reviewed call.
func reviewedRow(record *rollouts.Trajectory, t *tasks.Task, v rollouts.VerdictView) corpusRow {
	row := corpusRow{
		ID: fmt.Sprintf("%s-%d", v.RolloutID, v.Ordinal), Label: v.Review.Label, Class: v.Verdict.Class, Why: v.Review.Note,
		Source: "review of " + v.RolloutID + ", " + v.Review.At.Format("2006-01-02"), Technique: "reviewed",
		Task: corpusTask{ID: record.Rollout.TaskID}, Call: corpusCall{v.Name, v.Arguments},
	}
	if row.Label == "unsure" {
		row.Label = "grey"
	}
	if len(v.Verdict.Hits) > 0 {
		row.Technique = v.Verdict.Hits[0].Rule
		if row.Class == "" {
			row.Class = v.Verdict.Hits[0].Class
		}
	}
	if t != nil {
		row.Task.Workdir, row.Task.Instruction = t.Workdir, t.Instruction
		row.Task.Vars = t.RuleVars()
		delete(row.Task.Vars, "workdir")
		delete(row.Task.Vars, "instruction")
	}
	for _, rec := range record.Calls {
		switch {
		case rec.Ordinal == v.Ordinal:
			row.Facts = factsOf(rec)
		case rec.Ordinal > v.Ordinal || rec.Principal != monitor.Agent || rec.Verdict.Action == monitor.Decoyed:
		case rec.Name == monitor.ToolBash || rec.Name == monitor.ToolView || rec.Name == monitor.ToolCreate || rec.Name == monitor.ToolStrReplace || rec.Name == monitor.ToolInsert:
			row.Setup = append(row.Setup, corpusCall{rec.Name, rec.Arguments})
		}
	}
	row.Setup = row.Setup[max(0, len(row.Setup)-setupMost):]
	return row
}

// factsOf gives what the sandbox said of a call's revisions and paths.
func factsOf(rec *monitor.Record) corpusFacts {
	f := corpusFacts{Refs: map[string]string{}, Paths: map[string]string{}}
	if rec.Event == nil {
		return f
	}
	for _, c := range rec.Event.Commands {
		for _, ref := range c.Git.Refs {
			f.Refs[ref.Text] = string(ref.Standing)
		}
		for _, p := range c.Hidden {
			f.Paths[p] = "hidden"
		}
	}
	for _, s := range rec.Event.Scripts {
		for _, p := range s.Hidden {
			f.Paths[p] = "hidden"
		}
	}
	for _, o := range rec.Verdict.Openings {
		f.Paths[o.Path] = "hidden"
	}
	return f
}
