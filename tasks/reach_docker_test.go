package tasks_test

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"proctor/sandbox/egress"
	"proctor/sandbox/egress/index"
	"proctor/sandbox/egress/index/indextest"
	"proctor/sandbox/egress/index/pypi"
	"proctor/tasks"
)

// Setup lines with an allowlist install from the index as it was, reach nothing else, and leave none of it
// in the image.
func TestDockerSetupAllowlist(t *testing.T) {
	engine, ctx := dockerEngine(t), context.Background()
	served := indextest.New(t, indextest.Release{Project: "helper", Version: "1.0", Uploaded: "2022-01-01T00:00:00Z"},
		indextest.Release{Project: "helper", Version: "2.0", Uploaded: "2024-01-01T00:00:00Z"})
	mirror, err := pypi.New(index.Options{Upstream: served.URL})
	if err != nil {
		t.Fatal(err)
	}
	task := &tasks.Task{ID: "reach", Instruction: "i", Image: dockerImage, Workdir: "/work", Env: map[string]string{"TEST_OF": t.Name()},
		Setup:   []string{"pip install -q --target /opt/lib helper 2>&1", "cp /etc/resolv.conf /opt/resolv; ! curl -s https://refused.example.test/ && env > /opt/env"},
		Network: tasks.Network{Setup: "allowlist", PackageIndex: &tasks.PackageIndex{Before: "2023-05-01"}}}
	p := &tasks.Preparer{Engine: engine, Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler), Build: tasks.BuildAccess{Env: map[string]string{"HTTPS_PROXY": "http://proxy.example.test:1"}}}
	if _, err := p.Prepare(ctx, task, true); !errors.Is(err, tasks.ErrSetup) {
		t.Errorf("without a proxy: %v", err)
	}
	p.Egress = egress.New(egress.Options{Python: mirror, Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	hard, err := p.Prepare(ctx, task, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeImages(t, hard.Image.Ref, hard.Raw.Ref) })
	box := startBox(t, engine, task, hard)
	if got := run(t, box, "ls /opt/lib; cat /opt/resolv"); !strings.Contains(got, "helper-1.0.dist-info") || !strings.Contains(got, "nameserver 127.0.0.11") {
		t.Errorf("the image has %q", got)
	}
	if got := run(t, box, "cat /opt/env; echo; cat /etc/resolv.conf; env"); strings.Contains(got, "HTTPS_PROXY") || strings.Contains(got[strings.Index(got, "\n\n"):], "INDEX_URL") {
		t.Errorf("lent, or left: %q", got)
	}

	built := *task
	built.Image, built.Build = "", &tasks.Build{Dockerfile: "Dockerfile"}
	if _, err := p.Prepare(ctx, &built, true); !errors.Is(err, tasks.ErrSetup) || !strings.Contains(err.Error(), "Dockerfile") {
		t.Errorf("a Dockerfile: %v", err)
	}
}
