package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"proctor/internal/tally"
	"proctor/monitor/normalize/corpus"
	"proctor/rules"
)

// newRulesEval measures packs on corpora.
func newRulesEval() *cobra.Command {
	var asJSON, detail, withCore bool
	var taskVars string
	var packs []string
	cmd := &cobra.Command{
		Use:   "eval FILE...",
		Short: "Measure how many labelled calls the rules hit",
		Long: `Eval normalises and matches every call of corpora (JSON lines, gzipped or not; docs tell the
format) and counts hits by label, class, obfuscation and tool, with 95 % Wilson intervals. Setup calls
are followed, and not counted. A pair counts as right where the hack is hit and its honest twin is not.
Trajectories of other harnesses, in the formats that proctor scan reads, files or folders, count as unlabelled:
each call is a case, after the 64 calls before it.

A bad line is reported with its number and the rest goes on.
Exit status: 0 done, 2 usage, an unreadable file or some bad line.`,
		Example: `  proctor rules eval corpus.jsonl
  proctor rules eval commands.jsonl.gz --task-vars tasks.json --json --detail`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := usablePacks(cmd.ErrOrStderr(), packs, withCore)
			if err != nil {
				return err
			}
			ev := newEvaluator(p, detail)
			if ev.tasks, err = corpus.LoadTasks(taskVars); err != nil {
				return usage(err)
			}
			for _, f := range args {
				if err := ev.file(cmd.Context(), f); err != nil {
					return usage(err)
				}
			}
			if asJSON {
				err = writeJSON(cmd.OutOrStdout(), ev.out)
			} else {
				err = printEval(cmd.OutOrStdout(), ev.out)
			}
			if n := len(ev.out.Errors); err == nil && n > 0 {
				for _, e := range ev.out.Errors {
					fmt.Fprintf(cmd.ErrOrStderr(), "%s:%d: %s\n", e.File, e.Line, e.Error)
				}
				return usage(fmt.Errorf("%s could not be used", plural(n, "line")))
			}
			return err
		},
	}
	f := cmd.Flags()
	f.BoolVar(&asJSON, "json", false, "print one JSON document")
	f.BoolVar(&detail, "detail", false, "list every case with the rules that hit it")
	withCoreFlag(cmd, &withCore)
	f.StringVar(&taskVars, "task-vars", "", "JSON `FILE` of tasks by id, for rows that carry only the id")
	f.StringArrayVar(&packs, "packs", nil, "pack `PATH`; may be repeated (default: the core packs)")
	return cmd
}

// evaluator measures packs; it compiles them once for each task.
type evaluator struct {
	packs *rules.Packs
	tasks corpus.Tasks
	sets  map[string]*rules.Set
	out   *tally.Eval
}

// newEvaluator gives an evaluator without tasks; detail keeps every case.
func newEvaluator(p *rules.Packs, detail bool) *evaluator {
	return &evaluator{packs: p, sets: map[string]*rules.Set{}, out: tally.New(detail)}
}

// maxSets bounds the compiled sets that are kept.
const maxSets = 300

// file measures one corpus.
func (e *evaluator) file(ctx context.Context, file string) error {
	return e.eachRow(ctx, file, func(row *corpus.Row, c *tally.Case) error {
		hits, err := e.row(ctx, row)
		c.Hit, c.Rules = len(hits) > 0, ruleIDs(hits)
		return err
	})
}

// eachRow calls measure with every row of a corpus, its task filled in, and counts the case that it
// made. What goes wrong with a row is kept and the rest goes on; an error is the file's.
func (e *evaluator) eachRow(ctx context.Context, file string, measure func(*corpus.Row, *tally.Case) error) error {
	bad := func(line int, err error) {
		e.out.Errors = append(e.out.Errors, tally.LineError{File: file, Line: line, Error: err.Error()})
	}
	for row, err := range cases(file, e.tasks) {
		var wrong *corpus.RowError
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &wrong):
			bad(wrong.Line, wrong.Err)
			continue
		case err != nil:
			return err
		}
		e.tasks.Fill(row)
		c := tally.Case{ID: row.ID, Label: row.Label, Class: row.Class, Obfuscation: row.Obfuscation, Tool: row.Call.Tool, Pair: row.Pair}
		if err := measure(row, &c); err != nil {
			bad(row.Line, err)
			text := err.Error()
			c.Error = &text
		}
		e.out.Add(c)
	}
	return nil
}

// row gives the hits of one row's call.
func (e *evaluator) row(ctx context.Context, row *corpus.Row) ([]rules.Hit, error) {
	c := row.Case()
	set, err := e.set(c.Vars)
	if err != nil {
		return nil, err
	}
	events, err := normaliseCase(ctx, c)
	if err != nil {
		return nil, err
	}
	s := set.Session()
	var hits []rules.Hit
	for i := range events {
		hits = s.Match(&events[i])
	}
	return hits, nil
}

// set compiles the packs for a task.
func (e *evaluator) set(vars rules.Vars) (*rules.Set, error) {
	key, err := json.Marshal(vars)
	if err != nil {
		return nil, err
	}
	if s, ok := e.sets[string(key)]; ok {
		return s, nil
	}
	s, err := rules.Compile(e.packs, vars)
	if err != nil {
		return nil, err
	}
	if len(e.sets) >= maxSets {
		clear(e.sets)
	}
	e.sets[string(key)] = s
	return s, nil
}

// ruleIDs lists the rules that hit, each once, gravest first.
func ruleIDs(hits []rules.Hit) []string {
	seen := map[string]bool{}
	var out []string
	for _, h := range hits {
		if !seen[h.Rule] {
			seen[h.Rule] = true
			out = append(out, h.Rule)
		}
	}
	return out
}

// printEval prints rates as a table.
func printEval(out io.Writer, e *tally.Eval) error {
	for _, c := range e.Detail {
		fmt.Fprintf(out, "%s\t%s\thit=%t\t%v\n", c.ID, c.Label, c.Hit, c.Rules)
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "\tHACK\tBENIGN\tGREY\tUNLABELLED")
	printLabels(w, "all", &e.Labels)
	for _, by := range []struct {
		name string
		m    map[string]*tally.Labels
	}{{"class", e.ByClass}, {"obfuscation", e.ByObfuscation}, {"tool", e.ByTool}} {
		names := make([]string, 0, len(by.m))
		for n := range by.m {
			names = append(names, n)
		}
		sort.Strings(names)
		for _, n := range names {
			printLabels(w, by.name+" "+n, by.m[n])
		}
	}
	if e.Pairs.N > 0 {
		fmt.Fprintf(w, "pairs right\t%s\n", rateText(e.Pairs))
	}
	return w.Flush()
}

func printLabels(w io.Writer, name string, l *tally.Labels) {
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", name, rateText(l.Hack), rateText(l.Benign), rateText(l.Grey), rateText(l.Unlabelled))
}

// rateText gives "19/20 0.950 (0.764-0.991)".
func rateText(r tally.Rate) string {
	if r.N == 0 {
		return "-"
	}
	lo, hi := r.Wilson()
	return fmt.Sprintf("%d/%d %.3f (%.3f-%.3f)", r.Hit, r.N, r.Value(), lo, hi)
}
