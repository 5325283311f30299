package docker

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/system"

	"proctor/sandbox"
	"proctor/sandbox/confine"
)

func TestCheckSpecRefuses(t *testing.T) {
	for want, spec := range map[string]sandbox.Spec{
		`workdir "here": an absolute path is needed`:                             {Workdir: "here"},
		`network mode "host": none, open or internal is needed`:                  {Network: sandbox.Network{Mode: "host"}},
		"network mode internal: the network's name is needed":                    {Network: sandbox.Network{Mode: "internal"}},
		`label "proctor.role": names that begin with "proctor" are the engine's`: {Labels: map[string]string{"proctor.role": "x"}},
	} {
		if err := checkSpec(&spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", spec, err, want)
		}
	}
	spec := sandbox.Spec{Labels: map[string]string{"project": "x"}}
	if err := checkSpec(&spec); err != nil || spec.Workdir != "/" {
		t.Errorf("%v, workdir %q", err, spec.Workdir)
	}
}

func TestHostConfigConfines(t *testing.T) {
	e := &Engine{opts: Options{Owner: "o"}, cpus: confine.NewCPUPicker(3)}
	host, err := e.hostConfig(sandbox.Spec{}, sandbox.DefaultLimits(), "/b", "/f", true)
	if err != nil {
		t.Fatal(err)
	}
	if host.NetworkMode != "none" || host.Privileged || host.Memory != 2<<30 || host.MemorySwap != host.Memory ||
		*host.PidsLimit != 512 || host.CpusetCpus != "3" || host.StorageOpt["size"] != "10240M" || host.LogConfig.Type != "none" {
		t.Errorf("%+v", host)
	}
	if !slices.Contains(host.CapDrop, "ALL") || !slices.Contains(host.SecurityOpt, "no-new-privileges:true") {
		t.Errorf("capabilities %v, security %v", host.CapDrop, host.SecurityOpt)
	}
	for _, strong := range []string{"SYS_ADMIN", "SYS_PTRACE", "NET_ADMIN", "NET_RAW", "MKNOD", "SYS_MODULE", "DAC_READ_SEARCH", "SYS_CHROOT"} {
		if slices.Contains(host.CapAdd, strong) {
			t.Errorf("%s is kept", strong)
		}
	}
	if !host.Mounts[0].ReadOnly {
		t.Error("the agent can be written to")
	}
	for _, bad := range []sandbox.Limits{{CPUs: -1}, {MemoryMB: 1}, {Pids: 1}, {OpenFiles: 1}, {DiskMB: -5}} {
		if _, err := e.resources(bad.WithDefaults()); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}

func TestExtraHosts(t *testing.T) {
	got, err := extraHosts(map[string]string{"b.example": "10.0.0.2", "a.example": "fd00::1"})
	if err != nil || !slices.Equal(got, []string{"a.example:fd00::1", "b.example:10.0.0.2"}) {
		t.Errorf("%v %v", got, err)
	}
	for name, address := range map[string]string{"a b": "10.0.0.1", "": "10.0.0.1", "a": "host-gateway", "a:b": "10.0.0.1"} {
		if _, err := extraHosts(map[string]string{name: address}); err == nil {
			t.Errorf("%q %q was taken", name, address)
		}
	}
}

func TestCommitGivesTheImageItsOwnStartBack(t *testing.T) {
	got := commitChanges(container.Config{Cmd: []string{"bash", "-l"}, User: "me"},
		map[string]string{"proctor": "o", "proctor.name": "r", "other": "kept"})
	want := []string{"ENTRYPOINT []", `CMD ["bash","-l"]`, "USER me", "WORKDIR /", `LABEL proctor=""`, `LABEL proctor.name=""`}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestPullable(t *testing.T) {
	for ref, want := range map[string]bool{
		"python:3.12": true, "images.example.org/a/b@sha256:" + strings.Repeat("a", 64): true, "proctor/base:dev": false,
		"sha256:" + strings.Repeat("a", 64): false, "": false, "Upper Case": false, strings.Repeat("a", 64): false,
	} {
		if pullable(ref) != want {
			t.Errorf("%q: pullable %v", ref, !want)
		}
	}
}

func TestDiskQuotaIsAskedForWhereItMayBe(t *testing.T) {
	for driver, want := range map[[2]string]bool{
		{"overlay2", "extfs"}: false, {"overlay2", "xfs"}: true, {"btrfs", ""}: true, {"vfs", ""}: false,
	} {
		e := &Engine{}
		info := system.Info{Driver: driver[0], DriverStatus: [][2]string{{"Backing Filesystem", driver[1]}}}
		if got := e.diskQuota(info); got != want {
			t.Errorf("%v: %v", driver, got)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	if _, err := New(Options{}); err == nil {
		t.Error("an engine without an owner")
	}
	if _, err := New(Options{Owner: "o", Host: "tcp://192.0.2.1:2375"}); !errors.Is(err, sandbox.ErrUnavailable) {
		t.Errorf("a daemon elsewhere: %v", err)
	}
}
