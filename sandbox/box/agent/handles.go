package agent

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"proctor/sandbox"
)

const (
	shellHandle  = "shell" // reads what the shell's own jobs print
	liveLimit    = 64      // background commands at the same time
	endedLimit   = 64      // ended ones whose output is still kept
	inputLimit   = 1 << 20 // bytes of one bash_input
	inputTimeout = 5 * time.Second
	waitLimit    = 10 * time.Minute // longest Wait of a poll
)

// handle is a background command.
type handle struct {
	name  string
	child child
	out   sink
	pump  *pump
	stdin *os.File
	tty   *tty // nil where it has no terminal

	ended chan struct{} // closed once exit is set
	exit  exit
	oom   bool
}

// handles are the background commands of a sandbox. Safe for concurrent use.
type handles struct {
	procs *procs
	pipes *pipes
	shell *session
	oom   *oomCounter

	mu    sync.Mutex
	next  int
	byID  map[string]*handle
	order []string // oldest first
}

// spawn starts a command beside the shell.
func (h *handles) spawn(call sandbox.Call) sandbox.Result {
	if strings.ContainsRune(call.Command, 0) {
		return refuse("the command holds a NUL byte, which no shell can carry; nothing was run")
	}
	live, terminals := h.live()
	if live >= liveLimit {
		return refuse("there are %d background commands already; end one first", liveLimit)
	}
	if call.PTY && terminals >= terminalLimit {
		return refuse("there are %d commands on terminals already; end one first", terminalLimit)
	}
	hd := &handle{ended: make(chan struct{})}
	if err := h.launch(hd, call); err != nil {
		return refuse("the command could not be started: %v", err)
	}
	h.mu.Lock()
	h.next++
	hd.name = fmt.Sprintf("bg%d", h.next)
	h.byID[hd.name] = hd
	h.order = append(h.order, hd.name)
	h.prune()
	h.mu.Unlock()
	go h.follow(hd, h.oom.count())
	return sandbox.Result{Handle: hd.name, Cwd: h.shell.where().cwd}
}

func (h *handles) launch(hd *handle, call sandbox.Call) error {
	st := h.shell.fresh()
	argv := []string{"bash", "-c", call.Command}
	if !strings.HasSuffix(h.shell.path, "bash") {
		argv[0] = "sh"
	}
	c := command{path: h.shell.path, argv: argv, env: st.env, dir: st.cwd, who: h.shell.who, live: true}
	if !call.PTY {
		return h.onPipes(hd, c)
	}
	rows, cols, err := sizeOf(call, sandbox.DefaultRows, sandbox.DefaultCols)
	if err != nil {
		return err
	}
	return h.onTTY(hd, c, rows, cols)
}

// onPipes starts c with a pipe for its input and one for its output.
func (h *handles) onPipes(hd *handle, c command) error {
	var fds [2]int
	if err := syscall.Pipe2(fds[:], syscall.O_CLOEXEC); err != nil {
		return err
	}
	stdin := os.NewFile(uintptr(fds[0]), "pipe")
	defer stdin.Close()
	_ = syscall.SetNonblock(fds[1], true)
	hd.stdin = os.NewFile(uintptr(fds[1]), "pipe")
	hd.out = newCollector(h.shell.spill)
	pump, w, err := h.pipes.open(hd.out)
	if err != nil {
		hd.stdin.Close()
		return err
	}
	defer w.Close()
	hd.pump = pump
	c.files = []uintptr{stdin.Fd(), w.Fd(), w.Fd()}
	if hd.child, err = h.procs.run(c); err != nil {
		hd.stdin.Close()
	}
	return err
}

// follow waits for the command's end.
func (h *handles) follow(hd *handle, kills int64) {
	hd.exit = <-hd.child.done
	hd.child.group.ended.Store(true)
	if hd.tty == nil {
		hd.pump.drain()
	} else {
		hd.tty.last(hd.pump)
	}
	hd.oom = kills >= 0 && hd.exit.signaled && h.oom.count() > kills
	hd.stdin.Close()
	close(hd.ended)
}

func (hd *handle) running() bool {
	select {
	case <-hd.ended:
		return false
	default:
		return true
	}
}

// live counts the commands that run, and of those the ones on terminals.
func (h *handles) live() (all, terminals int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, hd := range h.byID {
		if !hd.running() {
			continue
		}
		all++
		if hd.tty != nil {
			terminals++
		}
	}
	return all, terminals
}

// prune forgets the oldest ended commands. The caller holds mu.
func (h *handles) prune() {
	ended := 0
	for i := len(h.order) - 1; i >= 0; i-- {
		name := h.order[i]
		if h.byID[name].running() {
			continue
		}
		if ended++; ended > endedLimit {
			h.procs.end(h.byID[name].child.group)
			delete(h.byID, name)
			h.order = append(h.order[:i], h.order[i+1:]...)
		}
	}
}

func (h *handles) find(name string) *handle {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.byID[name]
}

func unknownHandle(name string) sandbox.Result {
	return refuse("there is no background command with the handle %q", name)
}

// output polls a command: what it printed since the last poll, waiting for something to come.
func (h *handles) output(call sandbox.Call) sandbox.Result {
	timeout := time.NewTimer(max(0, min(call.Wait, waitLimit)))
	defer timeout.Stop()
	if call.Handle == shellHandle {
		h.shell.jobsOut()
		if call.Wait > 0 {
			select {
			case <-h.shell.jobs.next():
			case <-timeout.C:
			}
		}
		shown, truncated := h.shell.jobs.take()
		return sandbox.Result{Output: shown, Truncated: truncated, Handle: shellHandle}
	}
	hd := h.find(call.Handle)
	if hd == nil {
		return unknownHandle(call.Handle)
	}
	if call.Wait > 0 {
		select {
		case <-hd.out.next():
		case <-hd.ended:
		case <-timeout.C:
		}
		if hd.tty != nil {
			hd.tty.settled(hd.ended, call.Wait)
		}
	}
	return h.tell(hd)
}

// tell gives what hd printed since it was last told, and how it ended if it did.
func (h *handles) tell(hd *handle) sandbox.Result {
	res := sandbox.Result{Handle: hd.name}
	running := hd.running()
	switch {
	case running && hd.tty == nil:
		hd.pump.drain()
	case !running:
		code := hd.exit.code
		res.Handle, res.Exit, res.OOM = "", &code, hd.oom
	}
	res.Output, res.Truncated = hd.out.take()
	if running && hd.tty != nil {
		res.Output = lastLine(res.Output, hd.tty.screen.where())
	}
	if res.OOM {
		res.Output = lastLine(res.Output, h.oom.words())
	}
	return res
}

// input writes to a command's stdin.
func (h *handles) input(call sandbox.Call) sandbox.Result {
	hd := h.find(call.Handle)
	switch {
	case call.Handle == shellHandle:
		return refuse("the shell takes commands, not input; give a background command its input by its own handle")
	case hd == nil:
		return unknownHandle(call.Handle)
	case !hd.running():
		return refuse("the command of handle %q has ended", call.Handle)
	case len(call.Text) > inputLimit:
		return refuse("an input of more than %d bytes; nothing was written", inputLimit)
	}
	text, end, err := hd.typed(call)
	if err != nil {
		return refuse("%v; nothing was written", err)
	}
	if hd.tty != nil && (call.Rows != 0 || call.Cols != 0) {
		if err := hd.tty.resize(call); err != nil {
			return refuse("%v; nothing was written", err)
		}
	}
	_ = hd.stdin.SetWriteDeadline(time.Now().Add(inputTimeout))
	if n, err := hd.stdin.WriteString(text); err != nil {
		return refuse("only %d of %d bytes could be written to its stdin: %v", n, len(text), err)
	}
	if end {
		hd.stdin.Close()
	}
	return sandbox.Result{Handle: hd.name}
}

// kill ends a command with all that it started; of the shell, all that it left in the background.
func (h *handles) kill(call sandbox.Call) sandbox.Result {
	if call.Handle == shellHandle {
		return h.shell.killJobs()
	}
	hd := h.find(call.Handle)
	if hd == nil {
		return unknownHandle(call.Handle)
	}
	was := hd.running()
	clean := h.procs.killTree(hd.child.group, false)
	select {
	case <-hd.ended:
	case <-time.After(time.Second):
	}
	res := h.tell(hd)
	if was {
		res.Exit = nil // it did not end by itself
	}
	if !clean {
		res.Output = lastLine(res.Output, "some of its processes could not be killed")
	}
	return res
}
