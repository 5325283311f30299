package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"proctor/internal/config"
	"proctor/sandbox"
)

// scaleReport is what `bench scale --json` prints.
type scaleReport struct {
	N      int          `json:"n"`
	Engine string       `json:"engine"`
	Levels []scaleLevel `json:"levels"`
	// Host is how much less memory the machine has available with n idle sandboxes, PSS what their own processes
	// hold (the agent and, of the docker engine, the daemon's shim), each for one sandbox, in MiB.
	Host    float64 `json:"host_mib_per_sandbox"`
	PSS     float64 `json:"pss_mib_per_sandbox"`
	Start   float64 `json:"start_last_vs_first"`   // of the last quarter's starts and the first quarter's
	Oneshot float64 `json:"oneshot_last_vs_first"` // with all sandboxes there, and with the first quarter
	Output  *flood  `json:"output"`                // null: not measured
}

// scaleLevel is what was measured with so many sandboxes there.
type scaleLevel struct {
	Sandboxes int     `json:"sandboxes"`
	Start     float64 `json:"start_ms"`   // the median of the starts since the level before
	Oneshot   float64 `json:"oneshot_ms"` // the median of one-shots in all sandboxes in turn, at most 100
	Host      float64 `json:"host_mib"`   // less available than before the first
	PSS       float64 `json:"pss_mib"`
}

// scaleBench is what the benchmark is asked for.
type scaleBench struct {
	n, parallel int
	gib         int
	engine      string
	image       string
	settings    config.Config
	progress    io.Writer
}

// newBenchScale measures what many sandboxes cost.
func newBenchScale() *cobra.Command {
	b := scaleBench{progress: os.Stderr}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "scale",
		Short: "Measure memory, starts and calls with more and more sandboxes alive, and a server's memory under large outputs",
		Long: `Makes n sandboxes and keeps them, a quarter at a time; after each it takes the memory that they need, idle, and times one-shots
in all of them. Then a server of its own is given commands with so many GiB of output each, and its memory is watched.
Memory of the host is what the kernel counts as available: on a machine that does other things it says little.`,
		Example: "  proctor bench scale --n 40\n  proctor bench scale --engine oci --n 500 --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if b.n < 4 || b.gib < 0 || b.parallel < 1 {
				return usage(errors.New("bench scale: --n is at least 4, --parallel at least 1, --output-gib at least 0"))
			}
			if !terminal(os.Stderr) {
				b.progress = io.Discard
			}
			got, err := b.run(cmd.Context())
			if err != nil {
				return infra(fmt.Errorf("bench scale: %w", err))
			}
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), got)
			}
			return got.print(cmd.OutOrStdout())
		},
	}
	benchFlags(cmd, &b.settings, &b.image, &asJSON)
	cmd.Flags().StringVar(&b.engine, "engine", "docker", "engine: docker, oci")
	cmd.Flags().IntVar(&b.n, "n", 100, "sandboxes")
	cmd.Flags().IntVar(&b.parallel, "parallel", runtime.NumCPU(), "starts at once")
	cmd.Flags().IntVar(&b.gib, "output-gib", 1, "GiB of output of each of four commands; 0 leaves them out")
	return cmd
}

// run measures level by level, then the outputs.
func (b *scaleBench) run(ctx context.Context) (_ scaleReport, err error) {
	r := scaleReport{N: b.n, Engine: b.engine}
	e, err := benchEngine(ctx, b.settings, b.engine)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	var boxes []sandbox.Session
	defer func() { closeAll(context.WithoutCancel(ctx), boxes) }()
	available := memAvailable()
	for quarter := 1; quarter <= 4; quarter++ {
		want := b.n * quarter / 4
		fmt.Fprintf(b.progress, "\rto %d of %d sandboxes ", want, b.n)
		more, took, err := b.more(ctx, e, want-len(boxes))
		boxes = append(boxes, more...)
		if err != nil {
			return r, err
		}
		level, err := b.level(ctx, boxes)
		if err != nil {
			return r, err
		}
		level.Start, level.Host = ms(median(took)), mib(available-memAvailable())
		r.Levels = append(r.Levels, level)
	}
	first, last := r.Levels[0], r.Levels[3]
	r.Host, r.PSS = round2(last.Host/float64(b.n)), round2(last.PSS/float64(b.n))
	r.Start, r.Oneshot = ratio(last.Start, first.Start), ratio(last.Oneshot, first.Oneshot)
	if b.gib > 0 {
		fmt.Fprintf(b.progress, "\rlarge outputs                \n")
		r.Output, err = b.flood(ctx)
	}
	return r, err
}

// more makes n sandboxes. Those made are given even with an error.
func (b *scaleBench) more(ctx context.Context, e engine, n int) ([]sandbox.Session, []time.Duration, error) {
	boxes, took := make([]sandbox.Session, n), make([]time.Duration, n)
	crew, within := errgroup.WithContext(ctx)
	crew.SetLimit(b.parallel)
	for i := range n {
		crew.Go(func() (err error) {
			began := time.Now()
			box, err := e.Create(within, sandbox.Spec{Name: "bench", Image: b.image, Limits: sandbox.Limits{MemoryMB: 256}})
			if err == nil {
				boxes[i], took[i] = box, time.Since(began)
			}
			return err
		})
	}
	err := crew.Wait()
	made := boxes[:0]
	for _, box := range boxes {
		if box != nil {
			made = append(made, box)
		}
	}
	return made, took, err
}

// level measures with the sandboxes that are there.
func (b *scaleBench) level(ctx context.Context, boxes []sandbox.Session) (scaleLevel, error) {
	time.Sleep(time.Second) // what starts left behind ends
	l := scaleLevel{Sandboxes: len(boxes)}
	var took []time.Duration
	step := max(len(boxes)/100, 1)
	for i := 0; i < len(boxes); i += step {
		began := time.Now()
		if err := oneshot(ctx, boxes[i]); err != nil {
			return l, err
		}
		took = append(took, time.Since(began))
	}
	l.Oneshot = ms(median(took))
	for _, box := range boxes {
		held, err := boxMemory(ctx, box)
		if err != nil {
			return l, err
		}
		l.PSS += mib(held)
	}
	l.PSS = round2(l.PSS)
	return l, nil
}

// print tells it to people.
func (r scaleReport) print(out io.Writer) error {
	_, err := fmt.Fprintf(out, "%-10s %10s %12s %12s %12s\n", "sandboxes", "start", "one-shot", "of the host", "their own")
	errs := []error{err}
	for _, l := range r.Levels {
		_, err := fmt.Fprintf(out, "%-10d %7.1f ms %9.2f ms %8.1f MiB %8.1f MiB\n", l.Sandboxes, l.Start, l.Oneshot, l.Host, l.PSS)
		errs = append(errs, err)
	}
	_, err = fmt.Fprintf(out, "one idle sandbox: %.2f MiB of the host, %.2f MiB its own; starts %.2f x, one-shots %.2f x of the first quarter's\n", r.Host, r.PSS, r.Start, r.Oneshot)
	if errs = append(errs, err); r.Output != nil {
		_, err = fmt.Fprintf(out, "%d outputs of %d GiB: the server held %.1f MiB before, at most %.1f MiB meanwhile\n", r.Output.Commands, r.Output.GiB, r.Output.Before, r.Output.Peak)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
