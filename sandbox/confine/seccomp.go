package confine

import (
	_ "embed"
	"runtime"
	"strings"
	"syscall"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

//go:embed syscalls.txt
var syscallList string

// namespaceFlags are the CLONE_NEW* bits: a sandbox makes no namespace, user namespaces least of all,
// since most kernel holes of the last years begin there.
const namespaceFlags = 0x7E020000

// allowedFamilies are the address families a socket may have: unix, inet and inet6; netlink has rules of its own.
// vsock reaches a hypervisor, and the rest is old protocol code that no test suite needs.
var allowedFamilies = []uint64{syscall.AF_UNIX, syscall.AF_INET, syscall.AF_INET6}

// netlinkProtocols are those of netlink sockets: routes (getifaddrs, ip) and the table of sockets (ss). The others
// speak to parts of the kernel that nobody here has business with.
var netlinkProtocols = []uint64{0, 4}

// personalities are those that programs set in earnest: Linux, 32 bit, no address randomisation (gdb)
// and the query.
var personalities = []uint64{0x0, 0x0008, 0x20000, 0x20008, 0x0040000, 0xffffffff}

// SeccompProfile is what system calls a sandbox may make, as the runtime-spec has it.
func SeccompProfile() *specs.LinuxSeccomp {
	var names []string
	for line := range strings.Lines(syscallList) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			names = append(names, line)
		}
	}
	enosys := uint(syscall.ENOSYS)
	rules := []specs.LinuxSyscall{
		{Names: names, Action: specs.ActAllow},
		// clone's flags are its first argument; those of clone3 lie in memory that a filter cannot read,
		// so clone3 is "not there" and every libc falls back to clone.
		{Names: []string{"clone"}, Action: specs.ActAllow, Args: []specs.LinuxSeccompArg{
			{Index: 0, Value: namespaceFlags, ValueTwo: 0, Op: specs.OpMaskedEqual}}},
		{Names: []string{"clone3"}, Action: specs.ActErrno, ErrnoRet: &enosys},
	}
	rules = append(rules, firstArg("socket", allowedFamilies)...)
	for _, protocol := range netlinkProtocols {
		rules = append(rules, specs.LinuxSyscall{Names: []string{"socket"}, Action: specs.ActAllow, Args: []specs.LinuxSeccompArg{
			{Index: 0, Value: syscall.AF_NETLINK, Op: specs.OpEqualTo}, {Index: 2, Value: protocol, Op: specs.OpEqualTo}}})
	}
	rules = append(rules, firstArg("personality", personalities)...)
	return &specs.LinuxSeccomp{DefaultAction: specs.ActErrno, Architectures: seccompArches(runtime.GOARCH), Syscalls: rules}
}

// firstArg allows name where its first argument is one of values.
func firstArg(name string, values []uint64) []specs.LinuxSyscall {
	var rules []specs.LinuxSyscall
	for _, value := range values {
		rules = append(rules, specs.LinuxSyscall{Names: []string{name}, Action: specs.ActAllow,
			Args: []specs.LinuxSeccompArg{{Index: 0, Value: value, Op: specs.OpEqualTo}}})
	}
	return rules
}

// seccompArches lists the machine's own architecture and the 32-bit one that it can also run.
func seccompArches(goarch string) []specs.Arch {
	switch goarch {
	case "amd64":
		return []specs.Arch{specs.ArchX86_64, specs.ArchX86, specs.ArchX32}
	case "arm64":
		return []specs.Arch{specs.ArchAARCH64, specs.ArchARM}
	}
	return nil
}
