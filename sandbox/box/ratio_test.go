package box_test

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"proctor/sandbox"
	"proctor/sandbox/box"
)

// The targets of the design, as ratios of medians taken in turns, so that other load on the machine weighs
// on all alike. They are checked only where BOX_RATIOS=1 says that the machine is otherwise idle.
func TestRatios(t *testing.T) {
	b := newBox(t, box.Init{})
	oneshot := func() {
		if res, err := b.Exec(context.Background(), sandbox.Exec{Argv: []string{"bash", "-c", "true"}}); err != nil || *res.Exit != 0 {
			t.Fatal(res, err)
		}
	}
	kinds := []struct {
		name  string
		run   func()
		limit float64
	}{
		{"bare bash -c true", func() { _ = exec.Command("bash", "-c", "true").Run() }, 1},
		{"one-shot", oneshot, 1.1},
		{"builtin in the shell", func() { b.sh("true") }, 0.25},
		{"bash -c true in the shell", func() { b.sh("bash -c true") }, 1.25},
	}
	took := make([][]time.Duration, len(kinds))
	for range 300 {
		for i, k := range kinds {
			began := time.Now()
			k.run()
			took[i] = append(took[i], time.Since(began))
		}
	}
	for i, k := range kinds {
		slices.Sort(took[i])
		median, bare := took[i][len(took[i])/2], took[0][len(took[0])/2]
		ratio := float64(median) / float64(bare)
		t.Logf("%-26s %8s  %.2f x bare", k.name, median, ratio)
		if ratio > k.limit && os.Getenv("BOX_RATIOS") == "1" {
			t.Errorf("%s: %.2f x bare, limit %.2f", k.name, ratio, k.limit)
		}
	}
}
