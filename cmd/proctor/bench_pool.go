package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"proctor/internal/config"
	"proctor/sandbox"
	"proctor/sandbox/pool"
)

// poolReport is what `bench pool --json` prints. Times are in milliseconds.
type poolReport struct {
	N      int     `json:"n"`
	Engine string  `json:"engine"`
	P50    float64 `json:"claim_p50_ms"`
	P99    float64 `json:"claim_p99_ms"`
	Max    float64 `json:"claim_max_ms"`
	First  float64 `json:"first_call_p50_ms"` // the first command in a claimed sandbox
	Start  float64 `json:"start_p50_ms"`      // of a sandbox that is made when it is asked for
	Ratio  float64 `json:"claim_vs_start"`
}

// poolBench is what the benchmark is asked for.
type poolBench struct {
	n, batch int
	engine   string
	image    string
	settings config.Config
	progress io.Writer
}

// newBenchPool measures claims.
func newBenchPool() *cobra.Command {
	b := poolBench{progress: os.Stderr}
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "pool",
		Short:   "Measure claims of sandboxes that are kept ready",
		Long:    `Fills a pool, claims all of it, and again, until n were claimed; and times as many starts without one for comparison, at most ten.`,
		Example: "  proctor bench pool\n  proctor bench pool --engine oci --n 200 --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if b.n < 1 || b.batch < 1 || b.batch > pool.MaxSpares {
				return usage(fmt.Errorf("bench pool: --n is at least 1, --batch 1 to %d", pool.MaxSpares))
			}
			if !terminal(os.Stderr) {
				b.progress = io.Discard
			}
			got, err := b.run(cmd.Context())
			if err != nil {
				return infra(fmt.Errorf("bench pool: %w", err))
			}
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), got)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d claims (%s): p50 %.2f ms, p99 %.2f ms, max %.2f ms; first command %.2f ms; a start %.1f ms\n",
				got.N, got.Engine, got.P50, got.P99, got.Max, got.First, got.Start)
			return err
		},
	}
	benchFlags(cmd, &b.settings, &b.image, &asJSON)
	cmd.Flags().StringVar(&b.engine, "engine", "docker", "engine: docker, oci")
	cmd.Flags().IntVar(&b.n, "n", 64, "claims")
	cmd.Flags().IntVar(&b.batch, "batch", 8, "sandboxes kept ready")
	return cmd
}

// run fills, claims and closes.
func (b *poolBench) run(ctx context.Context) (_ poolReport, err error) {
	r := poolReport{N: b.n, Engine: b.engine}
	e, err := benchEngine(ctx, b.settings, b.engine)
	if err != nil {
		return r, err
	}
	cold := 0
	p, err := pool.New(e, pool.Options{Max: b.batch, Observer: pool.Observer{Claimed: func(how string, _ time.Duration, _ error) {
		if how != pool.Warm {
			cold++
		}
	}}})
	if err != nil {
		return r, errors.Join(err, e.Close())
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	spec := sandbox.Spec{Name: "bench", Image: b.image, Limits: sandbox.Limits{MemoryMB: 256}}
	var claims, firsts, starts []time.Duration
	for len(claims) < b.n {
		fmt.Fprintf(b.progress, "\r%d of %d claims ", len(claims), b.n)
		took, first, err := b.round(ctx, p, spec, min(b.batch, b.n-len(claims)))
		if err != nil {
			return r, err
		}
		claims, firsts = append(claims, took...), append(firsts, first...)
	}
	if cold > 0 {
		return r, fmt.Errorf("%d of %d claims found no spare although all were ready", cold, b.n)
	}
	p.Drain()
	for range min(b.n, 10) {
		began := time.Now()
		box, err := e.Create(ctx, spec)
		if err != nil {
			return r, err
		}
		starts = append(starts, time.Since(began))
		if err := box.Close(ctx); err != nil {
			return r, err
		}
	}
	r.P50, r.P99, r.Max = ms(median(claims)), ms(quantile(claims, 0.99)), ms(slices.Max(claims))
	r.First, r.Start = ms(median(firsts)), ms(median(starts))
	r.Ratio = ratio(r.P50, r.Start)
	return r, nil
}

// round fills the pool, lets the machine settle, and claims n.
func (b *poolBench) round(ctx context.Context, p *pool.Engine, spec sandbox.Spec, n int) (claims, firsts []time.Duration, err error) {
	if err := p.Expect(ctx, spec, n); err != nil {
		return nil, nil, err
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		have, err := p.Ready(ctx, spec)
		if err != nil {
			return nil, nil, err
		}
		if have >= n {
			break
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return nil, nil, errors.Join(ctx.Err(), fmt.Errorf("the pool holds %d of %d after two minutes", have, n))
		}
	}
	time.Sleep(10 * settle)
	var boxes []sandbox.Session
	defer func() { closeAll(context.WithoutCancel(ctx), boxes) }()
	for range n {
		began := time.Now()
		box, err := p.Create(ctx, spec)
		if err != nil {
			return nil, nil, err
		}
		claims = append(claims, time.Since(began))
		boxes = append(boxes, box)
		began = time.Now()
		got, err := box.Do(ctx, sandbox.Call{ID: "first", Op: sandbox.OpShell, Command: "true"})
		if err := ended(got.Exit, err); err != nil {
			return nil, nil, err
		}
		firsts = append(firsts, time.Since(began))
	}
	return claims, firsts, nil
}

// quantile gives the smallest value that a share q of all is not above; 0 of none.
func quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	i := int(q*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}
