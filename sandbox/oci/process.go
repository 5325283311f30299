package oci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// startOf gives when a process started, in clock ticks since the machine did, by which it is told from a later one of
// the same pid; false where there is none, or only what is left for its parent to reap.
func startOf(pid int) (uint64, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	// The name, in brackets, may hold anything.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return 0, false
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	return start, err == nil
}

// kill ends a process that started at start, and waits until it, and with it all of its PID namespace, is gone.
func kill(ctx context.Context, pid int, start uint64) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("kill process %d: %w", pid, err)
	}
	defer unix.Close(fd)
	if now, there := startOf(pid); !there || now != start {
		return nil // gone; the pid may be another's by now, the descriptor not
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill process %d: %w", pid, err)
	}
	return waitGone(ctx, fd, pid)
}

// waitGone waits until the process of a descriptor has ended.
func waitGone(ctx context.Context, fd, pid int) error {
	for {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, int((100 * time.Millisecond).Milliseconds()))
		if n > 0 {
			return nil
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for process %d: %w", pid, err)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("process %d does not end: %w", pid, ctx.Err())
		}
	}
}
