package confine

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"proctor/sandbox"
)

// CheckLimits refuses limits under which no sandbox can live. Defaults are filled in already.
func CheckLimits(l sandbox.Limits) error {
	if l.CPUs < 0.01 || l.MemoryMB < 16 || l.Pids < 16 || l.OpenFiles < 64 || l.DiskMB < 1 {
		return fmt.Errorf("limits %+v: at least 0.01 cpus, 16 memory_mb, 16 pids, 64 open_files and 1 disk_mb are needed", l)
	}
	return nil
}

// CheckWorkdir gives dir, "/" where it is empty; an error where it is no absolute path.
func CheckWorkdir(dir string) (string, error) {
	if dir == "" {
		return "/", nil
	}
	if dir[0] != '/' || strings.ContainsRune(dir, 0) {
		return "", fmt.Errorf("workdir %q: an absolute path is needed", dir)
	}
	return dir, nil
}

// Host is a line of a hosts file.
type Host struct{ Name, Address string }

// ExtraHosts checks the names and addresses of Network.Hosts and gives them sorted by name.
func ExtraHosts(hosts map[string]string) ([]Host, error) {
	var lines []Host
	for _, name := range slices.Sorted(maps.Keys(hosts)) {
		if name == "" || strings.ContainsAny(name, ": \t\n#") {
			return nil, fmt.Errorf("network host name %q: a plain name is needed", name)
		}
		if _, err := netip.ParseAddr(hosts[name]); err != nil {
			return nil, fmt.Errorf("network host %s: %w", name, err)
		}
		lines = append(lines, Host{name, hosts[name]})
	}
	return lines, nil
}

// HostsFile is the text of /etc/hosts as Docker writes it, with further lines.
func HostsFile(extra []Host) string {
	var b strings.Builder
	b.WriteString("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\nfe00::0\tip6-localnet\n" +
		"ff00::0\tip6-mcastprefix\nff02::1\tip6-allnodes\nff02::2\tip6-allrouters\n")
	for _, host := range extra {
		b.WriteString(host.Address + "\t" + host.Name + "\n")
	}
	return b.String()
}

// ResolvFile is the text of /etc/resolv.conf of a sandbox without a network: the address at which a relay's resolver
// answers, and nothing before one is opened. The host's own would say where the host is.
const ResolvFile = "nameserver 127.0.0.11\noptions ndots:0\n"

// CanWatch reports whether the kernel lets this process see opens of files below a mount.
func CanWatch() bool {
	fd, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF|unix.FAN_CLOEXEC, unix.O_RDONLY)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return unix.FanotifyMark(fd, unix.FAN_MARK_ADD|unix.FAN_MARK_MOUNT, unix.FAN_OPEN, unix.AT_FDCWD, "/") == nil
}
