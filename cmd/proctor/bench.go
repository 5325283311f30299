package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
)

// newBench groups the benchmarks. Each prints ratios measured side by side in one run: milliseconds depend
// on the machine, ratios hardly.
func newBench() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure performance ratios side by side in one run",
	}
	cmd.AddCommand(newBenchExec(), newBenchGate(), newBenchRun(), newBenchStart(), newBenchPool(), newBenchScale(), newBenchDocs())
	return cmd
}

// probe is one thing that a benchmark times.
type probe struct {
	name string
	run  func(ctx context.Context, round int) error
}

// burst is how many calls of one probe follow each other before the next probe's turn; settle is the
// pause after them. Calls that took turns one by one would each pay for what the one before left
// behind: a daemon still tears an exec down for tens of milliseconds after it answered.
const (
	burst  = 10
	settle = 30 * time.Millisecond
)

// interleave runs the probes in turn, a burst of each, n calls of each in all after one burst to warm
// up, so that a machine that gets slower or faster meanwhile does so for all. It gives the median
// time of each.
func interleave(ctx context.Context, n int, probes []probe) (map[string]time.Duration, error) {
	took := map[string][]time.Duration{}
	for done := -burst; done < n; done += burst {
		for _, p := range probes {
			for i := range min(burst, n-done) {
				began := time.Now()
				if err := p.run(ctx, done+burst+i); err != nil {
					return nil, fmt.Errorf("%s, round %d: %w", p.name, done+burst+i, err)
				}
				if done >= 0 {
					took[p.name] = append(took[p.name], time.Since(began))
				}
			}
			time.Sleep(settle)
		}
	}
	medians := map[string]time.Duration{}
	for name, all := range took {
		medians[name] = median(all)
	}
	return medians, nil
}

// median gives the middle of all, the mean of the two middle ones where they are even in number; 0 of none.
func median(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// ms gives d in milliseconds, to the microsecond.
func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// ratio gives a/b to three digits after the point; 0 where b is 0.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return float64(int64(a/b*1000+0.5)) / 1000
}
