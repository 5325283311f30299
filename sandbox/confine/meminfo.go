package confine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Where a sandbox's programs look how much memory there is, and how many processors.
const (
	MemInfoInside = "/proc/meminfo"
	OnlineInside  = "/sys/devices/system/cpu/online"
)

// MemInfo gives a file that says of memory what a machine of a sandbox's limit would: the kernel's own speaks of
// the whole host, and programs that size themselves by it would be killed. It is mounted over the kernel's, which
// runtimes allow for this very purpose. What is free is a still picture, of a machine that has just been started;
// files of cgroups say how it stands. Sandboxes of one limit share the file.
func (r *RunRoot) MemInfo(limitMB int64) (string, error) {
	return r.shown(fmt.Sprintf("m%d", limitMB), memInfo(min(limitMB<<10, hostMemory())))
}

// Online gives a file that lists as many processors as a cpuset has, as the kernel lists those of the host: C
// libraries count by it, and what starts a thread for each would start too many.
func (r *RunRoot) Online(cpuset string) (string, error) {
	n := CountCPUs(cpuset)
	text := "0\n"
	if n > 1 {
		text = fmt.Sprintf("0-%d\n", n-1)
	}
	return r.shown(fmt.Sprintf("c%d", n), text)
}

// CountCPUs counts the processors of a cpuset such as "0,2-3"; at least 1.
func CountCPUs(cpuset string) int {
	n := 0
	for part := range strings.SplitSeq(cpuset, ",") {
		from, to, many := strings.Cut(strings.TrimSpace(part), "-")
		a, err := strconv.Atoi(from)
		if err != nil {
			continue
		}
		b := a
		if many {
			if b, err = strconv.Atoi(to); err != nil {
				continue
			}
		}
		n += max(0, b-a+1)
	}
	return max(n, 1)
}

// shown puts a file that sandboxes share under the root.
func (r *RunRoot) shown(name, text string) (string, error) {
	if err := r.Open(); err != nil {
		return "", err
	}
	target := filepath.Join(r.path, name)
	if _, err := os.Stat(target); err == nil {
		return target, nil
	}
	part, err := os.CreateTemp(r.path, "part")
	if err != nil {
		return "", err
	}
	_, err = part.WriteString(text)
	if err = errors.Join(err, part.Chmod(0o444), part.Close()); err == nil {
		err = os.Rename(part.Name(), target)
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(part.Name()))
	}
	return target, nil
}

// hostMemory is the machine's, in KiB.
func hostMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 1 << 62
	}
	return int64(info.Totalram) * int64(info.Unit) >> 10
}

// memFields are what the kernel tells since 5.x, in its order, in 1000ths of the total: of an idle machine.
var memFields = []struct {
	name  string
	parts int64
}{
	{"MemTotal", 1000}, {"MemFree", 960}, {"MemAvailable", 970}, {"Buffers", 2}, {"Cached", 20}, {"SwapCached", 0},
	{"Active", 10}, {"Inactive", 14}, {"Active(anon)", 1}, {"Inactive(anon)", 3}, {"Active(file)", 9}, {"Inactive(file)", 11},
	{"Unevictable", 0}, {"Mlocked", 0}, {"SwapTotal", 0}, {"SwapFree", 0}, {"Dirty", 0}, {"Writeback", 0}, {"AnonPages", 4},
	{"Mapped", 4}, {"Shmem", 1}, {"KReclaimable", 4}, {"Slab", 7}, {"SReclaimable", 4}, {"SUnreclaim", 3}, {"KernelStack", 1},
	{"PageTables", 1}, {"NFS_Unstable", 0}, {"Bounce", 0}, {"WritebackTmp", 0}, {"CommitLimit", 500}, {"Committed_AS", 12},
}

// memInfo is the text, for a total in KiB.
func memInfo(total int64) string {
	var b strings.Builder
	for _, f := range memFields {
		fmt.Fprintf(&b, "%-15s %8d kB\n", f.name+":", total/1000*f.parts+total%1000*f.parts/1000)
	}
	fmt.Fprintf(&b, "%-15s %8d kB\n", "VmallocTotal:", int64(34359738367))
	b.WriteString("VmallocUsed:           0 kB\nVmallocChunk:          0 kB\nHugePages_Total:       0\nHugePages_Free:        0\nHugePages_Rsvd:        0\nHugePages_Surp:        0\nHugepagesize:       2048 kB\n")
	return b.String()
}
