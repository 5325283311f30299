package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"proctor/sandbox"
)

// flood is a server's memory under large outputs, in MiB.
type flood struct {
	GiB      int     `json:"gib"`
	Commands int     `json:"commands"`
	Before   float64 `json:"server_rss_mib"`
	Peak     float64 `json:"server_peak_mib"` // the most meanwhile
	Growth   float64 `json:"growth_mib"`
}

// floods is how many commands print, at once in one server.
const floods = 4

// flood lets commands print GiBs through a server and watches what the server holds.
func (b *scaleBench) flood(ctx context.Context) (_ *flood, err error) {
	s, err := startBenchServer(ctx, b.image, b.settings.Boxd)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop(context.WithoutCancel(ctx))) }()
	pid := s.child.Process.Pid
	if err := s.bash(ctx, "true"); err != nil {
		return nil, err
	}
	f := &flood{GiB: b.gib, Commands: floods, Before: procKiB(pid, "VmRSS") / 1024}
	// The high-water mark is reset, so that what opening the store took does not count.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0) // only root may: else the peak is the process's
	for range floods {
		call, cancel := context.WithTimeout(ctx, 5*time.Minute)
		err := s.bash(call, fmt.Sprintf("head -c %dG /dev/zero | tr '\\0' x", b.gib))
		cancel()
		if err != nil {
			return nil, err
		}
	}
	f.Peak = procKiB(pid, "VmHWM") / 1024
	f.Before, f.Peak, f.Growth = round2(f.Before), round2(f.Peak), round2(f.Peak-f.Before)
	return f, nil
}

// memAvailable gives the bytes that the kernel counts as available.
func memAvailable() int64 {
	return fieldKiB("/proc/meminfo", "MemAvailable") << 10
}

// procKiB gives a field of a process's status in KiB; 0 where it cannot be read.
func procKiB(pid int, field string) float64 {
	return float64(fieldKiB(fmt.Sprintf("/proc/%d/status", pid), field))
}

// fieldKiB reads "Field: N kB" of a file of the kernel's; 0 where it is not there.
func fieldKiB(path, field string) int64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(text) {
		name, value, ok := strings.Cut(string(line), ":")
		if !ok || name != field {
			continue
		}
		n, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
		return n
	}
	return 0
}

// boxMemory gives the bytes that a sandbox's first process holds and, where its parent is only there for it (a
// daemon's shim), those of its parent: their share of what they share with others counted once (PSS).
func boxMemory(ctx context.Context, box sandbox.Session) (int64, error) {
	local, ok := box.(sandbox.Local)
	if !ok {
		return 0, errors.New("the sandboxes' processes are not on this machine")
	}
	pid, err := local.InitPID(ctx)
	if err != nil {
		return 0, err
	}
	held := pss(pid)
	parent := fieldKiB(fmt.Sprintf("/proc/%d/status", pid), "PPid")
	if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", parent)); err == nil && strings.HasPrefix(string(name), "containerd-shim") {
		held += pss(int(parent))
	}
	return held, nil
}

// pss gives the proportional set size of a process in bytes; 0 where it cannot be read.
func pss(pid int) int64 { return fieldKiB(fmt.Sprintf("/proc/%d/smaps_rollup", pid), "Pss") << 10 }

// mib gives bytes in MiB.
func mib(bytes int64) float64 { return round2(float64(bytes) / (1 << 20)) }

// round2 rounds to two digits after the point.
func round2(v float64) float64 {
	if v < 0 {
		return -round2(-v)
	}
	return float64(int64(v*100+0.5)) / 100
}
