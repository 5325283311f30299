package confine

import (
	"math"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// CPUPicker hands out processors round-robin, so that a sandbox's nproc agrees with its quota (a quota
// alone leaves nproc at the host's) and neighbours do not all sit on the same one.
type CPUPicker struct {
	ids []int // processors that this process may use

	mu   sync.Mutex
	next int
}

// NewCPUPicker gives a picker of the processors ids; of all that this process may use where there are none.
func NewCPUPicker(ids ...int) *CPUPicker {
	if len(ids) == 0 {
		ids = allowedCPUs()
	}
	return &CPUPicker{ids: ids}
}

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

// Pick gives the quota in units of 1e-9 processors, at most what the machine has, and a cpuset of as
// many processors as that quota needs.
func (p *CPUPicker) Pick(cpus float64) (nano int64, set string) {
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
