package docker

import (
	"math"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// cpuPicker hands out processors round-robin, so that a sandbox's nproc agrees with its quota (a quota
// alone leaves nproc at the host's) and neighbours do not all sit on the same one.
type cpuPicker struct {
	ids []int // processors that this process may use

	mu   sync.Mutex
	next int
}

func newCPUPicker() *cpuPicker { return &cpuPicker{ids: allowedCPUs()} }

// allowedCPUs lists the processors that this process may run on.
func allowedCPUs() []int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) == nil && set.Count() > 0 {
		var ids []int
		for id := 0; len(ids) < set.Count(); id++ {
			if set.IsSet(id) {
				ids = append(ids, id)
			}
		}
		return ids
	}
	ids := make([]int, runtime.NumCPU())
	for i := range ids {
		ids[i] = i
	}
	return ids
}

// pick gives the quota in units of 1e-9 processors, at most what the machine has, and a cpuset of as
// many processors as that quota needs.
func (p *cpuPicker) pick(cpus float64) (nano int64, set string) {
	cpus = min(cpus, float64(len(p.ids)))
	n := int(math.Ceil(cpus))
	p.mu.Lock()
	start := p.next
	p.next = (p.next + n) % len(p.ids)
	p.mu.Unlock()
	names := make([]string, n)
	for i := range names {
		names[i] = strconv.Itoa(p.ids[(start+i)%len(p.ids)])
	}
	return int64(math.Round(cpus * 1e9)), strings.Join(names, ",")
}
