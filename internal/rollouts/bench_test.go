package rollouts

import (
	"context"
	"fmt"
	"log/slog"
	"syscall"
	"testing"

	"proctor/internal/store"
	"proctor/judge"
	"proctor/monitor"
	"proctor/rules"
	"proctor/sandbox/sandboxtest"
	"proctor/tasks"
)

// packRules compiles the packs that ship.
type packRules struct{ packs *rules.Packs }

func (p packRules) Digest() string { return p.packs.Digest() }
func (p packRules) Session(vars rules.Vars) (monitor.Matcher, error) {
	set, err := rules.Compile(p.packs, vars)
	if err != nil {
		return nil, err
	}
	return set.Session(), nil
}

// BenchmarkCall is what a call costs on top of the sandbox: manager, Gate with the real normaliser
// and the packs that ship, record.
func BenchmarkCall(b *testing.B) {
	st, err := store.Open(context.Background(), b.TempDir(), store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	packs, err := rules.Core()
	if err != nil {
		b.Fatal(err)
	}
	m, err := Open(context.Background(), Options{
		Store: st, Engine: &sandboxtest.Fake{}, Lab: &fakeLab{}, Judge: judge.NewHeuristic(), Log: slog.New(slog.DiscardHandler),
		Rules: func() RuleSet { return packRules{packs} }, Tasks: []*tasks.Task{{ID: "t", Image: "img", Workdir: "/testbed"}},
	})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = m.Close(false) }()
	made, err := m.Create(context.Background(), "", CreateRequest{TaskID: "t"})
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	start := cpu(b)
	for i := range b.N {
		if _, err := m.Call(context.Background(), made.ID, bash(b, fmt.Sprint(i), "echo hello")); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cpu(b)-start)/float64(b.N), "cpu-ns/op")
}

func cpu(b *testing.B) int64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
