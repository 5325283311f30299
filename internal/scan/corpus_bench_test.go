package scan

import (
	"os"
	"testing"

	"proctor/internal/traces"
	"proctor/judge"
	"proctor/monitor/normalize/corpus"
)

func BenchmarkCorpus(b *testing.B) {
	p := packs(b)
	tasks, err := corpus.LoadTasks(os.Getenv("SCAN_TASKS"))
	if err != nil {
		b.Skip(err)
	}
	b.ReportAllocs()
	calls := 0
	for b.Loop() {
		src := &traces.Source{Paths: []string{os.Getenv("SCAN_CORPUS")}}
		r, err := (&Scanner{Packs: p, Judge: judge.NewHeuristic(), Tasks: tasks, Workers: 2}).Run(b.Context(), src.Documents())
		if err != nil {
			b.Fatal(err)
		}
		calls += r.Calls
	}
	b.ReportMetric(float64(calls)/b.Elapsed().Seconds(), "calls/s")
}
