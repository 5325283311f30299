package oci

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"proctor/sandbox"
)

// TestStartRatio holds a whole start, from the image's name to an agent that answers, to the runtime's own run of the
// same kind of bundle on a ready overlay. Turn by turn, so that what else the machine does falls on both.
func TestStartRatio(t *testing.T) {
	if os.Getenv("PROCTOR_REQUIRE_RATIOS") == "" {
		t.Skip("NOT TESTED, times under load mean nothing: set PROCTOR_REQUIRE_RATIOS=1 on an idle machine")
	}
	needRuntime(t, "runc")
	engine := newEngine(t, Options{Owner: newOwner(t)})
	ctx := context.Background()
	model := makeBox(t, engine, sandbox.Spec{})
	known := mustLoad(t, engine, model.id)
	var bare, whole, removed []time.Duration
	for range 15 {
		bare = append(bare, bareStart(t, engine, known))
		began := time.Now()
		s, err := engine.Create(ctx, sandbox.Spec{Image: baseImage})
		if err != nil {
			t.Fatal(err)
		}
		whole = append(whole, time.Since(began))
		began = time.Now()
		if err := s.Close(ctx); err != nil {
			t.Fatal(err)
		}
		removed = append(removed, time.Since(began))
	}
	a, b := median(bare), median(whole)
	t.Logf("runc run %v, create %v (ratio %.2f), remove %v", a, b, float64(b)/float64(a), median(removed))
	if ratio := float64(b) / float64(a); ratio > 1.5 {
		t.Errorf("a start takes %.2f times runc's own, at most 1.5 is wanted", ratio)
	}
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// bareStart times `runc run --detach` of a bundle that is ready.
func bareStart(t *testing.T, e *Engine, known state) time.Duration {
	t.Helper()
	s := known
	s.ID = "bare"
	text, err := os.ReadFile(filepath.Join(e.folder(known.ID), "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	folder := e.folder(s.ID)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "config.json"), bytes.ReplaceAll(text, []byte(e.cgroupName(known.ID)), []byte("/initd-bare")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := e.mount(s); err != nil {
		t.Fatal(err)
	}
	defer func() {
		kill := exec.Command(e.runtime.path, "--root", e.runtimeRoot(), "delete", "--force", s.ID)
		if out, err := kill.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		if err := e.discard(s.ID); err != nil {
			t.Error(err)
		}
	}()
	began := time.Now()
	// No pipe: the sandbox's first process inherits it, and waiting for its end would last as long.
	if err := exec.Command(e.runtime.path, "--root", e.runtimeRoot(), "run", "--detach", "--bundle", folder, s.ID).Run(); err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}
