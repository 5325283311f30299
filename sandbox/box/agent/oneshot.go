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
	ch, outPump, errPump, err := o.start(c, x.Stdin, out, errs)
	if err != nil {
		return sandbox.ExecResult{}, err
	}
	defer o.procs.end(ch.group)
	timeout := x.Timeout
	if timeout <= 0 {
		timeout = sandbox.DefaultTimeout
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	var res sandbox.ExecResult
	select {
	case e := <-ch.done:
		res.Exit = &e.code
		res.OOM = e.signaled && kills >= 0 && o.oom.count() > kills
	case <-timer.C:
		res.TimedOut = true
		o.procs.killTree(ch.group, false)
	}
	outPump.swap(nil)
	errPump.swap(nil)
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
func (o *oneshots) start(c command, stdin []byte, out, errs *bounded) (child, *pump, *pump, error) {
	fail := func(err error) (child, *pump, *pump, error) { return child{}, nil, nil, err }
	in, feed, err := stdinFor(stdin)
	if err != nil {
		return fail(fmt.Errorf("%w: %w", sandbox.ErrStart, err))
	}
	defer in.Close()
	outPump, outW, err := o.pipes.open(out)
	if err != nil {
		return fail(fmt.Errorf("%w: %w", sandbox.ErrStart, err))
	}
	defer outW.Close()
	errPump, errW, err := o.pipes.open(errs)
	if err != nil {
		return fail(fmt.Errorf("%w: %w", sandbox.ErrStart, err))
	}
	defer errW.Close()
	c.files = []uintptr{in.Fd(), outW.Fd(), errW.Fd()}
	ch, err := o.procs.run(c)
	if err != nil {
		if feed != nil {
			feed.Close()
		}
		return fail(err)
	}
	if feed != nil {
		go func() {
			_, _ = feed.Write(stdin) // until it is read, or nobody can any more
			feed.Close()
		}()
	}
	return ch, outPump, errPump, nil
}

// stdinFor gives what a child reads, and where to write stdin if there is any.
func stdinFor(stdin []byte) (in, feed *os.File, err error) {
	if len(stdin) == 0 {
		in, err = os.Open(os.DevNull)
		return in, nil, err
	}
	var fds [2]int
	if err := syscall.Pipe2(fds[:], syscall.O_CLOEXEC); err != nil {
		return nil, nil, err
	}
	_ = syscall.SetNonblock(fds[1], true)
	return os.NewFile(uintptr(fds[0]), "pipe"), os.NewFile(uintptr(fds[1]), "pipe"), nil
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
