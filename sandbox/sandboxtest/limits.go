package sandboxtest

import (
	"context"
	"errors"
	"strings"
	"time"

	"proctor/sandbox"
)

// limit gives the number in the first of the cgroup files that the sandbox shows, by the names of version 2
// and 1 of cgroups.
func (b *box) limit(v2, v1 string) string {
	b.t.Helper()
	return strings.TrimSpace(b.out("cd /sys/fs/cgroup && cat " + v2 + " 2>/dev/null || cat " + v1 + " 2>/dev/null"))
}

var limitTests = []test{
	{name: "limits show in cgroup files, and nproc agrees (11)", run: func(b *box) {
		small := b.another(sandbox.Spec{Limits: sandbox.Limits{CPUs: 1, MemoryMB: 256, Pids: 64, OpenFiles: 512}})
		for got, want := range map[string]string{
			small.limit("memory.max", "memory/memory.limit_in_bytes"): "268435456",
			small.limit("pids.max", "pids/pids.max"):                  "64",
			strings.TrimSpace(small.out("nproc")):                     "1",
			strings.TrimSpace(small.out("ulimit -Sn; ulimit -Hn")):    "512\n512",
		} {
			if got != want {
				b.t.Errorf("a limit of %q, want %q", got, want)
			}
		}
		if got := b.limit("memory.max", "memory/memory.limit_in_bytes"); got != "2147483648" {
			b.t.Errorf("by default %s bytes of memory", got)
		}
	}},
	{name: "programs that ask /proc for memory are told the limit, and there is no swap (11)", run: func(b *box) {
		small := b.another(sandbox.Spec{Limits: sandbox.Limits{MemoryMB: 256}})
		small.wants("awk '/^(MemTotal|SwapTotal):/ { print $2 }' /proc/meminfo; awk '/^MemAvailable:/ { print ($2 > 200000 && $2 < 262144) }' /proc/meminfo", "262144\n0\n1\n", 0)
		small.wants("(: > /proc/meminfo) 2>/dev/null || echo kept; python3 -c 'import os; print(os.cpu_count())'; nproc", "kept\n1\n1\n", 0)
		if got := small.limit("memory.swap.max", "memory/memory.memsw.limit_in_bytes"); got != "0" && got != "268435456" && got != "" {
			b.t.Errorf("memory with swap %s", got)
		}
	}},
	{name: "a memory hog is told apart, and the rest goes on (10)", run: func(b *box) {
		small := b.another(sandbox.Spec{Limits: sandbox.Limits{MemoryMB: 128}})
		small.out("mkdir -p /tmp/kept; cd /tmp/kept")
		got := small.sh(python(`x = [b"x" * (1 << 24) for _ in range(64)]; print("survi" + "ved")`))
		if exitOf(got) != 137 || !got.OOM || strings.Contains(string(got.Output), "survived") {
			b.t.Errorf("exit %s, oom %v, %q", exitText(got), got.OOM, got.Output)
		}
		small.wants("pwd", "/tmp/kept\n", 0)
		small.alive()
		one, err := small.Exec(context.Background(), sandbox.Exec{Argv: []string{"python3", "-c", `x = [b"x" * (1 << 24) for _ in range(64)]`}})
		if err != nil || !one.OOM {
			b.t.Errorf("of an exec: %+v %v", one, err)
		}
	}},
	{name: "a fork bomb hits the limit of processes (11)", run: func(b *box) {
		other := b.another(sandbox.Spec{})
		_, err := b.Do(context.Background(), sandbox.Call{ID: "bomb", Op: sandbox.OpShell, Timeout: 3 * time.Second,
			Command: "bomb() { bomb | bomb & }; bomb; while :; do :; done"})
		other.alive()
		var dead *sandbox.DeadError
		if errors.As(err, &dead) {
			if dead.Class != sandbox.FailureModel {
				b.t.Errorf("the box died of it, by whose doing: %v", dead)
			}
			return
		}
		if err != nil {
			b.t.Fatal(err)
		}
		// Hundreds of dead ones are waited for one by one, which on a busy machine outlasts the answer.
		b.wants("for i in $(seq 50); do set -- /proc/[0-9]*; [ $# -le 40 ] && break; sleep 0.1; done; [ $# -le 40 ] || echo $# processes left", "", 0)
		b.alive()
	}},
	{name: "100,000 open files hit a limit, the hard one too (11)", run: func(b *box) {
		got := b.sh(python("import os, resource as r\nn = r.RLIMIT_NOFILE; r.setrlimit(n, r.getrlimit(n)[1:] * 2)\nfor _ in range(10**5): os.dup(0)"))
		if exitOf(got) != 1 || !strings.Contains(string(got.Output), "Too many open files") {
			b.t.Errorf("exit %s, %.200q", exitText(got), got.Output)
		}
		b.alive()
	}},
	{name: "one file cannot outgrow the disk limit (11)", run: func(b *box) {
		small := b.another(sandbox.Spec{Limits: sandbox.Limits{DiskMB: 64}})
		got := small.sh("head -c 100000000 /dev/zero > /var/tmp/fill")
		if exitOf(got) == 0 {
			b.t.Errorf("100 MB fitted into 64 MiB: %q", got.Output)
		}
		small.sh("rm -f /var/tmp/fill")
		small.alive()
	}},
}
