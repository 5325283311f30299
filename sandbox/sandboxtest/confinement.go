package sandboxtest

import (
	"context"
	"regexp"
	"strings"
	"time"

	"proctor/sandbox"
)

// status prints the strong capabilities that are held or could be (DAC_READ_SEARCH, NET_ADMIN, NET_RAW,
// SYS_MODULE, SYS_PTRACE, SYS_ADMIN, MKNOD), no-new-privileges and the seccomp mode.
const status = `s = dict(line.split(":\t") for line in open("/proc/self/status") if ":\t" in line)
print(hex((int(s["CapEff"], 16) | int(s["CapBnd"], 16)) & 0x8293004), int(s["NoNewPrivs"]), int(s["Seccomp"]))`

// syscalls prints what mounting, new namespaces and a trace of PID 1 give: -1 each.
const syscalls = `import ctypes; c = ctypes.CDLL(None)
print(c.mount(b"none", b"/tmp", b"tmpfs", 0, None), c.unshare(0x10020000), c.unshare(0x10000000), c.ptrace(0x4206, 1, None, None), c.syscall(321, 0, 0, 0), c.syscall(323, 0))`

// debug prints whether a process can trace its own child, as debuggers do.
const debug = `import ctypes, os, signal, sys; c = ctypes.CDLL(None); pid = os.fork()
if pid == 0: os._exit(c.ptrace(0, 0, 0, 0) & 1 or os.kill(os.getpid(), signal.SIGSTOP) or 0)
_, status = os.waitpid(pid, 0); print(os.WIFSTOPPED(status)); os.kill(pid, 9)`

// connects prints how connecting without a route ends.
const connects = `import socket
for family, host in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
    try: socket.socket(family, socket.SOCK_DGRAM).connect((host, 80)); print("connected")
    except OSError: print("refused")
try: socket.getaddrinfo("example.com", 80); print("resolved")
except socket.gaierror: print("unknown")
server = socket.create_server(("127.0.0.1", 0)); socket.create_connection(server.getsockname(), 5); print("loopback")`

var confinementTests = []test{
	{name: "no network by default, loopback works (12)", run: func(b *box) {
		b.wants(python(connects), "refused\nrefused\nunknown\nloopback\n", 0)
	}},
	{name: "names of hosts are as on any machine, and a task's own", run: func(b *box) {
		b.wants("find /etc/hosts /etc/resolv.conf -printf '%m %U:%G\\n'; grep -c . /etc/resolv.conf; grep -cw localhost /etc/hosts", "644 0:0\n644 0:0\n2\n2\n", 0)
		b.wants(python(`import socket; print(socket.gethostbyname("localhost"))`), "127.0.0.1\n", 0)
		b.wants("echo 127.0.0.9 mine >> /etc/hosts && tail -n 1 /etc/hosts", "127.0.0.9 mine\n", 0)
		other := b.another(sandbox.Spec{Network: sandbox.Network{Hosts: map[string]string{"code.test": "192.0.2.7"}}})
		other.wants(python(`import socket; print(socket.gethostbyname("code.test"))`), "192.0.2.7\n", 0)
		other.wants("grep -c mine /etc/hosts", "0\n", 1)
	}},
	{name: "no strong capability, no new privileges, seccomp (13)", run: func(b *box) {
		b.wants(python(status), "0x0 1 2\n", 0)
		b.wants(python(syscalls), "-1 -1 -1 -1 -1 -1\n", 0)
		b.wants("for f in /proc/sys/vm/swappiness /proc/sysrq-trigger /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/memory/tasks; do [ -e $f ] && (: >> $f) 2>/dev/null && echo $f; done; true", "", 0)
		b.wants("mknod /tmp/disk b 254 0 2>/dev/null; echo $?", "1\n", 0)
		b.wants(python(debug), "True\n", 0)
	}},
	{name: "root keeps what installing packages needs (21)", run: func(b *box) {
		b.wants("id -u; touch /tmp/f && chown 1234:1234 /tmp/f && chmod 4750 /tmp/f && echo more >> /tmp/f && find /tmp/f -printf '%U:%G\\n'", "0\n1234:1234\n", 0)
		b.wants(python("import os; os.setgid(33); os.setuid(33); print(os.getuid())"), "33\n", 0)
	}},
	{name: "the first process is closed to root inside", run: func(b *box) {
		b.wants("for f in mem environ maps auxv; do (: < /proc/1/$f) 2>/dev/null && echo $f; done; readlink /proc/1/fd/* /proc/1/exe /proc/1/cwd 2>/dev/null; true", "", 0)
	}},
	{name: "signals from inside neither end nor stop the agent", run: func(b *box) {
		for _, name := range strings.Fields("TERM INT HUP QUIT ABRT SEGV USR1 USR2 PIPE TSTP STOP KILL") {
			b.sh("kill -" + name + " 1")
		}
		b.alive()
		if err := b.Alive(context.Background()); err != nil {
			b.t.Error(err)
		}
	}},
	{name: "nothing inside bears our name, or a path of the host", run: func(b *box) {
		seen := b.out("cat /proc/self/mountinfo /proc/self/cgroup /etc/hosts /etc/hostname; tr '\\0' '\\n' < /proc/1/cmdline; for f in /proc/[0-9]*/cmdline /proc/[0-9]*/environ; do tr '\\0' '\\n' < $f; done 2>/dev/null; hostname; env; set; cat /proc/net/unix; ls -R /run /sbin/ 2>/dev/null; cat /proc/*/comm")
		for _, word := range []string{"proctor", "boxd", "sandbox", "rollout", "r_suite", "cheat", "monitor"} {
			for line := range strings.Lines(seen) {
				if strings.Contains(strings.ToLower(line), word) && !strings.Contains(line, "seen=") {
					b.t.Errorf("%q shows: %.200q", word, line)
				}
			}
		}
		b.wants("f=$(tr '\\0' '\\n' < /proc/1/cmdline | head -n 1); [ -s $f ] && grep -aoE '[Pp]roctor|[Ss]andbox|boxd|[Rr]ollout|[Cc]heat|[Dd]ecoy|[Jj]udge' $f | sort | uniq -c", "", 0)
		if host := strings.TrimSpace(b.out("hostname")); !regexp.MustCompile(`^[0-9a-f]{12}$`).MatchString(host) {
			b.t.Errorf("host name %q is not like Docker's own", host)
		}
	}},
	{name: "the agent's socket refuses callers from inside", run: func(b *box) {
		got := b.sh(python(`import re, socket
for path in {line.split()[7] for line in open("/proc/net/unix") if len(line.split()) > 7}:
    try:
        s = socket.socket(socket.AF_UNIX); s.settimeout(2); s.connect(re.sub("^@", "\0", path)); s.sendall(b"\0" * 64)
        if s.recv(100): print(path, "answers")
    except OSError: pass`))
		if len(got.Output) > 0 || exitOf(got) != 0 {
			b.t.Errorf("exit %s: %s", exitText(got), got.Output)
		}
		b.alive()
	}},
	{name: "who unlinks the agent's socket gains nothing", run: func(b *box) {
		b.sh(`for p in $(awk '$8 ~ "^/" { print $8 }' /proc/net/unix); do rm -f $p; done`)
		b.alive()
	}},
	{name: "who fills the agent's folder gains nothing", run: func(b *box) {
		b.do(sandbox.Call{Op: sandbox.OpShell, Timeout: 20 * time.Second, Command: `for p in $(awk '$8 ~ "^/" { print $8 }' /proc/net/unix); do d=${p%/*}; head -c 600000000 /dev/zero > $d/fill; df -Pk $d | awk 'NR == 2 && $2 > 1000000 { print "large" }'; du -k $d/fill | awk '$1 > 2000 { print }'; done 2>/dev/null; true`})
		b.alive()
		again := b.reattached()
		again.alive()
	}},
	{name: "two sandboxes see nothing of each other", run: func(b *box) {
		other := b.another(sandbox.Spec{})
		b.out("echo mine > /tmp/own; echo mine > /dev/shm/own; env MARK=" + mark + " sleep 300 >/dev/null 2>&1 &")
		b.waitFor(mark, true)
		other.wants("ls /tmp/own /dev/shm/own 2>/dev/null; ps -e | grep -c sleep", "0\n", 1)
		if a, z := b.out("hostname; readlink /proc/self/ns/*"), other.out("hostname; readlink /proc/self/ns/*"); a == z {
			b.t.Errorf("the same namespaces: %s", a)
		}
	}},
}
