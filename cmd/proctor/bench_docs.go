package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// The marks between which `bench docs` writes its table.
const (
	figuresBegin = "<!-- figures: written by `proctor bench docs` -->"
	figuresEnd   = "<!-- /figures -->"
)

// figure is one row of the table: what was measured, what was seen, and what is wanted.
type figure struct {
	what, seen, want string
}

// newBenchDocs writes the table of figures.
func newBenchDocs() *cobra.Command {
	var page string
	cmd := &cobra.Command{
		Use:   "docs FILES",
		Short: "Write what benchmarks printed as a table",
		Long: `Reads what bench exec, start, pool, scale and gate printed with --json, in any order, and prints a table of the figures beside
what is wanted of them; with --page it puts it into a page, between the lines that mark its place.`,
		Example: "  proctor bench exec --json >exec.json && proctor bench docs exec.json\n  proctor bench docs .cache/bench/*.json --page docs/performance.md",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var rows []figure
			for _, path := range args {
				text, err := os.ReadFile(path)
				if err != nil {
					return usage(err)
				}
				more, err := figuresOf(text)
				if err != nil {
					return usage(fmt.Errorf("%s: %w", path, err))
				}
				rows = append(rows, more...)
			}
			table := figureTable(rows)
			if page == "" {
				_, err := fmt.Fprint(cmd.OutOrStdout(), table)
				return err
			}
			text, err := os.ReadFile(page)
			if err != nil {
				return usage(err)
			}
			filled, err := between(string(text), table)
			if err != nil {
				return usage(fmt.Errorf("%s: %w", page, err))
			}
			return infraOrNil(os.WriteFile(page, []byte(filled), 0o644))
		},
	}
	cmd.Flags().StringVar(&page, "page", "", "a page to put the table into")
	return cmd
}

func infraOrNil(err error) error {
	if err == nil {
		return nil
	}
	return infra(err)
}

// between puts table between the marks of a page.
func between(text, table string) (string, error) {
	head, rest, ok := strings.Cut(text, figuresBegin)
	_, tail, closed := strings.Cut(rest, figuresEnd)
	if !ok || !closed {
		return "", fmt.Errorf("it does not hold the lines %q and %q", figuresBegin, figuresEnd)
	}
	return head + figuresBegin + "\n\n" + table + "\n" + figuresEnd + tail, nil
}

// figureTable writes rows as a table.
func figureTable(rows []figure) string {
	var b strings.Builder
	b.WriteString("| measured | seen | wanted |\n|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", r.what, r.seen, r.want)
	}
	return b.String()
}

// figuresOf gives the rows of what one benchmark printed; its keys tell which it was.
func figuresOf(text []byte) ([]figure, error) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(text, &keys); err != nil {
		return nil, fmt.Errorf("it is no JSON document of a benchmark: %w", err)
	}
	for key, read := range map[string]func([]byte) ([]figure, error){
		"bash_ms": rowsOf(execFigures), "docker_run_ms": rowsOf(startFigures), "claim_p50_ms": rowsOf(poolFigures),
		"levels": rowsOf(scaleFigures), "p99_us": rowsOf(gateFigures),
	} {
		if _, ok := keys[key]; ok {
			return read(text)
		}
	}
	return nil, errors.New("it is of no benchmark that is known: bench exec, start, pool, scale and gate are, with --json")
}

// rowsOf reads a report and gives its rows.
func rowsOf[T any](rows func(T) []figure) func([]byte) ([]figure, error) {
	return func(text []byte) ([]figure, error) {
		var report T
		if err := json.Unmarshal(text, &report); err != nil {
			return nil, err
		}
		return rows(report), nil
	}
}

func execFigures(r execReport) []figure {
	rows := []figure{
		{"one-shot by the box agent, of a bare `bash -c true`", times(r.Ratios["oneshot_vs_bash"]), "at most 1.1 x"},
		{"a builtin in the persistent shell", times(r.Ratios["shell_vs_bash"]), "at most 0.25 x"},
		{"a builtin over HTTP, through rules and record", times(r.Ratios["http_vs_bash"]), "at most 0.5 x"},
		{"`bash -c true` over HTTP", times(r.Ratios["http_bash_vs_bash"]), "at most 1.4 x"},
		{"`docker exec`, of a builtin over HTTP", times(r.Ratios["http_vs_docker_exec"]), "at least 35 x"},
	}
	if v := r.Ratios["http_vs_swerex"]; v > 0 {
		rows = append(rows, figure{"SWE-ReX's session over HTTP, of a builtin over HTTP", times(v), "at least 80 x"})
	}
	if r.Parallel.Rollouts > 0 {
		rows = append(rows, figure{fmt.Sprintf("one-shots in %d sandboxes at once, of as many on the host", r.Parallel.Rollouts),
			fmt.Sprintf("%.0f %%", 100*r.Parallel.Ratio), "at least 93 %"},
			figure{fmt.Sprintf("`bash -c true` over HTTP in %d rollouts at once, of as many on the host", r.Parallel.Rollouts),
				fmt.Sprintf("%.0f %%", 100*r.Parallel.HTTPRatio), "at least 75 %"})
	}
	return rows
}

func startFigures(r startReport) []figure {
	rows := []figure{}
	if r.RuncRun > 0 {
		rows = append(rows, figure{"`docker run --rm` of true, of a bare `runc run`", times(ratio(r.DockerRun, r.RuncRun)), ""})
	}
	for _, name := range []string{"docker", "oci"} {
		if _, ok := r.Engines[name]; !ok {
			continue
		}
		want := map[string]string{"oci": "at most 1.5 x"}[name]
		if v := r.Ratios[name+"_vs_runc_run"]; v > 0 {
			rows = append(rows, figure{"a start on the " + name + " engine, of a bare `runc run`", times(v), want})
		}
		if v := r.Ratios[name+"_vs_docker_run"]; v > 0 {
			rows = append(rows, figure{"a start on the " + name + " engine, of `docker run`", times(v), ""})
		}
		if v := r.Engines[name].Fork; v > 0 {
			rows = append(rows, figure{"a fork on the " + name + " engine, until it answers; of which the commit", fmt.Sprintf("%.0f and %.0f ms", v, r.Engines[name].Commit), "under 1 s"})
		}
	}
	return rows
}

func poolFigures(r poolReport) []figure {
	return []figure{
		{"a claim from the pool over " + r.Engine + ", median and 99th percentile", fmt.Sprintf("%.1f and %.1f ms", r.P50, r.P99), "under 10 ms"},
		{"a claim, of a start on " + r.Engine, times(r.Ratio), ""},
	}
}

func scaleFigures(r scaleReport) []figure {
	rows := []figure{
		{fmt.Sprintf("memory of one of %d idle sandboxes on %s: of the host, its own processes", r.N, r.Engine), fmt.Sprintf("%.1f and %.1f MiB", r.Host, r.PSS), "at most 8 MiB"},
		{fmt.Sprintf("starts, the last quarter of %d of the first", r.N), times(r.Start), "linear: 1 x"},
		{"one-shots, with all of them and with a quarter", times(r.Oneshot), "1 x"},
	}
	if r.Output != nil {
		rows = append(rows, figure{fmt.Sprintf("a server's memory under %d outputs of %d GiB: before, most", r.Output.Commands, r.Output.GiB),
			fmt.Sprintf("%.0f and %.0f MiB", r.Output.Before, r.Output.Peak), "flat"})
	}
	return rows
}

// gateFigure is what is read of `bench gate`.
type gateFigure struct {
	Rules int     `json:"rules"`
	P50   float64 `json:"p50_us"`
	P99   float64 `json:"p99_us"`
}

func gateFigures(r gateFigure) []figure {
	return []figure{{fmt.Sprintf("normalise and match a call against %d rules, median and 99th percentile", r.Rules), fmt.Sprintf("%.0f and %.0f µs", r.P50, r.P99), ""}}
}

// times writes a ratio.
func times(v float64) string { return fmt.Sprintf("%.2f x", v) }
