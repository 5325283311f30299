package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"proctor/internal/evaluation"
	"proctor/monitor/normalize/corpus"
	"proctor/rules"
)

// evalOptions is what `eval` is asked for.
type evalOptions struct {
	baseline, page, beside string
	update, asJSON         bool
}

// newEval holds detection to a baseline.
func newEval() *cobra.Command {
	var o evalOptions
	cmd := &cobra.Command{
		Use:   "eval FILE...",
		Short: "Hold detection on corpora to a committed baseline",
		Long: `Eval puts every call of corpora through the core packs and the heuristic judge in shadow mode, prints
recall, flag rate and final verdicts by kind, class, obfuscation and tool with 95 % Wilson intervals, and
holds them to --baseline: a recall that fell or a flag rate that rose by a single call fails. --beside
names a folder of more corpora (*.jsonl, *.jsonl.gz, task variables in *_tasks.json), which may be absent:
that is told, and their figures in the baseline are then held to nothing, and kept.

Exit status: 0 as good as the baseline, 1 something fell or a corpus has no baseline, 2 usage or bad input.`,
		Example: `  proctor eval corpus.jsonl --baseline baseline.json
  proctor eval corpus.jsonl --baseline baseline.json --page detection.md --update`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			now, err := o.measure(cmd.Context(), cmd.ErrOrStderr(), args)
			if err != nil {
				return err
			}
			if o.update {
				return o.rewrite(cmd.OutOrStdout(), now)
			}
			return o.compare(cmd.OutOrStdout(), cmd.ErrOrStderr(), now)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.baseline, "baseline", "", "`FILE` with the figures to hold")
	f.StringVar(&o.page, "page", "", "`FILE` for the page of figures, written by --update")
	f.StringVar(&o.beside, "beside", "", "`FOLDER` of further corpora")
	f.BoolVar(&o.update, "update", false, "rewrite the baseline, and the page, with what is measured")
	f.BoolVar(&o.asJSON, "json", false, "print one JSON document")
	_ = cmd.MarkFlagRequired("baseline")
	return cmd
}

// measure measures all corpora, as many at a time as there are processors.
func (o *evalOptions) measure(ctx context.Context, errs io.Writer, files []string) (*evaluation.Report, error) {
	core, err := rules.Core()
	if err != nil {
		return nil, failed(err)
	}
	j, err := (&judgeFlags{judge: "heuristic"}).open()
	if err != nil {
		return nil, err
	}
	tasks, more, err := o.corporaBeside()
	if err != nil {
		return nil, usage(err)
	}
	if o.beside != "" && len(more) == 0 {
		fmt.Fprintf(errs, "*** NOT MEASURED: there are no corpora in %q, so that most figures are held to NOTHING ***\n", o.beside)
	}
	all := append(slices.Clone(files), more...)
	if name := repeated(all); name != "" {
		return nil, usage(fmt.Errorf("two corpora are called %s; their figures could not be told apart", name))
	}
	sets, err := measureAll(ctx, all, func() *meter {
		m := &meter{judgeEvaluator: judgeEvaluator{evaluator: *newEvaluator(core, false), decider: j}}
		m.tasks = tasks
		return m
	})
	if err != nil {
		return nil, usage(err)
	}
	out := &evaluation.Report{Packs: core.Digest(), Judge: j.Name(), Sets: map[string]*evaluation.Set{}, Rules: map[string]evaluation.RuleText{}}
	for i, s := range sets {
		s.set.Beside = i >= len(files)
		for _, bad := range s.bad {
			fmt.Fprintln(errs, bad)
		}
		out.Sets[filepath.Base(all[i])] = s.set
		if err := addTexts(out.Rules, core, s.set); err != nil {
			return nil, failed(err)
		}
	}
	return out, nil
}

// repeated gives a base name that two files have; "" for none.
func repeated(files []string) string {
	seen := map[string]bool{}
	for _, file := range files {
		name := filepath.Base(file)
		if seen[name] {
			return name
		}
		seen[name] = true
	}
	return ""
}

// measured is one corpus measured, and the errors of its rows that could not be used.
type measured struct {
	set *evaluation.Set
	bad []error
}

// measureAll measures corpora side by side, each goroutine with a meter of its own, and gives what it measured in their
// order.
func measureAll(ctx context.Context, files []string, meters func() *meter) ([]measured, error) {
	out := make([]measured, len(files))
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() error {
			m := meters()
			for {
				i := int(next.Add(1)) - 1
				if i >= len(files) {
					return nil
				}
				set, err := m.set(ctx, files[i])
				if err != nil {
					return err
				}
				out[i] = measured{set, m.bad}
			}
		})
	}
	return out, group.Wait()
}

// corporaBeside lists the corpora of the folder beside, and their tasks.
func (o *evalOptions) corporaBeside() (tasks corpus.Tasks, out []string, err error) {
	if o.beside == "" {
		return nil, nil, nil
	}
	files, err := filepath.Glob(filepath.Join(o.beside, "*_tasks.json"))
	if err != nil {
		return nil, nil, err
	}
	tasks = corpus.Tasks{}
	for _, file := range files {
		some, err := corpus.LoadTasks(file)
		if err != nil {
			return nil, nil, err
		}
		for id, t := range some {
			tasks[id] = t
		}
	}
	for _, pattern := range []string{"*.jsonl", "*.jsonl.gz"} {
		some, err := filepath.Glob(filepath.Join(o.beside, pattern))
		if err != nil {
			return nil, nil, err
		}
		out = append(out, some...)
	}
	return tasks, out, nil
}

// addTexts notes what rules that hit honest calls say of themselves.
func addTexts(to map[string]evaluation.RuleText, packs *rules.Packs, set *evaluation.Set) error {
	for _, f := range set.False {
		for _, id := range f.Rules {
			r, ok := packs.Rule(id)
			if !ok {
				return fmt.Errorf("%s was hit by %s, which is in no pack", f.ID, id)
			}
			to[id] = evaluation.RuleText{Title: r.Title, Known: r.FalsePos}
		}
	}
	return nil
}

// meter measures corpora row by row.
type meter struct {
	judgeEvaluator
	bad []error // rows of the last corpus that could not be used
}

// set measures one corpus.
func (m *meter) set(ctx context.Context, file string) (*evaluation.Set, error) {
	out := evaluation.NewSet()
	digest, bad, err := readCorpus(ctx, file, m.tasks, func(row *corpus.Row) error {
		rec, err := m.judged(ctx, row)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c := evaluation.Case{ID: row.ID, Label: row.Label, Class: row.Class, Obfuscation: row.Obfuscation, Tool: row.Call.Tool, Kind: row.Kind(),
			Rules: ruleIDs(rec.Verdict.Hits), Hack: rec.Verdict.Hack}
		if o := rec.Verdict.Opinion; o != nil {
			c.Why = o.Reason
		}
		out.Add(c)
		if err != nil {
			return &corpus.RowError{File: file, Line: row.Line, Err: err}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out.Digest, m.bad, out.Bad = digest, bad, len(bad)
	return out, nil
}

// readCorpus calls use with every row of a corpus, its task filled in, and gives the file's SHA-256. What goes wrong with
// a row is kept, and the rest goes on; any other error of use, or of the file, ends it.
func readCorpus(ctx context.Context, file string, tasks corpus.Tasks, use func(*corpus.Row) error) (digest string, bad []error, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", nil, err
	}
	sum := sha256.Sum256(data)
	for row, err := range corpus.Open(file) {
		if ctx.Err() != nil {
			return "", nil, ctx.Err()
		}
		if err == nil {
			tasks.Fill(row)
			err = use(row)
		}
		var wrong *corpus.RowError
		switch {
		case errors.As(err, &wrong):
			bad = append(bad, err)
		case err != nil:
			return "", nil, err
		}
	}
	return hex.EncodeToString(sum[:]), bad, nil
}

// rewrite makes what was measured the baseline, and writes its page.
func (o *evalOptions) rewrite(out io.Writer, now *evaluation.Report) error {
	old, err := evaluation.Load(o.baseline)
	switch {
	case err == nil:
		now.Keep(old)
	case !errors.Is(err, os.ErrNotExist):
		fmt.Fprintf(out, "the old baseline is dropped whole: %v\n", err)
	}
	if err := now.Save(o.baseline); err != nil {
		return infra(err)
	}
	if o.page != "" {
		if err := evaluation.WriteWhole(o.page, []byte(evaluation.Page(now))); err != nil {
			return infra(err)
		}
	}
	if o.asJSON {
		return writeJSON(out, now)
	}
	_, err = fmt.Fprint(out, evaluation.Table(now))
	return err
}

// compare holds what was measured to the baseline.
func (o *evalOptions) compare(out, errs io.Writer, now *evaluation.Report) error {
	base, err := evaluation.Load(o.baseline)
	if err != nil {
		return usage(err)
	}
	all := evaluation.Compare(base, now)
	unmeasured, unknown := evaluation.Lacking(base, now)
	if o.asJSON {
		err = writeJSON(out, struct {
			*evaluation.Report
			Changes    []evaluation.Change `json:"changes"`
			Unmeasured []string            `json:"unmeasured"`
			Unknown    []string            `json:"unknown"`
		}{now, append([]evaluation.Change{}, all...), append([]string{}, unmeasured...), append([]string{}, unknown...)})
	} else {
		_, err = fmt.Fprint(out, evaluation.Table(now))
	}
	if err != nil {
		return err
	}
	return verdict(errs, base, now, all, unmeasured, unknown)
}

// verdict tells what changed, and fails where something fell.
func verdict(errs io.Writer, base, now *evaluation.Report, all []evaluation.Change, unmeasured, unknown []string) error {
	for _, c := range all {
		fmt.Fprintln(errs, c)
	}
	lost := false
	for _, name := range unmeasured {
		lost = lost || !base.Sets[name].Beside
		fmt.Fprintf(errs, "*** NOT MEASURED: %s has a baseline and was not at hand ***\n", name)
	}
	for name, s := range now.Sets {
		if was := base.Sets[name]; was != nil && was.Digest != s.Digest {
			fmt.Fprintf(errs, "%s is not the corpus that the baseline was measured on; the rates are held all the same\n", name)
		}
	}
	for _, name := range unknown {
		fmt.Fprintf(errs, "%s has no baseline\n", name)
	}
	switch {
	case evaluation.Fell(all):
		return failed(errors.New("detection fell below the baseline"))
	case lost, len(unknown) > 0:
		return failed(errors.New("the baseline is not of these corpora: measure it anew with --update"))
	case len(all) > 0:
		fmt.Fprintln(errs, "detection is better than the baseline: keep that with --update")
	}
	return nil
}
