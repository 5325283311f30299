package docker

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/go-units"

	"proctor/sandbox"
	"proctor/sandbox/box"
	"proctor/sandbox/confine"
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
		Entrypoint:  []string{confine.BoxInside},
		Cmd:         []string{}, // the agent reads no arguments: anyone inside could too
		WorkingDir:  "/",        // the agent makes the workdir, as the user that commands run as
		Hostname:    spec.Hostname,
		Labels:      labels,
		Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
		StopSignal:  "SIGKILL",

		NetworkDisabled: e.ownNetwork(spec),
	}
}

// ownNetwork reports whether the runtime alone makes the sandbox's network, a loopback in a namespace of its own, and
// the daemon takes no part. All that the daemon would do for such a network is to start itself a second time in a hook,
// which costs as much as the rest of a start (measured: 0.31 s and 0.33 s of processor time with it, 0.15 s and
// 0.15 s without), and to write the files that name hosts, which the agent does instead; under a read-only root it
// cannot. Runtimes with a network of their own need the daemon's.
func (e *Engine) ownNetwork(spec sandbox.Spec) bool {
	return networkMode(spec.Network) == "none" && !spec.ReadOnlyRoot && e.plainRuntime()
}

// plainRuntime reports whether sandboxes run on the host's kernel.
func (e *Engine) plainRuntime() bool { return e.opts.Runtime == "" || e.opts.Runtime == "runc" }

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
	servers, options, search := resolver(spec.Network)
	host := &container.HostConfig{
		Runtime:       e.opts.Runtime,
		NetworkMode:   networkMode(spec.Network),
		Sysctls:       sysctls(spec.Network),
		ExtraHosts:    hosts,
		DNS:           servers,
		DNSOptions:    options,
		DNSSearch:     search,
		IpcMode:       "private",
		CapDrop:       []string{"ALL"},
		CapAdd:        confine.Capabilities(),
		SecurityOpt:   []string{"no-new-privileges:true", "seccomp=" + profile},
		MaskedPaths:   confine.MaskedPaths(),
		ReadonlyPaths: confine.ReadonlyPaths(),
		OomScoreAdj:   confine.OOMScore,
		ShmSize:       confine.ShmBytes,
		LogConfig:     container.LogConfig{Type: "none"},
		Resources:     resources,
		RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled},
		Mounts: []mount.Mount{
			{Type: mount.TypeBind, Source: binary, Target: confine.BoxInside, ReadOnly: true},
			{Type: mount.TypeBind, Source: folder, Target: confine.FolderInside},
		},
	}
	if spec.ReadOnlyRoot {
		host.ReadonlyRootfs, host.Tmpfs = true, map[string]string{}
		for _, dir := range confine.WritableDirs() {
			host.Tmpfs[dir] = fmt.Sprintf("rw,exec,nosuid,nodev,mode=1777,size=%dm", limits.DiskMB)
		}
	}
	if quota {
		host.StorageOpt = map[string]string{"size": strconv.FormatInt(limits.DiskMB, 10) + "M"}
	}
	return host, nil
}

// showLimits lets programs that look into /proc and /sys see the sandbox's limits in place of the host's own.
// Runtimes with a kernel of their own show what they like.
func (e *Engine) showLimits(host *container.HostConfig) error {
	if !e.plainRuntime() {
		return nil
	}
	memory, err1 := e.root.MemInfo(host.Memory >> 20)
	online, err2 := e.root.Online(host.CpusetCpus)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	host.Mounts = append(host.Mounts,
		mount.Mount{Type: mount.TypeBind, Source: memory, Target: confine.MemInfoInside, ReadOnly: true},
		mount.Mount{Type: mount.TypeBind, Source: online, Target: confine.OnlineInside, ReadOnly: true})
	return nil
}

// resources turns limits into the daemon's.
func (e *Engine) resources(limits sandbox.Limits) (container.Resources, error) {
	if err := confine.CheckLimits(limits); err != nil {
		return container.Resources{}, err
	}
	nano, cpus := e.cpus.Pick(limits.CPUs)
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

// resolver gives the resolver, its options and the search domains of a sandbox without a network: the address
// at which a relay's answers, and nothing before one is opened. The daemon would copy the host's, which say
// where the host is. Nil for other networks: the daemon's own choice.
func resolver(n sandbox.Network) (servers, options, search []string) {
	if networkMode(n) != "none" {
		return nil, nil, nil
	}
	return []string{box.Resolver.Addr().String()}, []string{"ndots:0"}, []string{"."}
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
	checked, err := confine.ExtraHosts(hosts)
	var lines []string
	for _, host := range checked {
		lines = append(lines, host.Name+":"+host.Address)
	}
	return lines, err
}

// checkSpec refuses what the daemon would misread.
func checkSpec(spec *sandbox.Spec) error {
	var err error
	if spec.Workdir, err = confine.CheckWorkdir(spec.Workdir); err != nil {
		return err
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
