package main

import (
	"context"
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"proctor/internal/config"
	"proctor/internal/store"
	"proctor/monitor"
	"proctor/sandbox"
	"proctor/sandbox/docker"
)

// TestGC leaves a live rollout's sandbox, and takes what nothing holds: first in words, then for good.
func TestGC(t *testing.T) {
	data := t.TempDir()
	s := startServer(t, data)
	s.create(monitor.Enforce)
	bin, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(bin+"/proctor", "gc", "--data", data).CombinedOutput(); err == nil || !strings.Contains(string(out), "is held by process") {
		t.Errorf("beside a server: %v: %s", err, out)
	}
	s.kill()

	st, err := store.Open(t.Context(), data, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := docker.New(docker.Options{Owner: st.Owner(), BoxPath: bin + "/boxd"})
	if err != nil {
		t.Fatal(err)
	}
	orphan, err := engine.Create(t.Context(), sandbox.Spec{Name: "orphan", Image: baseImage})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Remove(context.Background(), orphan.ID()) }) // where the test fails
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.Data, cfg.Boxd = data, bin+"/boxd"
	for _, dry := range []bool{true, false} {
		got, err := collect(t.Context(), cfg, 1<<62, dry)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Removed) != 1 || got.Removed[0].ID != orphan.ID() || got.Removed[0].Kind != "sandbox" || len(got.Failed) != 0 {
			body, _ := json.Marshal(got)
			t.Fatalf("dry=%v: %s", dry, body)
		}
		listed, err := engine.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		there := slices.ContainsFunc(listed, func(l sandbox.Listed) bool { return l.ID == orphan.ID() })
		if there != dry || len(listed) != map[bool]int{true: 2, false: 1}[dry] {
			t.Errorf("dry=%v: %d sandboxes left, the orphan among them: %v", dry, len(listed), there)
		}
	}
	s.start() // takes its rollout up again, and removes it in the end
}
