package oci

import (
	"fmt"
	"math"
	"os"
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"proctor/sandbox"
	"proctor/sandbox/confine"
)

// hideGroup is the group whose members see all of /proc where HidePID is set: the agent, and nobody else, unless root
// inside joins it. It must not be 0, which root is in.
const hideGroup = 61184

// plan is what a bundle is made from.
type plan struct {
	id       string
	spec     sandbox.Spec
	limits   sandbox.Limits
	hostname string
	binary   string // the agent on the host
	folder   string // the run folder on the host
	cgroup   string
	quota    int64  // of CPU time, in microseconds of each cpuPeriod
	cpus     string // the cpuset
	files    int64  // open files
	memory   string // what is shown for memory, on the host; "" for the kernel's own
	online   string // and for processors
	tmp      string // the host's folder for /tmp, where the runtime would put another there; "" for the image's
}

// features are what the kernel and the machine offer.
type features struct {
	cgroupNS bool
	swap     bool // memory and swap are limited together
	v2       bool
	ipv6     bool
}

// cpuPeriod is what a quota of CPU time is counted in, in microseconds.
const cpuPeriod = 100000

// machineFeatures looks at the machine.
func machineFeatures() features {
	there := func(path string) bool { _, err := os.Stat(path); return err == nil }
	cg := machineCgroups()
	return features{
		cgroupNS: there("/proc/self/ns/cgroup"),
		// In version 2 a kernel without swap accounting has no memory.swap.max, and runtimes do without.
		swap: cg.v2 || there(cg.root+"/memory/memory.memsw.limit_in_bytes"),
		v2:   cg.v2,
		ipv6: there("/proc/sys/net/ipv6"),
	}
}

// bundle is the runtime's configuration of a sandbox.
func (e *Engine) bundle(p plan, f features) *specs.Spec {
	s := &specs.Spec{
		Version:  "1.0.2",
		Process:  e.process(p),
		Root:     &specs.Root{Path: "m", Readonly: p.spec.ReadOnlyRoot},
		Hostname: p.hostname,
		Mounts:   e.mounts(p),
		Linux: &specs.Linux{
			Namespaces:    namespaces(f, e.opts.UserNS != 0),
			Resources:     resources(p, f),
			CgroupsPath:   p.cgroup,
			Seccomp:       confine.SeccompProfile(),
			MaskedPaths:   confine.MaskedPaths(),
			ReadonlyPaths: confine.ReadonlyPaths(),
			// As Docker has it: ping without a capability.
			Sysctl: map[string]string{"net.ipv4.ping_group_range": "0 2147483647", "net.ipv4.ip_unprivileged_port_start": "0"},
		},
	}
	if e.opts.UserNS != 0 {
		all := []specs.LinuxIDMapping{{ContainerID: 0, HostID: uint32(e.opts.UserNS), Size: 1 << 16}}
		s.Linux.UIDMappings, s.Linux.GIDMappings = all, all
		s.Linux.Sysctl["net.ipv4.ping_group_range"] = "0 65535" // groups that there are
	}
	return s
}

// process is the agent, as root with what capabilities a sandbox keeps.
func (e *Engine) process(p plan) *specs.Process {
	var caps []string
	for _, name := range confine.Capabilities() {
		caps = append(caps, "CAP_"+name)
	}
	score := confine.OOMScore
	files, disk := uint64(p.files), uint64(p.limits.DiskMB)<<20
	process := &specs.Process{
		Args: []string{confine.BoxInside},
		Env:  []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		Cwd:  "/",
		Capabilities: &specs.LinuxCapabilities{
			Bounding: caps, Effective: slices.Clone(caps), Permitted: slices.Clone(caps),
		},
		Rlimits: []specs.POSIXRlimit{
			{Type: "RLIMIT_NOFILE", Soft: files, Hard: files},
			{Type: "RLIMIT_CORE"},
			// No quota on most file systems: at least one file cannot eat the host's disk.
			{Type: "RLIMIT_FSIZE", Soft: disk, Hard: disk},
		},
		NoNewPrivileges: true,
		OOMScoreAdj:     &score,
	}
	if e.opts.HidePID {
		process.User.AdditionalGids = []uint32{hideGroup}
	}
	return process
}

// mounts are Docker's, and the agent with its run folder.
func (e *Engine) mounts(p plan) []specs.Mount {
	hidden := []string{"nosuid", "noexec", "nodev"}
	proc := slices.Clone(hidden)
	if e.opts.HidePID {
		proc = append(proc, "hidepid=2", fmt.Sprintf("gid=%d", hideGroup))
	}
	all := []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: proc},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "strictatime", "mode=755", "size=65536k"}},
		{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"}},
		{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: append(slices.Clone(hidden), "ro")},
		{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup", Options: append(slices.Clone(hidden), "ro")},
		{Destination: "/dev/mqueue", Type: "mqueue", Source: "mqueue", Options: hidden},
		{Destination: "/dev/shm", Type: "tmpfs", Source: "shm", Options: append(slices.Clone(hidden), "mode=1777", fmt.Sprintf("size=%d", confine.ShmBytes))},
	}
	if p.spec.ReadOnlyRoot {
		for _, dir := range confine.WritableDirs() {
			all = append(all, specs.Mount{Destination: dir, Type: "tmpfs", Source: "tmpfs",
				Options: []string{"nosuid", "nodev", "mode=1777", fmt.Sprintf("size=%dm", p.limits.DiskMB)}})
		}
	}
	for _, shown := range [][2]string{{confine.MemInfoInside, p.memory}, {confine.OnlineInside, p.online}} {
		if shown[1] != "" {
			all = append(all, specs.Mount{Destination: shown[0], Type: "bind", Source: shown[1], Options: []string{"bind", "ro", "nosuid", "nodev", "noexec"}})
		}
	}
	if p.tmp != "" {
		all = append(all, specs.Mount{Destination: "/tmp", Type: "bind", Source: p.tmp, Options: []string{"bind", "nosuid", "nodev"}})
	}
	return append(all,
		specs.Mount{Destination: confine.BoxInside, Type: "bind", Source: p.binary, Options: []string{"bind", "ro", "nosuid", "nodev"}},
		specs.Mount{Destination: confine.FolderInside, Type: "bind", Source: p.folder, Options: []string{"bind", "nosuid", "nodev", "noexec"}},
	)
}

// showLimits lets programs that look into /proc and /sys see the sandbox's limits in place of the host's own. runsc's
// kernel shows what it likes.
func (e *Engine) showLimits(p *plan, runtime string) (err error) {
	if runtime == "runsc" {
		return nil
	}
	if p.memory, err = e.root.MemInfo(p.limits.MemoryMB); err != nil {
		return err
	}
	p.online, err = e.root.Online(p.cpus)
	return err
}

// namespaces are all there are.
func namespaces(f features, user bool) []specs.LinuxNamespace {
	kinds := []specs.LinuxNamespaceType{specs.PIDNamespace, specs.NetworkNamespace, specs.IPCNamespace, specs.UTSNamespace, specs.MountNamespace}
	if f.cgroupNS {
		kinds = append(kinds, specs.CgroupNamespace)
	}
	if user {
		kinds = append(kinds, specs.UserNamespace)
	}
	var all []specs.LinuxNamespace
	for _, kind := range kinds {
		all = append(all, specs.LinuxNamespace{Type: kind})
	}
	return all
}

// resources are the cgroup's limits, for either version: runtimes translate.
func resources(p plan, f features) *specs.LinuxResources {
	memory, period, quota, pids := p.limits.MemoryMB<<20, uint64(cpuPeriod), p.quota, p.limits.Pids
	r := &specs.LinuxResources{
		Devices: []specs.LinuxDeviceCgroup{{Allow: false, Access: "rwm"}}, // runtimes add what /dev holds
		Memory:  &specs.LinuxMemory{Limit: &memory},
		CPU:     &specs.LinuxCPU{Quota: &quota, Period: &period, Cpus: p.cpus},
		Pids:    &specs.LinuxPids{Limit: &pids},
	}
	if f.swap {
		r.Memory.Swap = &memory // memory and swap together: no swap
	}
	return r
}

// quotaOf turns processors into microseconds of CPU time a period, at least the kernel's least.
func quotaOf(nano int64) int64 {
	return max(1000, int64(math.Round(float64(nano)/1e9*cpuPeriod)))
}

// maxOpenFiles gives the most open files that a sandbox can have: without CAP_SYS_RESOURCE, this process's own.
func maxOpenFiles() int64 {
	var limit unix.Rlimit
	header, data := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
	if unix.Capget(&header, &data[0]) != nil || data[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0 {
		return 1 << 20 // the kernel's own ceiling, unless somebody has moved it
	}
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return math.MaxInt64
	}
	return int64(min(limit.Max, 1<<20))
}
