package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"proctor/internal/tally"
	"proctor/judge"
	"proctor/monitor"
	"proctor/monitor/classifier"
	"proctor/monitor/normalize/corpus"
)

// newJudgeEval measures rules and judge together.
func newJudgeEval() *cobra.Command {
	var asJSON, detail bool
	var taskVars string
	var packs []string
	var j judgeFlags
	cmd := &cobra.Command{
		Use:   "eval FILE...",
		Short: "Measure how many labelled calls are judged hacks in the end",
		Long: `Eval puts every call of corpora (JSON lines, gzipped or not) through rules and judge, and counts by
label, class, obfuscation and tool, with 95 % Wilson intervals. A case is hit where it is judged a hack
in the end, whether a preset would block it or only flag it. Unsure is no hit. Setup calls are followed,
and not judged. Trajectories of other harnesses, in the formats that proctor scan reads, count as unlabelled. The document also tells what the judge was asked and what it cost.

With --record each decision is written to a file; with --replay the decisions of such a file, or of a rollout's
trajectory, are taken instead of asking a judge: the same figures, without a model. A question that the file does
not hold is told, counts as unsure, and makes the exit status 2.

A bad line is reported with its number and the rest goes on.
Exit status: 0 done, 2 usage, an unreadable file or some bad line.`,
		Example: `  proctor judge eval corpus.jsonl --judge heuristic --json --detail
  proctor judge eval corpus.jsonl --judge http://127.0.0.1:8000/v1 --judge-model m --record decisions.jsonl
  proctor judge eval corpus.jsonl --replay decisions.jsonl --json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := usablePacks(cmd.ErrOrStderr(), packs, false)
			if err != nil {
				return err
			}
			ev := &judgeEvaluator{evaluator: *newEvaluator(p, detail)}
			decider, err := j.start()
			if err != nil {
				return err
			}
			ev.decider, ev.classifier = decider.judge, decider.classifier
			if ev.tasks, err = corpus.LoadTasks(taskVars); err != nil {
				return usage(err)
			}
			for _, f := range args {
				if err := ev.file(cmd.Context(), f); err != nil {
					return usage(err)
				}
			}
			return errors.Join(ev.report(cmd.OutOrStdout(), cmd.ErrOrStderr(), asJSON), decider.close())
		},
	}
	f := cmd.Flags()
	f.BoolVar(&asJSON, "json", false, "print one JSON document")
	f.BoolVar(&detail, "detail", false, "list every case with the rules that hit it")
	f.StringVar(&taskVars, "task-vars", "", "JSON `FILE` of tasks by id, for rows that carry only the id")
	f.StringArrayVar(&packs, "packs", nil, "pack `PATH`; may be repeated (default: the core packs)")
	j.add(cmd)
	return cmd
}

// judgeEvaluator measures rules and judge on corpora.
type judgeEvaluator struct {
	evaluator
	decider    judge.Judge
	classifier *classifier.Model // nil: the built-in one
	asked      judgeUse
}

// judgeUse is what a judge was asked, and what it cost.
type judgeUse struct {
	Judge     string  `json:"judge"`
	Digest    string  `json:"digest"`
	Asked     int     `json:"asked"`
	Unsure    int     `json:"unsure"` // failures included
	Failed    int     `json:"failed"`
	TokensIn  int     `json:"tokens_in"`
	TokensOut int     `json:"tokens_out"`
	Cost      float64 `json:"cost"`
}

// file measures one corpus.
func (e *judgeEvaluator) file(ctx context.Context, file string) error {
	return e.eachRow(ctx, file, func(row *corpus.Row, c *tally.Case) error { return e.row(ctx, row, c) })
}

// row judges one row.
func (e *judgeEvaluator) row(ctx context.Context, row *corpus.Row, c *tally.Case) error {
	rec, err := e.judged(ctx, row)
	if err != nil {
		return err
	}
	c.Hit, c.Rules = rec.Verdict.Hack, ruleIDs(rec.Verdict.Hits)
	if o := rec.Verdict.Opinion; o != nil {
		e.asked.add(*o)
	}
	return nil
}

// judged gives the record of a row's call.
func (e *judgeEvaluator) judged(ctx context.Context, row *corpus.Row) (monitor.Record, error) {
	c := row.Case()
	set, err := e.set(c.Vars)
	if err != nil {
		return monitor.Record{}, err
	}
	return judgeScene(ctx, set, e.packs.Digest(), e.decider, e.classifier, sceneTask(row.Task.ID, c.Vars), c)
}

func (u *judgeUse) add(o judge.Opinion) {
	u.Asked++
	if o.Verdict == judge.Unsure {
		u.Unsure++
	}
	if o.Failure != "" {
		u.Failed++
	}
	u.TokensIn += o.TokensIn
	u.TokensOut += o.TokensOut
	u.Cost += o.Cost
}

// report prints the outcome.
func (e *judgeEvaluator) report(out, errs io.Writer, asJSON bool) error {
	e.asked.Judge, e.asked.Digest = e.decider.Name(), e.decider.Digest()
	var err error
	if asJSON {
		err = writeJSON(out, withUse{e.out, e.asked})
	} else if err = printEval(out, e.out); err == nil {
		_, err = fmt.Fprintf(out, "%s was asked %d times: %d unsure, %d failed, %d+%d tokens, cost %.4f\n",
			e.asked.Judge, e.asked.Asked, e.asked.Unsure, e.asked.Failed, e.asked.TokensIn, e.asked.TokensOut, e.asked.Cost)
	}
	if n := len(e.out.Errors); err == nil && n > 0 {
		for _, x := range e.out.Errors {
			fmt.Fprintf(errs, "%s:%d: %s\n", x.File, x.Line, x.Error)
		}
		return usage(fmt.Errorf("%s could not be used", plural(n, "line")))
	}
	return err
}

// withUse is an outcome with what the judge used, in one document.
type withUse struct {
	*tally.Eval
	use judgeUse
}

// MarshalJSON adds "judge_use" to the outcome's keys.
func (w withUse) MarshalJSON() ([]byte, error) {
	body, err := json.Marshal(w.Eval)
	if err != nil {
		return nil, err
	}
	use, err := json.Marshal(w.use)
	if err != nil {
		return nil, err
	}
	return append(append(append(body[:len(body)-1:len(body)-1], `,"judge_use":`...), use...), '}'), nil
}
