package confine

import (
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"proctor/sandbox/box/agent"
)

func TestPickRoundRobin(t *testing.T) {
	p := &CPUPicker{ids: []int{0, 2, 5}}
	for _, want := range []struct {
		cpus float64
		nano int64
		set  string
	}{
		{1, 1e9, "0"}, {1, 1e9, "2"}, {1.5, 15e8, "5,0"}, {0.5, 5e8, "2"}, {2, 2e9, "5,0"}, {64, 3e9, "2,5,0"},
	} {
		if nano, set := p.Pick(want.cpus); nano != want.nano || set != want.set {
			t.Errorf("%v processors: %d on %s, want %d on %s", want.cpus, nano, set, want.nano, want.set)
		}
	}
	if got := NewCPUPicker().ids; len(got) == 0 {
		t.Error("this process may run nowhere")
	}
}

func TestSeccompProfile(t *testing.T) {
	profile := SeccompProfile()
	if profile.DefaultAction != specs.ActErrno || len(profile.Architectures) == 0 {
		t.Errorf("default %s, architectures %v", profile.DefaultAction, profile.Architectures)
	}
	free := map[string]bool{} // allowed whatever the arguments
	for _, rule := range profile.Syscalls {
		for _, name := range rule.Names {
			if rule.Action == specs.ActAllow && len(rule.Args) == 0 {
				free[name] = true
			}
		}
	}
	for _, name := range strings.Fields("read write openat execve ptrace wait4 prctl seccomp futex epoll_wait setuid chown") {
		if !free[name] {
			t.Errorf("%s is not allowed", name)
		}
	}
	for _, name := range strings.Fields("mount umount2 unshare setns bpf keyctl add_key userfaultfd perf_event_open open_by_handle_at " +
		"name_to_handle_at io_uring_setup kexec_load init_module pivot_root chroot reboot swapon clone clone3 socket personality fanotify_init") {
		if free[name] {
			t.Errorf("%s is allowed", name)
		}
	}
}

func TestSocketIsWhereTheAgentListens(t *testing.T) {
	if got := FolderInside + "/" + SocketName; got != agent.DefaultSocket {
		t.Errorf("%s, the agent listens at %s", got, agent.DefaultSocket)
	}
}
