package rollouts

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"proctor/internal/records"
	"proctor/internal/store"
	"proctor/internal/trajectory"
	"proctor/internal/trajectory/export"
	"proctor/internal/trajectory/trajtest"
	"proctor/monitor"
	"proctor/sandbox/sandboxtest"
	"proctor/tasks"
)

// BenchmarkExport1000 exports 1,000 rollouts of 20 turns and tool calls one after another, as a group's export
// does, and reports the speed in bytes written, by the clock and by the processor, which a busy machine does not
// blur, and the largest heap. A hundred rollouts are made, and exported in turn ten times over.
func BenchmarkExport1000(b *testing.B) {
	rollouts, rounds := 100, 10
	if testing.Short() {
		rollouts, rounds = 60, 1 // for a profile
	}
	st, err := store.Open(context.Background(), b.TempDir(), store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	kept, err := records.New(st)
	if err != nil {
		b.Fatal(err)
	}
	m, err := Open(context.Background(), Options{
		Store: st, Engine: &sandboxtest.Fake{}, Lab: &fakeLab{}, Log: slog.New(slog.DiscardHandler), Records: kept, MaxRollouts: rollouts + 1,
		Tasks: []*tasks.Task{{ID: "t", Image: "img", Workdir: "/testbed"}},
	})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = m.Close(false) }()
	ids := make([]string, rollouts)
	for i := range ids {
		made, err := m.Create(context.Background(), "", CreateRequest{TaskID: "t"})
		if err != nil {
			b.Fatal(err)
		}
		ids[i] = made.ID
		p := trajtest.New(uint64(i))
		for n := range 20 {
			c, _ := p.Turn(fmt.Sprintf("pytest -q %d %s", n, strings.Repeat("x", 150)), strings.Repeat("a line of output\n", 60))
			said, err := c.Said()
			if err != nil {
				b.Fatal(err)
			}
			call, err := monitor.ParseCall(said.ToolCalls[0].ID, "", "bash", json.RawMessage(said.ToolCalls[0].Arguments), "")
			if err != nil {
				b.Fatal(err)
			}
			if _, err := m.Call(context.Background(), made.ID, call); err != nil {
				b.Fatal(err)
			}
			if err := kept.Append(context.Background(), made.ID, "", [32]byte{}, c); err != nil {
				b.Fatal(err)
			}
		}
	}
	for _, form := range []string{export.Slime, export.Verl, export.OpenAI} {
		b.Run(form, func(b *testing.B) {
			var size, peak uint64
			for range b.N {
				size = 0
				began, used := time.Now(), cpuTime(b)
				for i := range rounds * len(ids) {
					size += exported(b, m, ids[i%len(ids)], form)
					if i%50 == 0 {
						var mem runtime.MemStats
						runtime.ReadMemStats(&mem)
						peak = max(peak, mem.HeapInuse)
					}
				}
				b.ReportMetric(float64(size)/1e6/time.Since(began).Seconds(), "MB/s")
				b.ReportMetric(float64(size)/1e6/(cpuTime(b)-used).Seconds(), "cpu-MB/s")
			}
			b.ReportMetric(float64(size)/1e6, "MB")
			b.ReportMetric(float64(peak)/1e6, "peak-heap-MB")
		})
	}
}

// cpuTime is what this process has used of the processors.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func exported(b *testing.B, m *Manager, id, form string) (size uint64) {
	r, err := m.ExportRollout(context.Background(), id, form)
	if err != nil {
		b.Fatal(err)
	}
	err = export.Write(form, r, trajectory.BlockPolicy{Way: trajectory.Keep}, func(d export.Document) error {
		size += uint64(len(d.Body)) + 1
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return size
}
