package rollouts

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"proctor/internal/records"
	"proctor/internal/store"
	"proctor/internal/trajectory"
	"proctor/internal/trajectory/export"
	"proctor/internal/trajectory/trajtest"
	"proctor/sandbox/sandboxtest"
	"proctor/tasks"
)

// BenchmarkExport1000 exports 1,000 rollouts of 20 turns one after another, as a group's export does,
// and reports the speed in bytes written and the largest heap. The rollouts are made once.
func BenchmarkExport1000(b *testing.B) {
	rollouts := 1000
	if testing.Short() {
		rollouts = 60 // for a profile
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
				began := time.Now()
				for i, id := range ids {
					size += exported(b, m, id, form)
					if i%50 == 0 {
						var mem runtime.MemStats
						runtime.ReadMemStats(&mem)
						peak = max(peak, mem.HeapInuse)
					}
				}
				b.ReportMetric(float64(size)/1e6/time.Since(began).Seconds(), "MB/s")
			}
			b.ReportMetric(float64(size)/1e6, "MB")
			b.ReportMetric(float64(peak)/1e6, "peak-heap-MB")
		})
	}
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
