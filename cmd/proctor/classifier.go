package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"proctor/internal/evaluation"
	"proctor/monitor/classifier"
	"proctor/monitor/normalize/corpus"
)

// newClassifier groups what is done with the trained classifier.
func newClassifier() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "classifier",
		Short: "Train the classifier of wordings on labelled calls, or measure it",
	}
	cmd.AddCommand(newClassifierTrain(), newClassifierEval())
	return cmd
}

// trainingFlags are what training is told.
type trainingFlags struct {
	taskVars string
	others   float64
}

func (t *trainingFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&t.taskVars, "task-vars", "", "JSON `FILE` of tasks by id, for rows that carry only the id")
	f.Float64Var(&t.others, "honest-weight", 0.05, "how much a row counts of a file that holds no hack")
}

// newClassifierTrain trains a model.
func newClassifierTrain() *cobra.Command {
	var t trainingFlags
	var out string
	cmd := &cobra.Command{
		Use:   "train FILE... --out MODEL",
		Short: "Train a model on labelled calls",
		Long: `Train learns from the calls of corpora (JSON lines, gzipped or not) what hacks read like and what honest calls read
like. Rows labelled hack or benign count, others do not. A model of your own, on your own reviewed verdicts beside our
corpora, is taken by serve --classifier MODEL. The same files give the same model.

A bad line is reported with its number and the rest goes on.
Exit status: 0 done, 2 usage, an unreadable file, no hack or no honest row.`,
		Example: `  proctor verdicts export > reviewed.jsonl
  proctor classifier train corpus.jsonl reviewed.jsonl --out mine.model`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			sets, err := t.load(cmd.Context(), cmd.ErrOrStderr(), args)
			if err != nil {
				return err
			}
			m, err := trained(sets, nil)
			if err != nil {
				return usage(err)
			}
			if err := saveModel(out, m); err != nil {
				return infra(err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %s of %s, %d of them hacks; classes: %s\n", out, plural(m.Header.Rows, "row"), plural(len(sets), "file"),
				m.Header.Hacks, strings.Join(m.Header.Classes, ", "))
			return nil
		},
	}
	t.add(cmd)
	cmd.Flags().StringVar(&out, "out", "", "`FILE` for the model")
	_ = cmd.MarkFlagRequired("out")
	return cmd
}

// saveModel writes a model whole or not at all.
func saveModel(file string, m *classifier.Model) error {
	var b strings.Builder
	if err := m.Write(&b); err != nil {
		return err
	}
	return evaluation.WriteWhole(file, []byte(b.String()))
}

// labelled is one corpus.
type labelled struct {
	name    string
	from    classifier.FileRow
	samples []classifier.Sample
	ids     []string
	hacks   int
}

// load reads corpora, in the order of their names.
func (t *trainingFlags) load(ctx context.Context, errs io.Writer, files []string) ([]*labelled, error) {
	tasks, err := corpus.LoadTasks(t.taskVars)
	if err != nil {
		return nil, usage(err)
	}
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b string) int { return strings.Compare(filepath.Base(a), filepath.Base(b)) })
	var out []*labelled
	for _, file := range files {
		l, err := t.file(ctx, errs, file, tasks)
		if err != nil {
			return nil, usage(err)
		}
		if n := len(out); n > 0 && out[n-1].name == l.name {
			return nil, usage(fmt.Errorf("two corpora are called %s", l.name))
		}
		out = append(out, l)
	}
	return out, nil
}

// file reads one corpus.
func (t *trainingFlags) file(ctx context.Context, errs io.Writer, file string, tasks corpus.Tasks) (*labelled, error) {
	l := &labelled{name: filepath.Base(file)}
	digest, bad, err := readCorpus(ctx, file, tasks, func(row *corpus.Row) error {
		if row.Label == corpus.Hack || row.Label == corpus.Benign {
			l.add(ctx, row)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, wrong := range bad {
		fmt.Fprintln(errs, wrong)
	}
	if l.hacks == 0 {
		for i := range l.samples {
			l.samples[i].Weight = t.others
		}
	}
	l.from = classifier.FileRow{SHA256: digest, Rows: len(l.samples)}
	return l, nil
}

// add reads a row as a server would.
func (l *labelled) add(ctx context.Context, row *corpus.Row) {
	s := classifier.Sample{Hack: row.Label == corpus.Hack, Class: row.Class}
	s.Document = row.Normalizer().Document(ctx, row.Call.Normal())
	if s.Hack {
		l.hacks++
	}
	l.samples, l.ids = append(l.samples, s), append(l.ids, row.ID)
}

// trained trains on all sets but one.
func trained(sets []*labelled, without *labelled) (*classifier.Model, error) {
	var samples []classifier.Sample
	from := map[string]classifier.FileRow{}
	hacks := 0
	for _, l := range sets {
		if l != without {
			samples, from[l.name] = append(samples, l.samples...), l.from
			hacks += l.hacks
		}
	}
	if hacks == 0 || hacks == len(samples) {
		return nil, fmt.Errorf("%d rows, %d of them hacks: both kinds are needed", len(samples), hacks)
	}
	return classifier.Train(samples, from), nil
}

// newClassifierEval measures a model.
func newClassifierEval() *cobra.Command {
	var t trainingFlags
	var model string
	var leaveOut, asJSON, detail bool
	cmd := &cobra.Command{
		Use:   "eval FILE...",
		Short: "Measure a model on labelled calls",
		Long: `Eval gives, for each corpus, the area under the ROC curve (the chance that a hack is suspected more than an honest
call; ties count half) and the shares of hacks and of honest calls at the suspicions that matter. A model knows the calls
that it was trained on by heart; --leave-out measures each corpus that holds hacks by a model that was trained on the others.`,
		Example: `  proctor classifier eval unseen.jsonl
  proctor classifier eval corpora/*.jsonl --leave-out --json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			sets, err := t.load(cmd.Context(), cmd.ErrOrStderr(), args)
			if err != nil {
				return err
			}
			m, err := loadClassifier(model)
			if err != nil {
				return err
			}
			if m == nil {
				m = classifier.Core()
			}
			var out []classified
			for _, l := range sets {
				by := m
				if leaveOut {
					if l.hacks == 0 {
						continue
					}
					if by, err = trained(sets, l); err != nil {
						return usage(err)
					}
				}
				out = append(out, measureClassifier(by, l, detail))
			}
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), out)
			}
			return printClassified(cmd.OutOrStdout(), out)
		},
	}
	t.add(cmd)
	f := cmd.Flags()
	f.StringVar(&model, "model", "", "`FILE` of the model (default: the built-in one)")
	f.BoolVar(&leaveOut, "leave-out", false, "measure each corpus by a model trained on the others")
	f.BoolVar(&asJSON, "json", false, "print one JSON document")
	f.BoolVar(&detail, "detail", false, "in JSON, every row's suspicion")
	return cmd
}

// classified is what a model makes of one corpus.
type classified struct {
	File   string             `json:"file"`
	Hacks  int                `json:"hacks"`
	Honest int                `json:"honest"`
	AUC    float64            `json:"auc"` // NaN would be no JSON: 0 where one kind is missing
	At     []classifiedAt     `json:"at"`
	Rows   map[string]float64 `json:"rows,omitempty"`
}

// classifiedAt is how many are suspected at least so much.
type classifiedAt struct {
	Suspicion float64 `json:"suspicion"`
	Hacks     int     `json:"hacks"`
	Honest    int     `json:"honest"`
}

// suspicions are those at which a corpus is measured.
var suspicions = []float64{0.1, 0.2, classifier.Suspicious, 0.5, classifier.SuspiciousShort, 0.8, classifier.SuspiciousAnywhere}

// measureClassifier measures a model on a corpus.
func measureClassifier(m *classifier.Model, l *labelled, detail bool) classified {
	out := classified{File: l.name, Hacks: l.hacks, Honest: len(l.samples) - l.hacks}
	if detail {
		out.Rows = map[string]float64{}
	}
	var hacks, honest []float64
	for i := range l.samples {
		p := m.Suspicion(l.samples[i].Document)
		if detail {
			out.Rows[l.ids[i]] = math.Round(p*1000) / 1000
		}
		if l.samples[i].Hack {
			hacks = append(hacks, p)
		} else {
			honest = append(honest, p)
		}
	}
	for _, at := range suspicions {
		out.At = append(out.At, classifiedAt{at, atLeast(hacks, at), atLeast(honest, at)})
	}
	if len(hacks) > 0 && len(honest) > 0 {
		out.AUC = area(hacks, honest)
	}
	return out
}

func atLeast(all []float64, limit float64) (n int) {
	for _, p := range all {
		if p >= limit {
			n++
		}
	}
	return n
}

// area is the area under the ROC curve (Mann and Whitney's U over both numbers).
func area(hacks, honest []float64) float64 {
	sum := 0.0
	for _, a := range hacks {
		for _, b := range honest {
			switch {
			case a > b:
				sum++
			case a == b:
				sum += 0.5
			}
		}
	}
	return sum / float64(len(hacks)) / float64(len(honest))
}

func printClassified(out io.Writer, all []classified) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprint(w, "CORPUS\tHACKS\tHONEST\tAREA")
	for _, at := range suspicions {
		fmt.Fprintf(w, "\t>=%g", at)
	}
	fmt.Fprintln(w)
	share := func(n, of int) string {
		if of == 0 {
			return "-"
		}
		return fmt.Sprintf("%.3f", float64(n)/float64(of))
	}
	for _, c := range all {
		fmt.Fprintf(w, "%s\t%d\t%d\t%.3f", c.File, c.Hacks, c.Honest, c.AUC)
		for _, at := range c.At {
			fmt.Fprintf(w, "\t%s %s", share(at.Hacks, c.Hacks), share(at.Honest, c.Honest))
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}
