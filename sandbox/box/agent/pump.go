package agent

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// pump reads a pipe into whatever sink is set, until its end. Several processes may hold the other
// end, and the one that we wait for may be gone long before the last: so a command's end is not the
// pipe's end, and drain takes what had been written by then.
type pump struct {
	f    *os.File
	fd   int
	bufs *sync.Pool

	mu   sync.Mutex // held over read and write, so that drain sees all that was read
	sink io.Writer
	end  bool

	done chan struct{} // closed at the end of the pipe
}

const pumpBuffer = 64 << 10

// pipes makes pumps that share their buffers, which are used only while there is something to read.
type pipes struct{ bufs sync.Pool }

func newPipes() *pipes {
	return &pipes{sync.Pool{New: func() any { return new([pumpBuffer]byte) }}}
}

// open makes a pipe whose read end is pumped into sink; w is to be given to a child and closed.
func (ps *pipes) open(sink io.Writer) (p *pump, w *os.File, err error) {
	var fds [2]int
	if err := syscall.Pipe2(fds[:], syscall.O_CLOEXEC); err != nil {
		return nil, nil, err
	}
	_ = syscall.SetNonblock(fds[0], true)
	return ps.read(fds[0], sink), os.NewFile(uintptr(fds[1]), "pipe"), nil
}

// read pumps a descriptor that does not block, which becomes the pump's own.
func (ps *pipes) read(fd int, sink io.Writer) *pump {
	p := ps.hold(fd, sink)
	p.follow()
	return p
}

// hold makes a pump of a descriptor that reads nothing but by drain until follow is called.
func (ps *pipes) hold(fd int, sink io.Writer) *pump {
	return &pump{fd: fd, bufs: &ps.bufs, sink: sink, done: make(chan struct{})}
}

// follow pumps from now on, once, a descriptor that does not block.
func (p *pump) follow() {
	p.f = os.NewFile(uintptr(p.fd), "pipe")
	go p.run()
}

func (p *pump) run() {
	defer close(p.done)
	if raw, err := p.f.SyscallConn(); err == nil {
		_ = raw.Read(func(uintptr) bool { return p.readAll() })
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end = true
	p.f.Close()
}

// readAll reads until the pipe is empty; true at its end.
func (p *pump) readAll() bool {
	for {
		p.mu.Lock()
		n, err := p.readOnce(pumpBuffer)
		p.mu.Unlock()
		if errors.Is(err, syscall.EAGAIN) {
			return false
		}
		if n <= 0 {
			return true
		}
	}
}

// readOnce reads at most limit bytes into the sink. The caller holds mu.
func (p *pump) readOnce(limit int) (int, error) {
	buf := p.bufs.Get().(*[pumpBuffer]byte)
	defer p.bufs.Put(buf)
	for {
		n, err := syscall.Read(p.fd, buf[:min(limit, pumpBuffer)])
		if err == syscall.EINTR {
			continue
		}
		if n > 0 && p.sink != nil {
			_, _ = p.sink.Write(buf[:n])
		}
		return n, err
	}
}

// drain takes what is in the pipe now, and no more: others may go on writing forever.
func (p *pump) drain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.end {
		return
	}
	left, err := unix.IoctlGetInt(p.fd, unix.TIOCINQ)
	for err == nil && left > 0 {
		var n int
		if n, err = p.readOnce(left); n <= 0 {
			return
		}
		left -= n
	}
}

// to sends what comes from now on to another sink; nil drops it.
func (p *pump) to(sink io.Writer) {
	p.mu.Lock()
	p.sink = sink
	p.mu.Unlock()
}

// swap drains into the present sink and then turns to another, with nothing lost between.
func (p *pump) swap(sink io.Writer) {
	p.drain()
	p.to(sink)
}
