package store

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
)

// BenchmarkPair is what each tool call pays: an intent of 600 bytes and an outcome of 400.
func BenchmarkPair(b *testing.B) {
	s := rollout(b, open(b, b.TempDir(), Options{}), "r_0123456789")
	ctx := context.Background()
	in, out := bytes.Repeat([]byte("i"), 600), bytes.Repeat([]byte("o"), 400)
	b.ResetTimer()
	defer reportCPU(b)()
	for i := range b.N {
		c := intent(i+1, fmt.Sprint("key-", i))
		c.Intent, c.Outcome, c.Event = in, out, int64(i)
		if err := s.AppendIntent(ctx, "r_0123456789", c); err != nil {
			b.Fatal(err)
		}
		if err := s.AppendOutcome(ctx, "r_0123456789", c); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPairParallel is the same from many rollouts at once.
func BenchmarkPairParallel(b *testing.B) {
	s := open(b, b.TempDir(), Options{})
	ctx := context.Background()
	in, out := bytes.Repeat([]byte("i"), 600), bytes.Repeat([]byte("o"), 400)
	var next atomic.Int64
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		id := fmt.Sprint("r", next.Add(1))
		rollout(b, s, id)
		for n := 1; pb.Next(); n++ {
			c := intent(n, "")
			c.Intent, c.Outcome = in, out
			if err := s.AppendIntent(ctx, id, c); err != nil {
				b.Error(err)
				return
			}
			if err := s.AppendOutcome(ctx, id, c); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func BenchmarkCallByOrdinal(b *testing.B) {
	s := rollout(b, open(b, b.TempDir(), Options{}), "r")
	ctx := context.Background()
	if err := s.AppendIntent(ctx, "r", intent(1, "")); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for range b.N {
		if _, err := s.CallByOrdinal(ctx, "r", 1); err != nil {
			b.Fatal(err)
		}
	}
}

// reportCPU adds the processor time of an operation, which a busy machine does not blur.
func reportCPU(b *testing.B) func() {
	start := cpuTime(b)
	return func() { b.ReportMetric(float64(cpuTime(b)-start)/float64(b.N), "cpu-ns/op") }
}

func cpuTime(b *testing.B) int64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
