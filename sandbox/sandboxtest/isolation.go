package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"proctor/sandbox"
)

// escapes are system calls that have led out of containers, or into the kernel, in public reports: number on amd64
// and arm64 (-1: it has none), and arguments in Python. c is the C library, s a zeroed buffer, d a folder's path.
const escapes = `
mount 165 40 b"none", d, b"tmpfs", 0, None
bind-mount 165 40 b"/proc", d, None, 4096, None
umount 166 39 b"/proc", 2
pivot_root 155 41 d, d
chroot 161 51 d
unshare-user 272 97 0x10000000
unshare-mount 272 97 0x20000
clone-user 56 220 0x10000011, 0, 0, 0, 0
setns 308 268 os.open("/proc/self/ns/mnt", 0), 0
bpf 321 280 0, s, 64
keyctl 250 219 0, -3, 1
add_key 248 217 b"user", b"x", b"y", 1, -3
request_key 249 218 b"user", b"x", None, -3
userfaultfd 323 282 0
perf_event_open 298 241 s, 0, -1, -1, 0
io_uring_setup 425 425 8, s
kexec_load 246 104 0, 0, s, 0
kexec_file_load 320 294 0, 0, 0, s, 0
init_module 175 105 s, 64, s
finit_module 313 273 0, s, 0
delete_module 176 106 b"x", 0
open_by_handle_at 304 265 0, s, 0
name_to_handle_at 303 264 0, d, s, s, 0
fanotify_init 300 262 0, 0
open_tree 428 428 -100, b"/", 1
move_mount 429 429 -100, d, -100, d, 0
fsopen 430 430 b"tmpfs", 0
mount_setattr 442 442 -100, b"/", 0x8000, s, 32
clone3 435 435 s, 64
reboot 169 142 0xfee1dead, 672274793, 0, 0
swapon 167 224 d, 0
acct 163 89 d
quotactl 179 60 0, d, 0, s
syslog 103 116 3, s, 64
iopl 172 -1 3
ioperm 173 -1 0, 1, 1
settimeofday 164 170 s, None
clock_settime 227 112 0, s
sethostname 170 161 b"x", 1
setdomainname 171 162 b"x", 1
vhangup 153 58
pidfd_getfd 438 438 os.pidfd_open(1), 0, 0
process_madvise 440 440 os.pidfd_open(1), s, 1, 4, 0
kcmp 312 272 1, os.getpid(), 0, 0, 0
ptrace-seize 101 117 0x4206, 1, 0, 0
ptrace-attach 101 117 16, 1, 0, 0
read-init 310 270 1, s, 1, s, 1, 0
write-init 311 271 1, s, 1, s, 1, 0
setpriority 141 140 0, 1, -20
sched-realtime 144 119 0, 1, ctypes.pointer(ctypes.c_int(50))
mknod-memory 133 -1 b"/tmp/mem", 0o20600, 0x101
mknod-disk 133 -1 b"/tmp/disk", 0o60600, 0x800
set-file-capability 188 5 b"/tmp", b"security.capability", s, 20, 0
prctl-keep-everything 157 167 47, 2, 21, 0, 0
raw-socket 41 198 2, 3, 1
raw-socket-6 41 198 10, 3, 58
packet-socket 41 198 17, 3, 0x300
vsock 41 198 40, 1, 0
kernel-crypto 41 198 38, 5, 0
tipc 41 198 30, 1, 0
bluetooth 41 198 31, 3, 1
xdp 41 198 44, 3, 0
netlink-audit 41 198 16, 3, 9
`

// tryEscapes prints the names of those that were answered. A child makes each call: some do not come back.
const tryEscapes = `import ctypes, os, platform, sys
c = ctypes.CDLL(None, use_errno=True); column = {"x86_64": 1, "aarch64": 2}[platform.machine()]; d = b"/tmp"
for line in table.strip().splitlines():
    name, *rest = line.split(None, 3); number = int(rest[column - 1]); words = rest[2] if len(rest) > 2 else ""
    if number < 0: continue
    pid = os.fork()
    if pid == 0:
        s = ctypes.create_string_buffer(4096)
        try: args = eval("(" + words + ",)" if words else "()")
        except OSError: os._exit(0)
        c.syscall.restype = ctypes.c_long
        got = c.syscall(ctypes.c_long(number), *args)
        os._exit(0 if got == -1 else 1)
    if os.waitpid(pid, 0)[1]: print(name)
print("tried")`

// closedFiles are files of the kernel that must not be written, and those that must not be read or must be empty.
const closedFiles = `import glob, os
for pattern in """/proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /proc/sys/kernel/hotplug /proc/sys/kernel/randomize_va_space
/proc/sys/kernel/sysrq /proc/sys/kernel/panic /proc/sys/kernel/ns_last_pid /proc/sys/vm/* /proc/sys/fs/binfmt_misc/* /proc/sys/fs/file-max /proc/sys/net/ipv4/*
/proc/sysrq-trigger /proc/irq/*/smp_affinity /proc/bus/*/* /proc/fs/*/* /proc/mtrr /proc/scsi/scsi /proc/timer_list /proc/kcore /proc/1/mem
/sys/fs/cgroup/release_agent /sys/fs/cgroup/*/release_agent /sys/fs/cgroup/notify_on_release /sys/fs/cgroup/*/notify_on_release /sys/fs/cgroup/cgroup.procs
/sys/fs/cgroup/*/cgroup.procs /sys/fs/cgroup/*/tasks /sys/fs/cgroup/memory.max /sys/fs/cgroup/*/*.limit_in_bytes /sys/fs/cgroup/pids.max /sys/fs/cgroup/*/pids.max /sys/fs/cgroup/*/devices.allow
/sys/kernel/uevent_helper /sys/kernel/mm/*/enabled /sys/kernel/profiling /sys/kernel/debug/* /sys/kernel/security/* /sys/power/* /sys/module/*/parameters/*
/sys/class/*/*/uevent /sys/firmware/efi/efivars/* /dev/mem /dev/kmem /dev/port /dev/kmsg /dev/sd* /dev/vd* /dev/nvme* /dev/loop* /dev/dm-* /dev/fuse /dev/kvm /dev/net/tun /dev/vhost* /dev/vsock""".split():
    for path in glob.glob(pattern)[:40]:
        if os.path.isdir(path): continue
        try: os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY))
        except OSError: continue
        if os.stat(path).st_rdev != os.stat("/dev/null").st_rdev: print("written:", path)
for path in "/proc/kcore /proc/keys /proc/timer_list /proc/sched_debug /proc/acpi/* /proc/scsi/* /sys/firmware/* /proc/1/environ /proc/1/mem /proc/1/maps /proc/1/auxv /proc/1/stack /proc/1/syscall /proc/1/pagemap /proc/1/io".split():
    for p in glob.glob(path):
        if os.path.isdir(p): continue
        try:
            with open(p, "rb") as f:
                if f.read(1): print("read:", p)
        except OSError: pass
for link in ["exe", "cwd", "root"] + ["fd/%d" % n for n in range(32)] + ["ns/" + n for n in os.listdir("/proc/self/ns")]:
    try: os.readlink("/proc/1/" + link); print("followed:", link)
    except OSError: pass
for name in os.listdir("/dev"):
    if name not in "null zero full random urandom tty console ptmx pts shm mqueue fd stdin stdout stderr core".split(): print("device:", name)
print("looked")`

// outside prints what of the host can be met: sockets of daemons, processes that are not ours, host folders.
const outside = `import os, stat
for top in ("/run", "/var/run", "/tmp", "/var/lib", "/opt", "/home", "/root", "/mnt", "/media", "/host"):
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            try:
                if stat.S_ISSOCK(os.lstat(path).st_mode) and "docker" in path + "containerd": print("socket:", path)
            except OSError: pass
for path in ("/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock", "/run/crio/crio.sock", "/.dockerinit", "/host", "/run/systemd/private"):
    if os.path.exists(path): print("there:", path)
for pid in filter(str.isdigit, os.listdir("/proc")):
    try: words = open("/proc/%s/cmdline" % pid).read().split("\0")[0]
    except OSError: continue
    if any(w in words for w in ("dockerd", "containerd", "systemd", "sshd", "kthreadd")): print("process:", words)
sockets = [line.split() for line in open("/proc/net/unix")][1:] if os.path.exists("/proc/net/unix") else []
for s in sockets:
    if len(s) > 7 and s[7][0] == "@": print("abstract:", s[7])
if os.path.exists("/proc/net/arp") and len(open("/proc/net/arp").readlines()) > 1: print("neighbours")
if os.listdir("/sys/class/net") != ["lo"]: print("links:", os.listdir("/sys/class/net"))
print("looked")`

// setuid copies a program, makes it set-user-ID root, and prints whom it runs as for an ordinary user.
const setuid = `import os, shutil, subprocess
shutil.copy("/usr/bin/id", "/tmp/sid"); os.chown("/tmp/sid", 0, 0); os.chmod("/tmp/sid", 0o6755)
def drop(): os.setgroups([]); os.setgid(33); os.setuid(33)
print(subprocess.run(["/tmp/sid", "-u"], preexec_fn=drop, capture_output=True, text=True).stdout.strip())
print(subprocess.run(["/tmp/sid", "-g"], preexec_fn=drop, capture_output=True, text=True).stdout.strip())`

var isolationTests = []test{
	{name: "system calls that lead out are refused, one by one", run: func(b *box) {
		table := fmt.Sprintf("table = %q\n", escapes)
		if got := b.out(python(table + tryEscapes)); got != "tried\n" {
			b.t.Errorf("answered: %s", got)
		}
		b.alive()
	}},
	{name: "files of the kernel and of the first process are closed", run: func(b *box) {
		if got := b.out(python(closedFiles)); got != "looked\n" {
			b.t.Error(got)
		}
	}},
	{name: "no socket, process, link or neighbour of the host can be met", run: func(b *box) {
		if got := b.out(python(outside)); got != "looked\n" {
			b.t.Error(got)
		}
	}},
	{name: "a set-user-ID program gives nothing", run: func(b *box) {
		b.wants(python(setuid), "33\n33\n", 0)
	}},
	{name: "limits and scores of the first process: it goes on, or dies by the agent's doing", run: func(b *box) {
		for _, attack := range []string{
			"prlimit --pid 1 --nofile=64; prlimit --pid 1 --nproc=1; prlimit --pid 1 --fsize=0; renice -n 19 -p 1; taskset -p 1 1; ionice -c 3 -p 1; " +
				"echo -17 > /proc/1/oom_adj; echo 0 > /proc/1/coredump_filter; echo x > /proc/1/comm; echo 0 > /proc/1/timerslack_ns",
			"prlimit --pid 1 --cpu=1:1; prlimit --pid 1 --as=1000000; prlimit --pid 1 --stack=8192; prlimit --pid 1 --nofile=3:3", "echo 1000 > /proc/1/oom_score_adj",
		} {
			other := b.another(sandbox.Spec{Limits: sandbox.Limits{MemoryMB: 128}})
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			_, err := other.Do(ctx, sandbox.Call{ID: "attack", Op: sandbox.OpShell, Command: attack, Timeout: 5 * time.Second})
			if err == nil {
				_, err = other.Do(ctx, sandbox.Call{ID: "after", Op: sandbox.OpShell, Command: "head -c 400000000 /dev/zero | tail -c 300000000 >/dev/null; echo on", Timeout: 10 * time.Second})
			}
			cancel()
			var dead *sandbox.DeadError
			if err != nil && (!errors.As(err, &dead) || dead.Class != sandbox.FailureModel) {
				b.t.Errorf("%s: %v, want the sandbox alive, or dead by the model's doing", attack, err)
			}
		}
	}},
	{name: "who listens in the agent's place hears nothing", run: func(b *box) {
		socket := b.agentSocket()
		b.out("cp $(command -v python3) /tmp/p && rm -f " + socket + " && (/tmp/p -c '" + `import socket; s = socket.socket(socket.AF_UNIX); s.bind("` + socket + `"); s.listen(5)
while True:
    c, _ = s.accept(); c.settimeout(2)
    try: open("/tmp/heard", "ab").write(c.recv(4096))
    except OSError: pass` + "' >/dev/null 2>&1 &) ; sleep 0.3")
		again := b.eventually()
		again.wants("cat /tmp/heard 2>/dev/null | wc -c", "0\n", 0)
	}},
	{name: "a link in the socket's place leads the host nowhere", run: func(b *box) {
		socket := b.agentSocket()
		outer := filepath.Join(b.t.TempDir(), "s")
		l, err := net.Listen("unix", outer)
		if err != nil {
			b.t.Fatal(err)
		}
		defer l.Close()
		heard := make(chan int, 16)
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_ = c.SetReadDeadline(time.Now().Add(2 * time.Second))
				n, _ := c.Read(make([]byte, 4096))
				c.Close()
				if n > 0 {
					heard <- n
				}
			}
		}()
		for _, how := range []string{"ln -s " + outer + " SOCKET", "mkdir -p SOCKET/full/of/it", "mkfifo SOCKET", "ln -s SOCKET SOCKET",
			"for i in $(seq 300); do : > SOCKET$i; done 2>/dev/null; true"} {
			b.out("rm -rf " + socket + "; " + strings.ReplaceAll(how, "SOCKET", socket))
			b.eventually().alive()
		}
		select {
		case n := <-heard:
			b.t.Errorf("a socket of the host was told %d bytes", n)
		default:
		}
	}},
	{name: "two sandboxes cannot reach each other's names", run: func(b *box) {
		other := b.another(sandbox.Spec{})
		b.out(python(`import os, socket, time
if os.fork(): os._exit(0)
a = socket.socket(socket.AF_UNIX); a.bind("\0shared"); a.listen(1); t = socket.create_server(("0.0.0.0", 7777)); time.sleep(60)`) + " >/dev/null 2>&1; sleep 0.3")
		other.wants(python(`import socket
for family, where in ((socket.AF_UNIX, "\0shared"), (socket.AF_INET, ("127.0.0.1", 7777))):
    try: socket.socket(family).connect(where); print("reached")
    except OSError: print("refused")`), "refused\nrefused\n", 0)
		other.wants("ipcs -a 2>/dev/null | grep -c 0x; ls /dev/shm /dev/mqueue 2>/dev/null | grep -v : | grep -c .", "0\n0\n", 1)
	}},
}

// agentSocket gives the path of the agent's socket, as root inside finds it.
func (b *box) agentSocket() string {
	b.t.Helper()
	for _, path := range strings.Fields(b.out(`awk '$8 ~ "^/" { print $8 }' /proc/net/unix | sort -u`)) {
		return path
	}
	b.t.Skip("the engine's agent has no socket inside")
	return ""
}

// eventually attaches again, within the time that the agent takes to find its socket gone.
func (b *box) eventually() *box {
	b.t.Helper()
	engine := b.lab.Engine(b.t, b.lab.Owner)
	b.t.Cleanup(func() { _ = engine.Close() })
	deadline := time.Now().Add(20 * time.Second)
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		session, err := engine.Attach(ctx, b.ID())
		cancel()
		if err == nil {
			b.t.Cleanup(func() { _ = session.Detach() })
			b.ids += 1000
			return &box{Session: session, t: b.t, lab: b.lab, ids: b.ids + 500}
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("attach: %v", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// hostSecret makes a file of the host with a text that no sandbox has, and gives both.
func (b *box) hostSecret() (path, text string) {
	b.t.Helper()
	text = "secret-of-the-host-" + b.ID()
	path = filepath.Join(b.t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
	return path, text
}
