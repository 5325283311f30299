package docker

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/go-units"

	"proctor/sandbox"
)

// Where the agent and its run folder lie inside. `docker run --init` mounts its init at the same path; the socket
// is where the agent listens (agent.DefaultSocket, which the host need not link in).
const (
	boxInside    = "/sbin/docker-init"
	folderInside = "/run/init"
	socketName   = "ctl"
)

// Labels on the host's side; containers and networks of ours carry them.
const (
	labelOwner   = "proctor"         // Options.Owner
	labelName    = "proctor.name"    // Spec.Name
	labelRole    = "proctor.role"    // roleSandbox, roleService, roleNetwork
	labelWorkdir = "proctor.workdir" // Spec.Workdir
	roleSandbox  = "sandbox"
	roleService  = "service"
	roleNetwork  = "network"
)

// capabilities are what root inside keeps of Docker's fourteen, each with its reason. None reaches past
// the container: no NET_RAW (forged packets to neighbours), MKNOD (host disks), SYS_CHROOT, SETFCAP,
// AUDIT_WRITE.
var capabilities = []string{
	"CHOWN",            // apt, pip and tar give files to their owners
	"DAC_OVERRIDE",     // root writes in other users' folders, as people expect of root
	"FOWNER",           // dpkg and tar chmod files that are not root's
	"FSETID",           // they keep set-id bits while doing so
	"KILL",             // the agent ends commands that run as another user
	"SETGID",           // dropping to the image's USER, su, apt's _apt
	"SETUID",           // the same
	"SETPCAP",          // the agent lowers the bounding set of what it starts
	"NET_BIND_SERVICE", // test servers on ports below 1024
}

// maskedPaths are hidden from a sandbox: Docker's own list of today, given in full since an old daemon
// knows fewer.
var maskedPaths = []string{
	"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
	"/proc/sched_debug", "/proc/scsi", "/proc/timer_list", "/proc/timer_stats", "/sys/devices/virtual/powercap",
	"/sys/firmware",
}

// readonlyPaths are Docker's own.
var readonlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}

const (
	// oomScore makes the kernel, short of memory on the whole host, end a sandbox before the server or the daemon.
	oomScore = 500
	shmBytes = 64 << 20 // a private /dev/shm, inside the memory limit
)

// containerConfig is what runs: the agent, whatever ENTRYPOINT and CMD the image has. It starts as root
// and drops to the user for commands.
func (e *Engine) containerConfig(spec sandbox.Spec, image sandbox.Image) *container.Config {
	labels := maps.Clone(spec.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, map[string]string{
		labelOwner: e.opts.Owner, labelName: spec.Name, labelRole: roleSandbox,
		labelWorkdir: spec.Workdir,
	})
	return &container.Config{
		Image:       image.Digest,
		User:        "0:0",
		Entrypoint:  []string{boxInside},
		Cmd:         []string{}, // the agent reads no arguments: anyone inside could too
		WorkingDir:  "/",        // the agent makes the workdir, as the user that commands run as
		Hostname:    spec.Hostname,
		Labels:      labels,
		Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
		StopSignal:  "SIGKILL",
	}
}

// hostConfig is what confines it. quota asks for a size of the container's own layer.
func (e *Engine) hostConfig(spec sandbox.Spec, limits sandbox.Limits, binary, folder string, quota bool) (*container.HostConfig, error) {
	profile, err := seccompProfile()
	if err != nil {
		return nil, err
	}
	resources, err := e.resources(limits)
	if err != nil {
		return nil, err
	}
	hosts, err := extraHosts(spec.Network.Hosts)
	if err != nil {
		return nil, err
	}
	host := &container.HostConfig{
		Runtime:       e.opts.Runtime,
		NetworkMode:   networkMode(spec.Network),
		Sysctls:       sysctls(spec.Network),
		ExtraHosts:    hosts,
		IpcMode:       "private",
		CapDrop:       []string{"ALL"},
		CapAdd:        capabilities,
		SecurityOpt:   []string{"no-new-privileges:true", "seccomp=" + profile},
		MaskedPaths:   maskedPaths,
		ReadonlyPaths: readonlyPaths,
		OomScoreAdj:   oomScore,
		ShmSize:       shmBytes,
		LogConfig:     container.LogConfig{Type: "none"},
		Resources:     resources,
		RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled},
		Mounts: []mount.Mount{
			{Type: mount.TypeBind, Source: binary, Target: boxInside, ReadOnly: true},
			{Type: mount.TypeBind, Source: folder, Target: folderInside},
		},
	}
	if quota {
		host.StorageOpt = map[string]string{"size": strconv.FormatInt(limits.DiskMB, 10) + "M"}
	}
	return host, nil
}

// resources turns limits into the daemon's.
func (e *Engine) resources(limits sandbox.Limits) (container.Resources, error) {
	if limits.CPUs < 0.01 || limits.MemoryMB < 16 || limits.Pids < 16 || limits.OpenFiles < 64 || limits.DiskMB < 1 {
		return container.Resources{}, fmt.Errorf("limits %+v: at least 0.01 cpus, 16 memory_mb, 16 pids, 64 open_files and 1 disk_mb are needed", limits)
	}
	nano, cpus := e.cpus.pick(limits.CPUs)
	pids, memory, disk := limits.Pids, limits.MemoryMB<<20, limits.DiskMB<<20
	files := min(limits.OpenFiles, maxOpenFiles())
	return container.Resources{
		NanoCPUs:   nano,
		CpusetCpus: cpus,
		Memory:     memory,
		MemorySwap: memory, // memory and swap together: no swap
		PidsLimit:  &pids,
		Ulimits: []*units.Ulimit{
			{Name: "nofile", Soft: files, Hard: files},
			{Name: "core", Soft: 0, Hard: 0},
			// No quota on most storage drivers: at least one file cannot eat the host's disk.
			{Name: "fsize", Soft: disk, Hard: disk},
		},
	}, nil
}

// sysctls gives a sandbox without a network the IPv6 of a machine that has one: a loopback, and
// "Network is unreachable" for all else. The daemon would switch it off, and programs would meet
// errors that no machine without a network gives.
func sysctls(n sandbox.Network) map[string]string {
	if networkMode(n) != "none" {
		return nil
	}
	if _, err := os.Stat("/proc/sys/net/ipv6"); err != nil {
		return nil // a kernel without IPv6 refuses the setting
	}
	return map[string]string{"net.ipv6.conf.all.disable_ipv6": "0"}
}

// networkMode is the daemon's word for n.
func networkMode(n sandbox.Network) container.NetworkMode {
	switch n.Mode {
	case "open":
		return "bridge"
	case "internal":
		return container.NetworkMode(n.Name)
	}
	return "none"
}

// extraHosts gives the lines of the hosts file, sorted.
func extraHosts(hosts map[string]string) ([]string, error) {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(hosts)) {
		if name == "" || strings.ContainsAny(name, ": \t\n#") {
			return nil, fmt.Errorf("network host name %q: a plain name is needed", name)
		}
		if _, err := netip.ParseAddr(hosts[name]); err != nil {
			return nil, fmt.Errorf("network host %s: %w", name, err)
		}
		lines = append(lines, name+":"+hosts[name])
	}
	return lines, nil
}

// checkSpec refuses what the daemon would misread.
func checkSpec(spec *sandbox.Spec) error {
	if spec.Workdir == "" {
		spec.Workdir = "/"
	}
	if spec.Workdir[0] != '/' || strings.ContainsRune(spec.Workdir, 0) {
		return fmt.Errorf("workdir %q: an absolute path is needed", spec.Workdir)
	}
	switch spec.Network.Mode {
	case "", "none", "open":
	case "internal":
		if spec.Network.Name == "" {
			return errors.New("network mode internal: the network's name is needed")
		}
	default:
		return fmt.Errorf("network mode %q: none, open or internal is needed", spec.Network.Mode)
	}
	for name := range spec.Labels {
		if name == labelOwner || strings.HasPrefix(name, labelOwner+".") {
			return fmt.Errorf("label %q: names that begin with %q are the engine's own", name, labelOwner)
		}
	}
	return nil
}
