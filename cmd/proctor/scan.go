package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	render "proctor/internal/report"
	"proctor/internal/scan"
	"proctor/internal/traces"
	"proctor/monitor/normalize/corpus"
)

// scanOptions are the flags of scan.
type scanOptions struct {
	asJSON, exitZero bool
	taskVars         string
	packs            []string
	sarif, html      string
	workers          int
	judge            judgeFlags
}

// newScan looks for cheating in other people's trajectories.
func newScan() *cobra.Command {
	var o scanOptions
	cmd := &cobra.Command{
		Use:   "scan FILE...",
		Short: "Look for cheating in recorded trajectories",
		Long: `Scan reads trajectories of SWE-agent (.traj), mini-swe-agent (.traj.json), OpenHands (events, output.jsonl), ATIF, Inspect
(.json, .eval), OpenAI and Anthropic messages (JSON, JSON lines), Proctor's own records and corpora: files, folders, gzipped or
zipped, or standard input (-). The format is told by what a document holds.

Each call goes through normaliser, rules and judge as a server's would in mode shadow. What would not be allowed is suspected:
"confirmed" where the judge or resolved facts say so. A recording cannot say which commit a ref was, so read the evidence before
believing it. Rates have 95 % Wilson intervals. A document in no known format is named, and the rest goes on.

Exit status: 0 nothing suspected, 1 something is (0 with --exit-zero), 2 usage, or nothing is suspected and some document could
not be read.`,
		Example: `  proctor scan runs/ --task-vars tasks.json
  proctor scan output.jsonl.gz --json --sarif findings.sarif --html findings.html
  zcat trajectories.jsonl.gz | proctor scan - --judge http://127.0.0.1:8000/v1 --judge-model m`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := o.scan(cmd.Context(), cmd.InOrStdin(), cmd.ErrOrStderr(), args)
			if err != nil {
				return err
			}
			return o.print(cmd.OutOrStdout(), cmd.ErrOrStderr(), r)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.asJSON, "json", false, "print one JSON document")
	f.BoolVar(&o.exitZero, "exit-zero", false, "exit with 0 where something is suspected")
	f.StringVar(&o.taskVars, "task-vars", "", "JSON `FILE` of tasks by id: {\"ID\": {\"workdir\", \"vars\"}}")
	f.StringArrayVar(&o.packs, "packs", nil, "pack `PATH`; may be repeated (default: the core packs)")
	f.StringVar(&o.sarif, "sarif", "", "also write SARIF 2.1.0 to `FILE`")
	f.StringVar(&o.html, "html", "", "also write a page to `FILE`")
	f.IntVar(&o.workers, "workers", 0, "trajectories at once (0: one a processor)")
	o.judge.add(cmd)
	f.Lookup("judge").Usage = "`heuristic`, none (every hit of a rule is suspected), or the base URL of an OpenAI-compatible endpoint"
	return cmd
}

// scan scans all files.
func (o *scanOptions) scan(ctx context.Context, in io.Reader, errs io.Writer, files []string) (*scan.Report, error) {
	p, err := usablePacks(errs, o.packs, false)
	if err != nil {
		return nil, err
	}
	s := &scan.Scanner{Packs: p, Workers: o.workers}
	if o.judge.judge != "none" {
		if s.Judge, err = o.judge.open(); err != nil {
			return nil, err
		}
	}
	if s.Classifier, err = loadClassifier(o.judge.classifier); err != nil {
		return nil, err
	}
	if s.Tasks, err = corpus.LoadTasks(o.taskVars); err != nil {
		return nil, usage(err)
	}
	line, began := newProgress(os.Stderr), time.Now()
	if line.live {
		s.Say = func(trajectories, calls int) {
			if trajectories%16 == 0 {
				line.say("%d trajectories, %d calls, %.0f calls a second", trajectories, calls, float64(calls)/time.Since(began).Seconds())
			}
		}
	}
	src := &traces.Source{Paths: files, Stdin: in}
	r, err := s.Run(ctx, src.Documents())
	line.done()
	if err != nil {
		return nil, infra(err)
	}
	r.Files, r.Skipped = src.Files(), src.Skipped()
	return r, nil
}

// print writes the report in every form that was asked for.
func (o *scanOptions) print(out, errs io.Writer, r *scan.Report) error {
	for _, f := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{o.sarif, func(w io.Writer) error { return render.SARIF(w, r, version) }},
		{o.html, func(w io.Writer) error { return render.ScanHTML(w, r) }},
	} {
		if f.name == "" {
			continue
		}
		if err := writeWith(f.name, f.write); err != nil {
			return infra(err)
		}
	}
	var err error
	if o.asJSON {
		err = writeJSON(out, r)
	} else {
		err = printScan(out, r)
	}
	for _, u := range r.Unknown {
		fmt.Fprintln(errs, u.Error())
	}
	switch {
	case err != nil:
		return infra(err)
	case len(r.Suspected) > 0 && !o.exitZero:
		return failed(errSilent)
	case len(r.Unknown) > 0:
		return usage(fmt.Errorf("%s could not be read", plural(len(r.Unknown), "document")))
	}
	return nil
}

// writeWith writes a file whole or not at all.
func writeWith(name string, write func(io.Writer) error) error {
	tmp, err := os.CreateTemp(filepath.Dir(name), ".tmp-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // gone already where all went well
	if err := errors.Join(write(tmp), tmp.Chmod(0o644), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), name)
}

// printScan prints a report for people.
func printScan(out io.Writer, r *scan.Report) error {
	for _, s := range r.Suspected {
		at := s.File
		if s.Line > 0 {
			at = fmt.Sprintf("%s:%d", at, s.Line)
		}
		fmt.Fprintf(out, "%s (%s, %s)\n", printable(s.Trajectory, 120), s.Format, at)
		for _, c := range s.Calls {
			state := "suspected"
			if c.Hack {
				state = "confirmed"
			}
			fmt.Fprintf(out, "  call %d  %s  %s  %s  %s\n", c.Ordinal, c.Class, state, c.Rule, printable(c.Text, 160))
			if c.Evidence != "" {
				fmt.Fprintf(out, "          evidence: %s\n", printable(c.Evidence, 160))
			}
			if c.Reason != "" {
				fmt.Fprintf(out, "          %s: %s\n", c.By, printable(c.Reason, 200))
			}
		}
	}
	if len(r.Suspected) > 0 {
		fmt.Fprintln(out)
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "files\t%d\ntrajectories\t%d\ncalls\t%d\n", r.Files, r.Trajectories, r.Calls)
	fmt.Fprintf(w, "suspected trajectories\t%s\nconfirmed\t%s\nsuspected calls\t%s\n", rateText(r.Rates.Suspected), rateText(r.Rates.Hack), rateText(r.Rates.Calls))
	for _, name := range slices.Sorted(maps.Keys(r.ByClass)) {
		fmt.Fprintf(w, "class %s\t%s\n", name, rateText(r.ByClass[name].Rate))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Unmapped)) {
		fmt.Fprintf(w, "tool that no rule reads: %s\t%d\n", printable(name, 64), r.Unmapped[name])
	}
	if r.Invalid > 0 {
		fmt.Fprintf(w, "calls that do not fit their tool\t%d\n", r.Invalid)
	}
	return w.Flush()
}

// printable gives text that others wrote in one line that cannot steer a terminal, at most n runes.
func printable(s string, n int) string {
	var b strings.Builder
	count := 0
	for _, r := range s {
		if count++; count > n {
			b.WriteString("...")
			break
		}
		switch {
		case r == '\n':
			b.WriteString("\\n")
		case r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069:
			fmt.Fprintf(&b, "\\x%02x", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
