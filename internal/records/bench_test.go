package records_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"proctor/internal/records"
	"proctor/internal/trajectory"
	"proctor/internal/trajectory/trajtest"
)

// measureAppends appends turns of 120 sampled tokens and 400 of observation to the rollouts in turn and
// reports the 99th percentile. Each rollout is one writer at a time, as its model calls are.
func measureAppends(b *testing.B, s *records.Service, ids []string) {
	plays := make([]*trajtest.Play, len(ids))
	for i := range plays {
		plays[i] = trajtest.New(uint64(i))
	}
	output := strings.Repeat("line of output\n", 26)
	took := make([]time.Duration, b.N)
	var next atomic.Int64
	var wg sync.WaitGroup
	locks := make([]sync.Mutex, len(ids))
	began := cpu(b)
	b.ResetTimer()
	for range 64 {
		wg.Go(func() {
			for {
				n := int(next.Add(1)) - 1
				if n >= b.N {
					return
				}
				i := n % len(ids)
				locks[i].Lock()
				p := plays[i]
				p.Calls = p.Calls[:0]
				var c *trajectory.ModelCall
				c, _ = p.Turn(fmt.Sprintf("python -m pytest -q tests/test_%d.py %s", n, strings.Repeat("x", 80)), output)
				at := time.Now()
				if err := s.Append(context.Background(), ids[i], "", [32]byte{}, c); err != nil {
					b.Error(err)
				}
				took[n] = time.Since(at)
				locks[i].Unlock()
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
	b.ReportMetric(float64(cpu(b)-began)/float64(b.N)/1000, "cpu-us/op")
}

// pacedAppends appends perSecond turns a second, each to the next rollout, and reports percentiles.
func pacedAppends(b *testing.B, s *records.Service, ids []string, perSecond int) {
	calls := make([]*trajectory.ModelCall, b.N)
	plays := make([]*trajtest.Play, len(ids))
	output := strings.Repeat("line of output\n", 26)
	for n := range calls {
		i := n % len(ids)
		if plays[i] == nil {
			plays[i] = trajtest.New(uint64(i))
		}
		calls[n], _ = plays[i].Turn(fmt.Sprintf("python -m pytest -q tests/test_%d.py %s", n, strings.Repeat("x", 80)), output)
	}
	took := make([]time.Duration, b.N)
	var wg sync.WaitGroup
	began := cpu(b)
	b.ResetTimer()
	start := time.Now()
	for n := range calls {
		due := start.Add(time.Duration(n) * time.Second / time.Duration(perSecond))
		time.Sleep(time.Until(due))
		wg.Go(func() {
			at := time.Now()
			if err := s.Append(context.Background(), ids[n%len(ids)], "", [32]byte{}, calls[n]); err != nil {
				b.Error(err)
			}
			took[n] = time.Since(at)
		})
	}
	wg.Wait()
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
	b.ReportMetric(float64(cpu(b)-began)/float64(b.N)/1000, "cpu-us/op")
}

func cpu(b *testing.B) int64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
