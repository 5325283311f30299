package oci

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// cgroups is the machine's hierarchy, or hierarchies, of cgroups.
type cgroups struct {
	root string // /sys/fs/cgroup
	v2   bool
}

// machineCgroups looks at the machine's.
func machineCgroups() cgroups {
	var fs unix.Statfs_t
	root := "/sys/fs/cgroup"
	return cgroups{root, unix.Statfs(root, &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC}
}

// name is a sandbox's cgroup in every hierarchy, directly below the root: no parent of ours is left when it goes. A
// sandbox sees it as "/".
func (e *Engine) cgroupName(id string) string { return "/initd-" + e.mark + "-" + id }

// folders gives where a cgroup lies, per hierarchy. It need not be there.
func (c cgroups) folders(name string) []string {
	if c.v2 {
		return []string{c.root + name}
	}
	entries, _ := os.ReadDir(c.root) // none: nothing lies anywhere
	var all []string
	for _, entry := range entries {
		if entry.IsDir() {
			all = append(all, filepath.Join(c.root, entry.Name())+name)
		}
	}
	return all
}

// file gives a file of a cgroup's: by its name in version 2, or by controller and name in version 1.
func (c cgroups) file(name, v2, controller, v1 string) string {
	if c.v2 {
		return filepath.Join(c.root+name, v2)
	}
	return filepath.Join(c.root, controller+name, v1)
}

// number reads a file that holds a number; false where there is none.
func number(path string) (int64, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// event reads a "name number" line of a file; 0 where there is none.
func event(path, name string) int64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if rest, found := strings.CutPrefix(lines.Text(), name+" "); found {
			n, _ := strconv.ParseInt(strings.TrimSpace(rest), 10, 64) // not a number: none
			return n
		}
	}
	return 0
}

// memoryDeaths says whether the kernel killed in the cgroup for memory, and whether the cgroup's own limit was what
// was short: where it was never reached, the host's memory was.
func (c cgroups) memoryDeaths(name string, limit int64) (killed, ownLimit bool) {
	events := c.file(name, "memory.events", "memory", "memory.oom_control")
	killed = event(events, "oom_kill") > 0
	if c.v2 {
		return killed, event(events, "max") > 0 || event(events, "oom") > 0
	}
	failed, known := number(c.file(name, "", "memory", "memory.failcnt"))
	most, _ := number(c.file(name, "", "memory", "memory.max_usage_in_bytes"))
	return killed, !known || failed > 0 || most >= limit
}

// frozen reports whether somebody has stopped the cgroup.
func (c cgroups) frozen(name string) bool {
	if c.v2 {
		return event(filepath.Join(c.root+name, "cgroup.events"), "frozen") == 1
	}
	text, err := os.ReadFile(filepath.Join(c.root, "freezer"+name, "freezer.state"))
	return err == nil && strings.TrimSpace(string(text)) != "THAWED"
}

// freeze stops the cgroup, or lets it go on, and waits until that is so.
func (c cgroups) freeze(ctx context.Context, name string, stop bool) error {
	word := map[bool]string{true: "FROZEN", false: "THAWED"}[stop]
	path := filepath.Join(c.root, "freezer"+name, "freezer.state")
	if c.v2 {
		word, path = map[bool]string{true: "1", false: "0"}[stop], filepath.Join(c.root+name, "cgroup.freeze")
	}
	for wait := time.Millisecond; ; wait = min(2*wait, 20*time.Millisecond) {
		if err := os.WriteFile(path, []byte(word), 0); err != nil {
			return fmt.Errorf("stop or continue cgroup %s: %w", name, err)
		}
		if c.settled(name, stop) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("stop or continue cgroup %s: %w", name, ctx.Err())
		case <-time.After(wait):
		}
	}
}

// settled reports whether the cgroup stands still, or does not.
func (c cgroups) settled(name string, stop bool) bool {
	if c.v2 {
		return c.frozen(name) == stop
	}
	text, err := os.ReadFile(filepath.Join(c.root, "freezer"+name, "freezer.state"))
	return err == nil && strings.TrimSpace(string(text)) == map[bool]string{true: "FROZEN", false: "THAWED"}[stop]
}

// remove kills what is left in a cgroup and removes it; one that is not there is fine.
func (c cgroups) remove(ctx context.Context, name string) error {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		var busy error
		for _, folder := range c.folders(name) {
			err := unix.Rmdir(folder)
			if err == nil || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
				continue
			}
			busy = fmt.Errorf("remove cgroup %s: %w", folder, err)
			killMembers(folder)
		}
		if busy == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return busy
		case <-time.After(wait):
		}
	}
}

// killMembers kills what is in one cgroup. A pid read from there may be another's by the time that it is used only if
// its process ended in between: the file is read anew each time.
func killMembers(folder string) {
	text, err := os.ReadFile(filepath.Join(folder, "cgroup.procs"))
	if err != nil {
		return
	}
	for word := range strings.FieldsSeq(string(text)) {
		if pid, err := strconv.Atoi(word); err == nil && pid > 1 {
			_ = syscall.Kill(pid, syscall.SIGKILL) // gone already, or it will be told by the next round
		}
	}
}

// ofOwner lists the ids of an owner's sandboxes that have a cgroup.
func (c cgroups) ofOwner(mark string) []string {
	seen := map[string]bool{}
	var ids []string
	for _, parent := range c.folders("") {
		found, _ := filepath.Glob(filepath.Join(parent, "initd-"+mark+"-*")) // the pattern is well formed
		for _, path := range found {
			id := strings.TrimPrefix(filepath.Base(path), "initd-"+mark+"-")
			if wellFormedID(id) && !seen[id] {
				seen[id] = true
				ids = append(ids, id)
			}
		}
	}
	return ids
}
