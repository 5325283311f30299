package agent

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// proc is a process as /proc tells it.
type proc struct {
	pid, parent int
	state       byte   // 'Z' is a zombie, 'T' stopped
	start       uint64 // clock ticks since boot
	tag         int    // coredump_filter; -1 where not known
}

// dead reports whether p only waits to be reaped.
func (p proc) dead() bool { return p.state == 'Z' || p.state == 'X' }

// scan gives all processes but ourselves, by pid.
func scan() (map[int]proc, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	all, self := map[int]proc{}, os.Getpid()
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == self {
			continue
		}
		if p, ok := readProc(pid); ok {
			all[pid] = p
		}
	}
	return all, nil
}

// readProc reads one process; false where it is gone.
func readProc(pid int) (proc, bool) {
	folder := filepath.Join("/proc", strconv.Itoa(pid))
	stat, err := os.ReadFile(folder + "/stat")
	if err != nil {
		return proc{}, false
	}
	p, ok := parseStat(stat)
	if !ok || p.dead() {
		return p, ok
	}
	if text, err := os.ReadFile(folder + "/coredump_filter"); err == nil {
		if tag, err := strconv.ParseUint(strings.TrimSpace(string(text)), 16, 32); err == nil {
			p.tag = int(tag)
		}
	}
	return p, true
}

// parseStat reads /proc/<pid>/stat. The name, in brackets, may hold anything, brackets and blanks
// included; what follows the last bracket is numbers.
func parseStat(text []byte) (proc, bool) {
	open, last := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 1 || last < open {
		return proc{}, false
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(text[:open])))
	fields := strings.Fields(string(text[last+1:]))
	if err != nil || len(fields) < 20 || len(fields[0]) != 1 {
		return proc{}, false
	}
	parent, err1 := strconv.Atoi(fields[1])
	start, err2 := strconv.ParseUint(fields[19], 10, 64)
	return proc{pid: pid, parent: parent, state: fields[0][0], start: start, tag: -1}, err1 == nil && err2 == nil
}
