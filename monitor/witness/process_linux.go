package witness

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// process is what is known of an opener. The kernel holds it while it is looked at, so that it is
// no other by then.
type process struct {
	pid     int
	parent  int
	started int64 // ticks
	exe     string
	args    []string
}

// argsRead bounds what is read of a command line.
const argsRead = 4096

// look reads what /proc tells of a process; what it does not is left empty.
func look(pid int) process {
	p := process{pid: pid}
	p.exe, _ = os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if f, err := os.Open(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil {
		buf := make([]byte, argsRead)
		n, _ := f.Read(buf)
		_ = f.Close()
		p.args = strings.Split(strings.TrimRight(string(buf[:n]), "\x00"), "\x00")
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return p
	}
	// pid (comm) state ppid ... starttime is the 22nd; comm may hold anything, so count from its end.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) > 19 {
		p.parent, _ = strconv.Atoi(fields[1])
		p.started, _ = strconv.ParseInt(fields[19], 10, 64)
	}
	return p
}

// line gives the command line in at most 200 bytes.
func (p process) line() string {
	line := strings.ToValidUTF8(strings.Join(p.args, " "), "?")
	if len(line) > 200 {
		line = strings.ToValidUTF8(line[:200], "") + "..."
	}
	return line
}

// Programs that come by everything below a folder. Shells do so for a pattern's sake, and open
// folders only. What copies or packs is not among them: it takes along what it meets.
var (
	walkers = []string{"ls", "find", "fd", "fdfind", "tree", "du", "grep", "egrep", "fgrep", "rg", "ag", "ack", "git", "chmod", "chown", "rm"}
	shells  = []string{"bash", "dash", "sh", "zsh", "busybox"}
)

// walker reports whether exe, where a distribution puts it, is a program that walks; a folder is
// opened also by shells that look for names.
func walker(exe string, folder bool) bool {
	dir, name := path.Split(exe)
	if dir != "/bin/" && dir != "/usr/bin/" && dir != "/usr/local/bin/" && !(dir == "/usr/lib/git-core/" && name == "git") {
		return false
	}
	return slices.Contains(walkers, name) || folder && slices.Contains(shells, name)
}

// wordLimit bounds the words of a command line that are looked up.
const wordLimit = 64

// named reports whether a word of the opener's command line leads to something that was marked.
func (w *Watcher) named(p process) bool {
	cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", p.pid))
	if err != nil {
		return true
	}
	for i, word := range p.args {
		if i == 0 || word == "" {
			continue
		}
		if i > wordLimit {
			return true
		}
		for _, at := range []string{word, word[strings.IndexByte(word, '=')+1:]} {
			if !path.IsAbs(at) {
				at = path.Join(cwd, at)
			}
			if w.isMarked(at) {
				return true
			}
		}
	}
	return false
}

// isMarked reports whether a path leads to something that was marked.
func (w *Watcher) isMarked(p string) bool {
	fd, err := w.open(p, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return false
	}
	_, ok := w.known[inode{st.Dev, st.Ino}]
	return ok
}
