package docker

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// What the host knows of its own daemon beside the API: evidence for the causes of deaths, and a limit that
// only shows when a container does not start.

// daemonPidFile is written by the daemon when it starts.
const daemonPidFile = "/var/run/docker.pid"

// daemonSocket is where a daemon listens that was told nothing else, by both of its usual names.
var daemonSocket = []string{"/var/run/docker.sock", "/run/docker.sock"}

// daemonStart tells when the daemon of a host (unix://PATH) was started; the zero time where that cannot be told. A daemon
// makes its socket anew, unless a service manager keeps it, and then the daemon is in the usual place and has a pid file
// there. A daemon elsewhere has nothing to do with that file.
func daemonStart(host string) time.Time {
	socket := strings.TrimPrefix(host, "unix://")
	files := []string{socket}
	if slices.Contains(daemonSocket, socket) {
		files = append(files, daemonPidFile)
	}
	var latest time.Time
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && info.ModTime().After(latest) {
			latest = info.ModTime()
		}
	}
	return latest
}

// bootTime tells when the machine was started.
func bootTime() (time.Time, error) {
	text, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return time.Time{}, err
	}
	var up float64
	if _, err := fmt.Sscan(string(text), &up); err != nil {
		return time.Time{}, err
	}
	return time.Now().Add(-time.Duration(up * float64(time.Second))), nil
}

// maxOpenFiles gives the most open files that the daemon can give a container. One that may not raise limits
// (it lacks CAP_SYS_RESOURCE, as daemons inside containers do) cannot go above its own. Where the daemon's
// process cannot be looked at, it is taken for an ordinary one.
func maxOpenFiles() int64 {
	pid, err := os.ReadFile(daemonPidFile)
	if err != nil {
		return math.MaxInt64
	}
	folder := "/proc/" + strings.TrimSpace(string(pid))
	status, err1 := os.ReadFile(folder + "/status")
	limits, err2 := os.ReadFile(folder + "/limits")
	if err1 != nil || err2 != nil {
		return math.MaxInt64
	}
	return openFilesFrom(status, limits)
}

// openFilesFrom reads maxOpenFiles from a process's status and limits files.
func openFilesFrom(status, limits []byte) int64 {
	held, err := strconv.ParseUint(after(status, "CapEff:", 0), 16, 64)
	if err != nil || held&(1<<unix.CAP_SYS_RESOURCE) != 0 {
		return math.MaxInt64
	}
	hard, err := strconv.ParseInt(after(limits, "Max open files", 1), 10, 64)
	if err != nil {
		return math.MaxInt64
	}
	return hard
}

// after gives the nth word after prefix on the line that starts with it, or "".
func after(text []byte, prefix string, nth int) string {
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if rest, found := strings.CutPrefix(lines.Text(), prefix); found {
			if words := strings.Fields(rest); nth < len(words) {
				return words[nth]
			}
		}
	}
	return ""
}
