package oci

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"proctor/sandbox"
)

// planOf gives the bundle of an engine with options, on a machine with features.
func planOf(t *testing.T, o Options, f features, spec sandbox.Spec) *specs.Spec {
	t.Helper()
	o.Owner, o.Docker = "o", "off"
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	p := plan{spec: spec, limits: sandbox.DefaultLimits(), hostname: "abc", binary: "/b", folder: "/f", cgroup: "/c", quota: 50000, cpus: "3", files: 99}
	return e.bundle(p, f)
}

func mountAt(s *specs.Spec, path string) specs.Mount {
	for _, m := range s.Mounts {
		if m.Destination == path {
			return m
		}
	}
	return specs.Mount{}
}

func TestBundleConfines(t *testing.T) {
	for _, v2 := range []bool{false, true} {
		s := planOf(t, Options{}, features{cgroupNS: true, swap: true, v2: v2}, sandbox.Spec{})
		r := s.Linux.Resources
		if *r.Memory.Limit != 2<<30 || *r.Memory.Swap != 2<<30 || *r.Pids.Limit != 512 || *r.CPU.Quota != 50000 || *r.CPU.Period != 100000 || r.CPU.Cpus != "3" {
			t.Errorf("limits %+v %+v %+v", r.Memory, r.Pids, r.CPU)
		}
		if len(r.Devices) != 1 || r.Devices[0].Allow || r.Devices[0].Access != "rwm" {
			t.Errorf("devices %+v", r.Devices)
		}
		if !s.Process.NoNewPrivileges || s.Process.Terminal || s.Root.Readonly || s.Linux.Seccomp == nil || *s.Process.OOMScoreAdj != 500 {
			t.Errorf("%+v", s.Process)
		}
		caps := s.Process.Capabilities
		if len(caps.Inheritable)+len(caps.Ambient) > 0 || slices.Contains(caps.Bounding, "CAP_SYS_ADMIN") || !slices.Contains(caps.Effective, "CAP_CHOWN") {
			t.Errorf("%+v", caps)
		}
		var kinds []string
		for _, n := range s.Linux.Namespaces {
			if kinds = append(kinds, string(n.Type)); n.Path != "" {
				t.Errorf("joins %s", n.Path)
			}
		}
		if slices.Sort(kinds); strings.Join(kinds, " ") != "cgroup ipc mount network pid uts" {
			t.Errorf("namespaces %v", kinds)
		}
		if m := mountAt(s, "/sys/fs/cgroup"); !slices.Contains(m.Options, "ro") {
			t.Errorf("%+v", m)
		}
		if m := mountAt(s, "/sbin/docker-init"); !slices.Contains(m.Options, "ro") || m.Source != "/b" {
			t.Errorf("%+v", m)
		}
		text, err := json.Marshal(s)
		if err != nil || strings.Contains(string(text), "proctor") {
			t.Errorf("%v: the bundle names us: %s", err, text)
		}
	}
}

func TestBundleFollowsTheMachineAndTheOptions(t *testing.T) {
	old := planOf(t, Options{}, features{}, sandbox.Spec{})
	if old.Linux.Resources.Memory.Swap != nil || slices.ContainsFunc(old.Linux.Namespaces, func(n specs.LinuxNamespace) bool { return n.Type == specs.CgroupNamespace }) {
		t.Error("asks for what an old kernel has not got")
	}
	s := planOf(t, Options{UserNS: 100000, HidePID: true}, features{}, sandbox.Spec{ReadOnlyRoot: true})
	if len(s.Linux.UIDMappings) != 1 || s.Linux.UIDMappings[0] != (specs.LinuxIDMapping{HostID: 100000, Size: 65536}) || len(s.Linux.GIDMappings) != 1 ||
		!slices.ContainsFunc(s.Linux.Namespaces, func(n specs.LinuxNamespace) bool { return n.Type == specs.UserNamespace }) {
		t.Errorf("%+v", s.Linux.UIDMappings)
	}
	if m := mountAt(s, "/proc"); !slices.Contains(m.Options, "hidepid=2") || !slices.Contains(m.Options, "gid=61184") || !slices.Equal(s.Process.User.AdditionalGids, []uint32{61184}) {
		t.Errorf("%+v, groups %v", m, s.Process.User.AdditionalGids)
	}
	if m := mountAt(s, "/tmp"); !s.Root.Readonly || m.Type != "tmpfs" || !slices.Contains(m.Options, "size=10240m") {
		t.Errorf("%+v", m)
	}
	if m := mountAt(planOf(t, Options{}, features{}, sandbox.Spec{}), "/proc"); slices.Contains(m.Options, "hidepid=2") {
		t.Errorf("%+v", m)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, o := range []Options{{}, {Owner: "a\nb"}, {Owner: "o", UserNS: 1000}, {Owner: "o", UserNS: -5}} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
	for _, spec := range []sandbox.Spec{
		{Network: sandbox.Network{Mode: "open"}}, {Network: sandbox.Network{Mode: "internal", Name: "x"}},
	} {
		if err := checkSpec(&spec); !errors.Is(err, sandbox.ErrUnavailable) || !strings.Contains(err.Error(), "docker engine") {
			t.Errorf("%+v: %v", spec, err)
		}
	}
	if _, err := findRuntime("no-such-runtime"); !errors.Is(err, sandbox.ErrUnavailable) || !strings.Contains(err.Error(), "install the package runc") {
		t.Errorf("%v", err)
	}
}

func TestOverlayOptionsTellNothingOfTheHost(t *testing.T) {
	got := overlayOptions([]string{"sha256:low", "sha256:high"}, "b/o/i", true)
	if strings.Contains(got, "=/") || strings.Contains(got, ":/") || !strings.HasSuffix(got, ",volatile") || strings.Count(got, "l/") != 2 {
		t.Error(got)
	}
	many := make([]string, 120)
	for i := range many {
		many[i] = strings.Repeat("x", i)
	}
	if n := len(overlayOptions(many, "b/"+strings.Repeat("a", 12)+"/"+strings.Repeat("b", 32), true)); n >= 4096 {
		t.Errorf("options of %d bytes do not fit into a page", n)
	}
	if got := overlayOptions(nil, "b/o/i", false); !strings.HasPrefix(got, "lowerdir=e,") {
		t.Error(got)
	}
}

// cgroupTree makes files of a cgroup hierarchy.
func cgroupTree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestWhoseMemoryWasShort(t *testing.T) {
	for name, tc := range map[string]struct {
		v2    bool
		files map[string]string
		class string
		words string
	}{
		"v1, own":     {false, map[string]string{"memory/c/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n", "memory/c/memory.failcnt": "7\n"}, sandbox.FailureModel, "its own memory"},
		"v1, host's":  {false, map[string]string{"memory/c/memory.oom_control": "oom_kill 1\n", "memory/c/memory.failcnt": "0\n", "memory/c/memory.max_usage_in_bytes": "50\n"}, sandbox.FailureInfra, "host ran out"},
		"v1, reached": {false, map[string]string{"memory/c/memory.oom_control": "oom_kill 1\n", "memory/c/memory.failcnt": "0\n", "memory/c/memory.max_usage_in_bytes": "100\n"}, sandbox.FailureModel, "its own memory"},
		"v1, none":    {false, map[string]string{"memory/c/memory.oom_control": "oom_kill 0\n"}, sandbox.FailureModel, "no part"},
		"v1, gone":    {false, nil, sandbox.FailureModel, "no part"},
		"v2, own":     {true, map[string]string{"c/memory.events": "low 0\nhigh 0\nmax 12\noom 1\noom_kill 1\n"}, sandbox.FailureModel, "its own memory"},
		"v2, host's":  {true, map[string]string{"c/memory.events": "low 0\nhigh 0\nmax 0\noom 0\noom_kill 1\n"}, sandbox.FailureInfra, "host ran out"},
		"v2, none":    {true, map[string]string{"c/memory.events": "oom_kill 0\n"}, sandbox.FailureModel, "no part"},
	} {
		cg := cgroups{cgroupTree(t, tc.files), tc.v2}
		if dead := blame(cg.memoryDeaths("/c", 100)); dead.Class != tc.class || !strings.Contains(dead.Reason, tc.words) {
			t.Errorf("%s: %v", name, dead)
		}
	}
}

func TestFreezingByVersion(t *testing.T) {
	v2 := cgroups{cgroupTree(t, map[string]string{"c/cgroup.events": "populated 1\nfrozen 1\n", "c/cgroup.freeze": "0\n"}), true}
	if !v2.frozen("/c") || v2.frozen("/none") {
		t.Error("a frozen cgroup of version 2")
	}
	if err := v2.freeze(t.Context(), "/c", true); err != nil {
		t.Error(err)
	}
	if text, _ := os.ReadFile(v2.root + "/c/cgroup.freeze"); string(text) != "1" {
		t.Errorf("%q was written", text)
	}
	v1 := cgroups{cgroupTree(t, map[string]string{"freezer/c/freezer.state": "FREEZING\n", "pids/c/cgroup.procs": ""}), false}
	if !v1.frozen("/c") || v1.settled("/c", true) || v1.settled("/c", false) {
		t.Error("a freezing cgroup of version 1")
	}
	if got := v1.file("/c", "memory.events", "memory", "memory.oom_control"); got != v1.root+"/memory/c/memory.oom_control" {
		t.Error(got)
	}
	if got := v2.file("/c", "memory.events", "memory", "memory.oom_control"); got != v2.root+"/c/memory.events" {
		t.Error(got)
	}
}

func TestQuota(t *testing.T) {
	for nano, want := range map[int64]int64{1e9: 100000, 5e8: 50000, 1e7: 1000, 25e8: 250000, 1: 1000} {
		if got := quotaOf(nano); got != want {
			t.Errorf("%d: %d, want %d", nano, got, want)
		}
	}
}

func TestStartOfIsOfTheProcess(t *testing.T) {
	start, alive := startOf(os.Getpid())
	if again, _ := startOf(os.Getpid()); !alive || start == 0 || again != start {
		t.Errorf("%d %d %v", start, again, alive)
	}
	if _, alive := startOf(1 << 30); alive {
		t.Error("a process that cannot be is alive")
	}
	ctx, cancel := contextFor(t, time.Second)
	defer cancel()
	if err := kill(ctx, os.Getpid(), start+1); err != nil { // another process by now, were it not us
		t.Error(err)
	}
}
