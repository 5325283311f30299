package agent

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"proctor/sandbox"
)

// procs starts processes and kills their trees.
type procs struct {
	*reaper
	*tagger
	adj      []byte // oom_score_adj of commands: above ours, so that many small ones do not make us the largest
	ownGroup bool   // see identity.credential
}

func newProcs() *procs {
	return &procs{reaper: newReaper(), tagger: newTagger(), adj: commandAdj(), ownGroup: hasOwnGroup()}
}

// command is what to start.
type command struct {
	path  string
	argv  []string
	env   []string
	dir   string
	who   identity
	files []uintptr
	tty   bool // files are a terminal, which it is to control
	live  bool // its tree is spared by others' timeouts until procs.end
}

// child is a started process.
type child struct {
	pid   int
	done  <-chan exit
	group *group
}

// run starts c in a session of its own. The error wraps sandbox.ErrStart.
func (p *procs) run(c command) (child, error) {
	attr := &syscall.ProcAttr{Dir: c.dir, Env: c.env, Files: c.files,
		Sys: &syscall.SysProcAttr{Setsid: true, Setctty: c.tty, Credential: c.who.credential(p.ownGroup)}}
	p.reaper.mu.Lock()
	defer p.reaper.mu.Unlock()
	g := p.begin(c.live)
	p.mark(g.tag)
	pid, done, err := p.start(c.path, c.argv, attr)
	if err != nil {
		p.end(g)
		return child{}, startError(c, err)
	}
	g.root, g.own = pid, true
	p.expose(pid)
	return child{pid, done, g}, nil
}

// expose makes a process a likelier victim of the kernel than we are. It runs beside the process, on the same CPU,
// so it makes no more system calls than it must.
func (p *procs) expose(pid int) {
	fd, err := syscall.Open("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", syscall.O_WRONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return // it is gone
	}
	_, _ = syscall.Write(fd, p.adj)
	_ = syscall.Close(fd)
}

// startError names the folder where that is what is wrong: the kernel's errno says only ENOENT.
func startError(c command, err error) error {
	if info, statErr := os.Stat(c.dir); c.dir != "" && (statErr != nil || !info.IsDir()) {
		return fmt.Errorf("%w: the folder %s: %w", sandbox.ErrStart, c.dir, errors.Join(statErr, err))
	}
	return fmt.Errorf("%w: %s: %w", sandbox.ErrStart, c.path, err)
}

// lookPath finds a program as execvp does, with the PATH of env.
func lookPath(name string, env []string) (string, error) {
	if name == "" {
		return "", fmt.Errorf("%w: an empty program name", sandbox.ErrStart)
	}
	if strings.Contains(name, "/") {
		return name, nil
	}
	denied := false
	for dir := range strings.SplitSeq(lookup(env, "PATH"), ":") {
		path := dir + "/" + name
		if dir == "" {
			path = "./" + name
		}
		info, err := os.Stat(path)
		if err != nil || info.IsDir() {
			continue
		}
		if info.Mode()&0o111 != 0 {
			return path, nil
		}
		denied = true
	}
	if denied {
		return "", fmt.Errorf("%w: %s: permission denied", sandbox.ErrStart, name)
	}
	return "", fmt.Errorf("%w: %s: not found in PATH", sandbox.ErrStart, name)
}

func commandAdj() []byte {
	var adj int
	text, err := os.ReadFile("/proc/self/oom_score_adj")
	if err == nil {
		_, _ = fmt.Sscan(string(text), &adj)
	}
	return strconv.AppendInt(nil, int64(min(max(adj, 0)+100, 1000)), 10)
}
