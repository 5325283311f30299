package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"proctor/monitor/classifier"
	"proctor/monitor/normalize/corpus"
)

// gateReport is what `bench gate --json` prints. Times are microseconds a call.
type gateReport struct {
	Rules  int   `json:"rules"`
	Calls  int   `json:"calls"`
	P50    int64 `json:"p50_us"` // by the clock, with what others did on the machine
	P99    int64 `json:"p99_us"`
	Max    int64 `json:"max_us"`
	CPUP50 int64 `json:"cpu_p50_us"` // processor time of the thread
	CPUP99 int64 `json:"cpu_p99_us"`
	CPUMax int64 `json:"cpu_max_us"`

	Slowest string   `json:"slowest"` // id of the call that took the most processor time
	Corpora []string `json:"corpora"`
}

// newBenchGate measures what the monitor adds to a call.
func newBenchGate() *cobra.Command {
	var n int
	var taskVars string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "gate [FILE...]",
		Short: "Measure what normalising and matching a call costs",
		Long: `Gate normalises and matches every call of corpora, alone, with the core packs filled up to --rules by made
ones, and gives the time a call took: by the clock, and beside it the processor time of the thread, in which
what else the machine does does not count. Setup calls count as calls. Compiling the packs for a task, once a
rollout, is not in it.

Without FILE it takes real agents' commands from a folder ../*/data beside the working directory, and else
the project's own corpora.

Exit status: 0 done, 2 usage or no corpus.`,
		Example: "  proctor bench gate --json\n  proctor bench gate commands.jsonl.gz --task-vars tasks.json --rules 1000",
		RunE: func(cmd *cobra.Command, files []string) error {
			if n < 1 {
				return usage(errors.New("bench gate: --rules is at least 1"))
			}
			if len(files) == 0 {
				files, taskVars = gateCorpora(taskVars)
			}
			if len(files) == 0 {
				return usage(errors.New("bench gate: there is no corpus here; name one, or run it in the project's folder"))
			}
			got, err := benchGate(cmd.Context(), n, files, taskVars)
			if err != nil {
				return usage(fmt.Errorf("bench gate: %w", err))
			}
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), got)
			}
			return got.print(cmd.OutOrStdout())
		},
	}
	cmd.Flags().IntVar(&n, "rules", 500, "rules to match, the core packs among them")
	cmd.Flags().StringVar(&taskVars, "task-vars", "", "JSON `FILE` of tasks by id, for rows that carry only the id")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// gateCorpora finds the corpora to measure on where none is named.
func gateCorpora(taskVars string) (files []string, vars string) {
	files, _ = filepath.Glob("../*/data/swe_agent_commands*.jsonl*") // the pattern is sound
	if len(files) == 0 {
		files, _ = filepath.Glob("monitor/normalize/corpus/testdata/*.jsonl")
		return files, taskVars
	}
	if known, _ := filepath.Glob(filepath.Join(filepath.Dir(files[0]), "swe_tasks.json")); taskVars == "" && len(known) > 0 {
		taskVars = known[0]
	}
	return files, taskVars
}

// threadClock is the processor time of this thread so far.
func threadClock() (time.Duration, error) {
	var ts unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts)
	return time.Duration(ts.Nano()), err
}

// benchGate measures every call of files with n rules.
func benchGate(ctx context.Context, n int, files []string, taskVars string) (gateReport, error) {
	packs, err := coreAndMade(n)
	if err != nil {
		return gateReport{}, err
	}
	classifier.Core() // read once, when a server starts
	ev := newEvaluator(packs, false)
	if ev.tasks, err = corpus.LoadTasks(taskVars); err != nil {
		return gateReport{}, err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	out := gateReport{Rules: len(packs.Rules()), Corpora: []string{}}
	var took, wall []time.Duration
	for _, file := range files {
		out.Corpora = append(out.Corpora, filepath.Base(file))
		for row, err := range corpus.Open(file) {
			if err != nil {
				return out, err
			}
			ev.tasks.Fill(row)
			cpu, clock, err := ev.time(ctx, row)
			if err != nil {
				return out, fmt.Errorf("%s:%d: %w", file, row.Line, err)
			}
			if m := slices.Max(cpu); m > time.Duration(out.CPUMax) {
				out.CPUMax, out.Slowest = int64(m), row.ID
			}
			took, wall = append(took, cpu...), append(wall, clock...)
		}
	}
	if len(took) == 0 {
		return out, errors.New("the corpora hold no calls")
	}
	out.Calls = len(took)
	out.P50, out.P99, out.Max = wholeMicros(wall)
	out.CPUP50, out.CPUP99, out.CPUMax = wholeMicros(took)
	return out, nil
}

// wholeMicros gives the median, the 99th percentile and the maximum in microseconds.
func wholeMicros(times []time.Duration) (p50, p99, most int64) {
	slices.Sort(times)
	n := len(times)
	return times[n/2].Microseconds(), times[n*99/100].Microseconds(), times[n-1].Microseconds()
}

// time gives what each call of a row took, setup first: normalising, matching, and following it.
func (e *evaluator) time(ctx context.Context, row *corpus.Row) (cpu, clock []time.Duration, err error) {
	c := row.Case()
	set, err := e.set(c.Vars)
	if err != nil {
		return nil, nil, err
	}
	set.Prepare() // part of compiling
	calls := append(slices.Clone(row.Setup), row.Call)
	bare := *row
	bare.Setup = nil
	norm, session := bare.Normalizer(), set.Session()
	for _, tc := range calls {
		call := tc.Normal()
		began := time.Now()
		before, err := threadClock()
		if err != nil {
			return nil, nil, err
		}
		event := norm.Event(ctx, call)
		session.Match(&event)
		norm.Observe(call, true, "")
		after, err := threadClock()
		if err != nil {
			return nil, nil, err
		}
		cpu, clock = append(cpu, after-before), append(clock, time.Since(began))
	}
	return cpu, clock, ctx.Err()
}

func (r gateReport) print(out io.Writer) error {
	_, err := fmt.Fprintf(out, "%d calls with %d rules: p50 %d us, p99 %d us, max %d us; processor time p50 %d us, p99 %d us, max %d us (%s)\n",
		r.Calls, r.Rules, r.P50, r.P99, r.Max, r.CPUP50, r.CPUP99, r.CPUMax, r.Slowest)
	return err
}
