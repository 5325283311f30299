package agent

import (
	"syscall"
	"time"
)

// outputs are the output pipes of a one-shot command, which most often ends at once. So nothing watches them until
// it has run for a while, and our own copies of the ends that it writes to are kept until it has ended: to set up a
// watch, and to be woken by their hanging up, would each cost as much as the command's own last steps, on the one CPU
// that both have.
type outputs [2]output

// output is one of them.
type output struct {
	*pump
	w int // our copy of the end that is written to
}

// followAfter is how long a command runs before its pipes are watched. Until then it may fill them, and waits.
const followAfter = 3 * time.Millisecond

// open makes the pipes, pumped into out and errs.
func (o *outputs) open(ps *pipes, sinks ...*bounded) error {
	for i, sink := range sinks {
		var fds [2]int
		if err := syscall.Pipe2(fds[:], syscall.O_CLOEXEC); err != nil {
			return err
		}
		o[i] = output{pump: ps.hold(fds[0], sink), w: fds[1]}
	}
	return nil
}

// wait waits for the command's end, and reports whether that came before the timeout.
func (o *outputs) wait(done <-chan exit, timeout time.Duration) (exit, bool) {
	soon := time.NewTimer(min(followAfter, timeout))
	defer soon.Stop()
	select {
	case e := <-done:
		return e, true
	case <-soon.C:
	}
	for i := range o {
		o[i].follow()
	}
	late := time.NewTimer(timeout - followAfter)
	defer late.Stop()
	select {
	case e := <-done:
		return e, true
	case <-late.C:
		return exit{}, false
	}
}

// drain takes what is in the pipes now; what comes later is dropped.
func (o *outputs) drain() {
	for i := range o {
		o[i].swap(nil)
	}
}

// release closes the pipes, or pumps them on for processes that the command has left behind, which would die of a
// closed one.
func (o *outputs) release() {
	for i := range o {
		if o[i].pump != nil {
			o[i].release()
		}
	}
}

func (o *output) follow() {
	_ = syscall.SetNonblock(o.fd, true)
	o.pump.follow()
}

func (o *output) release() {
	_ = syscall.Close(o.w)
	if o.f != nil {
		return // followed: the pump closes it at its end
	}
	_ = syscall.SetNonblock(o.fd, true)
	var rest [1]byte
	if n, err := syscall.Read(o.fd, rest[:]); n == 0 && err == nil {
		_ = syscall.Close(o.fd) // nobody else has it
		return
	}
	o.follow()
}
