package agent

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"proctor/sandbox"
	"proctor/sandbox/box/wire"
)

// defaultLimit is what is kept of each stream of a one-shot command that sets none, in bytes.
const defaultLimit = 16 << 20

// oneshots runs commands outside the shell. Safe for concurrent use.
type oneshots struct {
	procs   *procs
	pipes   *pipes
	oom     *oomCounter
	workdir string
	given   []string // the environment that Init gave
	who     identity
	env     []string // baseEnv of who
}

// run starts x and waits for its end or its timeout. Processes that it leaves behind live on.
func (o *oneshots) run(x sandbox.Exec) (sandbox.ExecResult, error) {
	started := time.Now()
	c, err := o.command(x)
	if err != nil {
		return sandbox.ExecResult{}, err
	}
	out, errs := &bounded{limit: streamLimit(x.Limit)}, &bounded{limit: streamLimit(x.Limit)}
	kills := o.oom.count()
	ch, pipes, err := o.start(c, x.Stdin, out, errs)
	if err != nil {
		return sandbox.ExecResult{}, err
	}
	defer o.procs.end(ch.group)
	defer func() { go pipes.release() }() // once the reply is on its way
	timeout := x.Timeout
	if timeout <= 0 {
		timeout = sandbox.DefaultTimeout
	}
	var res sandbox.ExecResult
	if e, ok := pipes.wait(ch.done, timeout); ok {
		res.Exit = &e.code
		res.OOM = e.signaled && kills >= 0 && o.oom.count() > kills
	} else {
		res.TimedOut = true
		o.procs.killTree(ch.group, false)
	}
	pipes.drain()
	res.Stdout, res.Stderr = out.b, errs.b
	res.Truncated = out.cut || errs.cut
	res.Duration = time.Since(started)
	return res, nil
}

// command checks x and says what to start.
func (o *oneshots) command(x sandbox.Exec) (command, error) {
	if len(x.Argv) == 0 {
		return command{}, fmt.Errorf("%w: an empty argv", sandbox.ErrStart)
	}
	c := command{argv: x.Argv, dir: x.Dir, who: o.who, env: o.env, live: true}
	if c.dir == "" {
		c.dir = o.workdir
	}
	if x.User != "" {
		who, err := resolveUser(x.User)
		if err != nil {
			return command{}, err
		}
		c.who, c.env = who, baseEnv(o.given, who)
	}
	if len(x.Env) > 0 {
		c.env = mergeEnv(x.Env, c.env)
	}
	var err error
	c.path, err = lookPath(x.Argv[0], c.env)
	return c, err
}

// start runs c with its three streams.
func (o *oneshots) start(c command, stdin []byte, out, errs *bounded) (_ child, pipes *outputs, err error) {
	pipes = &outputs{}
	defer func() {
		if err != nil {
			pipes.release()
		}
	}()
	in, feed, err := stdinFor(stdin)
	if err != nil {
		return child{}, nil, fmt.Errorf("%w: %w", sandbox.ErrStart, err)
	}
	defer syscall.Close(in)
	var ch child
	if err = pipes.open(o.pipes, out, errs); err != nil {
		err = fmt.Errorf("%w: %w", sandbox.ErrStart, err)
	} else {
		c.files = []uintptr{uintptr(in), uintptr(pipes[0].w), uintptr(pipes[1].w)}
		ch, err = o.procs.run(c)
	}
	switch {
	case feed == nil:
	case err != nil:
		feed.Close()
	default:
		go func() {
			_, _ = feed.Write(stdin) // until it is read, or nobody can any more
			feed.Close()
		}()
	}
	return ch, pipes, err
}

// stdinFor gives the descriptor that a child reads, and where to write stdin if there is any.
func stdinFor(stdin []byte) (in int, feed *os.File, err error) {
	if len(stdin) == 0 {
		in, err = syscall.Open(os.DevNull, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		return in, nil, err
	}
	var fds [2]int
	if err := syscall.Pipe2(fds[:], syscall.O_CLOEXEC); err != nil {
		return -1, nil, err
	}
	_ = syscall.SetNonblock(fds[1], true)
	return fds[0], os.NewFile(uintptr(fds[1]), "pipe"), nil
}

func streamLimit(asked int64) int64 {
	if asked <= 0 {
		asked = defaultLimit
	}
	return min(asked, wire.MaxStream)
}

// bounded keeps the first limit bytes.
type bounded struct {
	limit int64
	b     []byte
	cut   bool
}

func (w *bounded) Write(b []byte) (int, error) {
	room := w.limit - int64(len(w.b))
	if int64(len(b)) > room {
		w.cut = true
	}
	w.b = append(w.b, b[:min(room, int64(len(b)))]...)
	return len(b), nil
}
