package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"proctor/internal/config"
	"proctor/internal/rollouts"
	"proctor/sandbox"
)

// startReport is what `bench start --json` prints. Times are medians in milliseconds.
type startReport struct {
	N         int                    `json:"n"`
	DockerRun float64                `json:"docker_run_ms"` // `docker run --rm IMAGE true`, to its end
	RuncRun   float64                `json:"runc_run_ms"`   // `runc run` of `true` on a ready overlay of the image, to its end
	Engines   map[string]engineStart `json:"engines"`
	Ratios    map[string]float64     `json:"ratios"`
	Skipped   map[string]string      `json:"skipped"` // what could not be measured, and why
}

// engineStart is what a start costs on one engine.
type engineStart struct {
	Start float64 `json:"start_ms"` // from Create to a sandbox that answers
	Close float64 `json:"close_ms"`
	// Fork is from asking for a sandbox's files to be kept until another sandbox with them answers; Commit is the
	// first part. 0 where the engine cannot.
	Fork   float64 `json:"fork_ms"`
	Commit float64 `json:"commit_ms"`
}

// startBench is what the benchmark is asked for.
type startBench struct {
	n        int
	engines  []string
	image    string
	settings config.Config
	progress io.Writer
}

// newBenchStart measures what a start costs.
func newBenchStart() *cobra.Command {
	b := startBench{progress: os.Stderr}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "start",
		Short: "Measure what a start costs, against docker run and a bare runc run",
		Long: `Times, in turns in one run: docker run --rm of true to its end, a bare runc run of true on a ready overlay of the same
image to its end, a sandbox of each engine from Create until it answers, and a fork of it that a MiB was written to. What is not on this machine is left out,
with the reason in "skipped".`,
		Example: "  proctor bench start\n  proctor bench start --engines docker --n 5 --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if b.n < 1 || len(b.engines) == 0 {
				return usage(errors.New("bench start: --n is at least 1, and --engines names at least one"))
			}
			for _, name := range b.engines {
				if name != "docker" && name != "oci" {
					return usage(fmt.Errorf("bench start: there is no engine %q; docker and oci are", name))
				}
			}
			if !terminal(os.Stderr) {
				b.progress = io.Discard
			}
			got, err := b.run(cmd.Context())
			if err != nil {
				return infra(fmt.Errorf("bench start: %w", err))
			}
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), got)
			}
			return got.print(cmd.OutOrStdout())
		},
	}
	benchFlags(cmd, &b.settings, &b.image, &asJSON)
	cmd.Flags().IntVar(&b.n, "n", 10, "starts of each")
	cmd.Flags().StringSliceVar(&b.engines, "engines", []string{"docker", "oci"}, "engines to measure")
	return cmd
}

// benchFlags declares what benchmarks of engines have in common.
func benchFlags(cmd *cobra.Command, settings *config.Config, image *string, asJSON *bool) {
	*settings = config.Default()
	cmd.Flags().StringVar(&settings.Boxd, "boxd", os.Getenv("PROCTOR_BOXD"), "the box agent (default boxd beside this program)")
	cmd.Flags().StringVar(&settings.OCI.Store, "oci-store", os.Getenv("PROCTOR_OCI_STORE"), "folder of the oci engine (default /var/lib/initd)")
	cmd.Flags().StringVar(image, "image", baseImage, "image of the sandboxes; it needs bash")
	cmd.Flags().BoolVar(asJSON, "json", false, "print one JSON document")
}

// benchEngine opens an engine by name for a benchmark of its own.
func benchEngine(ctx context.Context, settings config.Config, name string) (engine, error) {
	settings.Engine = name
	return ownEngine(ctx, "bench", settings, slog.New(slog.DiscardHandler))
}

// lap is what one round of a starter took. Only start is always there.
type lap struct{ start, closed, fork, commit time.Duration }

// starter is one way to start something, timed to where it says.
type starter struct {
	name   string
	run    func(ctx context.Context) (lap, error)
	finish func() error
}

// run measures all that is there, in turns.
func (b *startBench) run(ctx context.Context) (_ startReport, err error) {
	r := startReport{N: b.n, Engines: map[string]engineStart{}, Ratios: map[string]float64{}, Skipped: map[string]string{}}
	var all []starter
	defer func() {
		for _, s := range all {
			err = errors.Join(err, s.finish())
		}
	}()
	for name, open := range map[string]func(context.Context) (starter, error){"docker_run": b.dockerRun, "runc_run": b.runcRun} {
		s, err := open(ctx)
		if err != nil {
			r.Skipped[name] = err.Error()
			continue
		}
		all = append(all, s)
	}
	for _, name := range b.engines {
		s, err := b.ofEngine(ctx, name)
		if err != nil {
			r.Skipped[name] = err.Error()
			continue
		}
		all = append(all, s)
	}
	if len(r.Engines) == 0 && len(all) == 0 {
		return r, fmt.Errorf("nothing can be measured here: %v", r.Skipped)
	}
	slices.SortFunc(all, func(a, b starter) int { return strings.Compare(a.name, b.name) })
	laps := map[string][]lap{}
	for round := -1; round < b.n; round++ { // the first warms up
		fmt.Fprintf(b.progress, "\rround %d of %d ", max(round+1, 0), b.n)
		for _, s := range all {
			took, err := s.run(ctx)
			if err != nil {
				return r, fmt.Errorf("%s: %w", s.name, err)
			}
			if round >= 0 {
				laps[s.name] = append(laps[s.name], took)
			}
			time.Sleep(settle)
		}
	}
	r.fill(laps)
	return r, nil
}

// fill takes the medians and their ratios.
func (r *startReport) fill(laps map[string][]lap) {
	for name, all := range laps {
		middle := func(part func(lap) time.Duration) float64 {
			var took []time.Duration
			for _, l := range all {
				took = append(took, part(l))
			}
			return ms(median(took))
		}
		start := middle(func(l lap) time.Duration { return l.start })
		switch name {
		case "docker_run":
			r.DockerRun = start
		case "runc_run":
			r.RuncRun = start
		default:
			r.Engines[name] = engineStart{Start: start, Close: middle(func(l lap) time.Duration { return l.closed }),
				Fork: middle(func(l lap) time.Duration { return l.fork }), Commit: middle(func(l lap) time.Duration { return l.commit })}
		}
	}
	for name, e := range r.Engines {
		if r.DockerRun > 0 {
			r.Ratios[name+"_vs_docker_run"] = ratio(e.Start, r.DockerRun)
		}
		if r.RuncRun > 0 {
			r.Ratios[name+"_vs_runc_run"] = ratio(e.Start, r.RuncRun)
		}
	}
}

// ofEngine starts sandboxes of an engine.
func (b *startBench) ofEngine(ctx context.Context, name string) (starter, error) {
	e, err := benchEngine(ctx, b.settings, name)
	if err != nil {
		return starter{}, err
	}
	if _, err := e.Image(ctx, b.image); err != nil {
		return starter{}, errors.Join(err, e.Close())
	}
	round := 0
	return starter{name: name, finish: e.Close, run: func(ctx context.Context) (l lap, err error) {
		began := time.Now()
		box, err := e.Create(ctx, sandbox.Spec{Name: "bench", Image: b.image})
		if err != nil {
			return l, err
		}
		l.start = time.Since(began)
		round++
		err = b.fork(ctx, e, box, fmt.Sprintf("%s:bench-%d-%d", rollouts.SnapshotRepository, os.Getpid(), round), &l)
		began = time.Now()
		err = errors.Join(err, box.Close(context.WithoutCancel(ctx)))
		l.closed = time.Since(began)
		return l, err
	}}, nil
}

// fork writes a MiB into a sandbox and starts another with its files.
func (b *startBench) fork(ctx context.Context, e engine, box sandbox.Session, ref string, l *lap) error {
	keeper, ok := e.(rollouts.SnapshotKeeper)
	if can, err := e.Capabilities(ctx); err != nil || !can.Fork || !ok {
		return err
	}
	wrote, err := box.Exec(ctx, sandbox.Exec{Argv: []string{"sh", "-c", "head -c 1M /dev/urandom >/tmp/changed"}})
	if err := ended(wrote.Exit, err); err != nil {
		return err
	}
	began := time.Now()
	if _, err := e.Commit(ctx, box.ID(), ref); err != nil {
		return err
	}
	l.commit = time.Since(began)
	other, err := e.Create(ctx, sandbox.Spec{Name: "bench", Image: ref})
	l.fork = time.Since(began)
	if err == nil {
		err = other.Close(context.WithoutCancel(ctx))
	}
	return errors.Join(err, keeper.RemoveImage(context.WithoutCancel(ctx), ref))
}

// dockerRun runs `docker run` as people do.
func (b *startBench) dockerRun(ctx context.Context) (starter, error) {
	if _, err := exec.LookPath("docker"); err != nil {
		return starter{}, err
	}
	return starter{name: "docker_run", finish: func() error { return nil }, run: func(ctx context.Context) (lap, error) {
		took, err := ranFor(exec.CommandContext(ctx, "docker", "run", "--rm", "--network", "none", "--entrypoint", "true", b.image))
		return lap{start: took}, err
	}}, nil
}

// ranFor runs a command to its end.
func ranFor(cmd *exec.Cmd) (time.Duration, error) {
	var words bytes.Buffer
	cmd.Stderr = &words
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("%w: %.300s", err, words.String())
	}
	return time.Since(began), nil
}

// print tells it to people.
func (r startReport) print(out io.Writer) error {
	row := func(what string, value float64) error {
		if value == 0 {
			return nil
		}
		_, err := fmt.Fprintf(out, "%-28s %8.1f ms\n", what, value)
		return err
	}
	errs := []error{row("docker run to its end", r.DockerRun), row("runc run to its end", r.RuncRun)}
	for _, name := range []string{"docker", "oci"} {
		errs = append(errs, row(name+" engine, until ready", r.Engines[name].Start), row(name+" engine, removal", r.Engines[name].Close),
			row(name+" engine, a fork", r.Engines[name].Fork), row("  of which the commit", r.Engines[name].Commit))
	}
	for _, name := range sortedKeys(r.Ratios) {
		_, err := fmt.Fprintf(out, "%-28s %8.2f\n", name, r.Ratios[name])
		errs = append(errs, err)
	}
	for _, name := range sortedKeys(r.Skipped) {
		_, err := fmt.Fprintf(out, "%s was left out: %s\n", name, r.Skipped[name])
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
