package agent

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// oomCounter tells how often the kernel has killed something in this sandbox for memory.
type oomCounter struct {
	events *os.File // nil where the cgroup cannot be seen
	limit  string   // file of the memory limit
}

// newOOMCounter looks under root (/sys/fs/cgroup) for cgroup 2, then cgroup 1.
func newOOMCounter(root string) *oomCounter {
	for _, try := range [][2]string{{"memory.events", "memory.max"}, {"memory/memory.oom_control", "memory/memory.limit_in_bytes"}} {
		if f, err := os.Open(filepath.Join(root, try[0])); err == nil {
			return &oomCounter{f, filepath.Join(root, try[1])}
		}
	}
	return &oomCounter{}
}

// count gives the number of kills so far, -1 where it cannot be known.
func (o *oomCounter) count() int64 {
	if o.events == nil {
		return -1
	}
	var buf [512]byte
	for line := range bytes.Lines(readStart(o.events, buf[:])) {
		if rest, ok := bytes.CutPrefix(line, []byte("oom_kill ")); ok {
			kills, err := strconv.ParseInt(strings.TrimSpace(string(rest)), 10, 64)
			if err == nil {
				return kills
			}
		}
	}
	return -1
}

// words are the last line of an output whose command was killed for memory.
func (o *oomCounter) words() string {
	text, err := os.ReadFile(o.limit)
	limit, numErr := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || numErr != nil {
		return "out of memory: the memory limit was reached and the kernel killed a process"
	}
	return fmt.Sprintf("out of memory: the memory limit of %d MiB was reached and the kernel killed a process", limit>>20)
}
