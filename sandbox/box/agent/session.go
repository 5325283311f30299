package agent

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"proctor/sandbox"
)

// checkEvery is how often a running call looks whether the shell still follows.
const checkEvery = 100 * time.Millisecond

// session is the persistent shell of the rollout: one shell process after another, one call at a
// time. Safe for concurrent use.
type session struct {
	procs *procs
	pipes *pipes
	path  string
	who   identity
	dirs  []string // where to start, the first that works
	spill spillFolder
	oom   *oomCounter
	jobs  *collector // what the shell's own background jobs print between calls

	turn chan struct{} // holds one token; channels serve in arrival order

	mu    sync.Mutex
	sh    *shell // nil where none could be started
	state shellState
}

// open starts the first shell. An error wraps sandbox.ErrNoShell.
func (s *session) open(env []string) error {
	s.turn = make(chan struct{}, 1)
	s.turn <- struct{}{}
	s.state = shellState{cwd: s.dirs[0], env: env}
	if err := s.ensure(); err != nil {
		return err
	}
	if lookup(env, "BASH_ENV") != "" && !s.sh.readsAhead { // as any bash of the image's would have done
		s.run(sandbox.Call{Op: sandbox.OpShell, Command: `[ ! -f "$BASH_ENV" ] || . "$BASH_ENV"`, Timeout: startTimeout})
	}
	return nil
}

// run makes a shell call. The caller holds the turn.
func (s *session) run(call sandbox.Call) sandbox.Result {
	started := time.Now()
	res := s.attempt(call)
	res.Started, res.Duration = started, time.Since(started)
	res.Cwd = s.where().cwd
	return res
}

func (s *session) attempt(call sandbox.Call) sandbox.Result {
	if strings.ContainsRune(call.Command, 0) {
		return refuse("the command holds a NUL byte, which no shell can carry; nothing was run")
	}
	if len(call.Command) > sandbox.CommandLimit {
		return refuse("the command is longer than %d bytes; nothing was run", sandbox.CommandLimit)
	}
	if err := s.ensure(); err != nil {
		return refuse("the shell could not be started: %v", err)
	}
	sh := s.sh
	r := &running{session: s, sh: sh, call: call, nonce: newNonce(), out: newCollector(s.spill)}
	r.group = s.procs.begin(false)
	r.group.root = sh.pid
	writeTag(sh.tag, r.group.tag)
	r.oom = s.oom.count()
	sh.out.swap(r.out)
	if err := sh.begin(call.Command, r.nonce); err != nil {
		sh.broken = true
	}
	res := r.wait()
	s.keep()
	return res
}

// ensure makes sure that a shell is there and waits for a command.
func (s *session) ensure() error {
	if s.sh != nil && !s.sh.broken {
		select {
		case <-s.sh.done: // killed between calls
			if s.sh.idle() {
				s.sh.takeEnv()
			}
			s.sh.close()
			s.drop()
		default:
			if s.sh.settle() {
				s.keep()
				return nil
			}
			s.sh.discard()
			s.drop()
		}
	}
	var err error
	for try := range startTries {
		time.Sleep(time.Duration(try*try) * 50 * time.Millisecond)
		if err = s.start(); err == nil || hopeless(err) {
			break
		}
	}
	return err
}

// hopeless reports whether trying again cannot help: the program is not there or is none. What a full
// process table or memory does may pass.
func hopeless(err error) bool {
	for _, errno := range []syscall.Errno{syscall.ENOENT, syscall.EACCES, syscall.ENOEXEC, syscall.EPERM} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

func (s *session) start() error {
	st := s.where()
	var err error
	for _, dir := range append([]string{st.cwd}, s.dirs...) {
		if info, statErr := os.Stat(dir); statErr != nil || !info.IsDir() {
			continue
		}
		st.cwd = dir
		var sh *shell
		if sh, err = startShell(s.procs, s.pipes, s.path, s.who, st, s.jobs); err == nil {
			s.sh = sh
			s.keep()
			return nil
		}
		if !errors.Is(err, syscall.EACCES) && !errors.Is(err, syscall.ENOENT) {
			break
		}
	}
	return err
}

// drop forgets a dead shell and keeps what it leaves to the next.
func (s *session) drop() {
	s.keep()
	s.sh = nil
}

// keep publishes the shell's state for those who do not hold the turn.
func (s *session) keep() {
	if s.sh == nil {
		return
	}
	s.mu.Lock()
	s.state = s.sh.state()
	s.mu.Unlock()
}

// where gives the folder and exported environment as of the last call's end.
func (s *session) where() shellState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// fresh is where with what the last call exported, which is taken in only when somebody asks. While
// a call runs it is as of the call's start.
func (s *session) fresh() shellState {
	select {
	case t := <-s.turn:
		if s.sh != nil && !s.sh.broken && s.sh.settle() {
			s.keep()
		}
		s.turn <- t
	default:
	}
	return s.where()
}

// running is one call in the shell.
type running struct {
	*session
	sh    *shell
	call  sandbox.Call
	nonce string
	out   *collector
	group *group
	oom   int64
}

// wait follows the call to its end, whatever that is.
func (r *running) wait() sandbox.Result {
	limit := r.call.Timeout
	if limit <= 0 {
		limit = sandbox.DefaultTimeout
	}
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	check := time.NewTimer(r.nextCheck())
	defer check.Stop()
	lost := 0
	for {
		select {
		case text := <-r.sh.reports:
			if r.sh.accept(text, r.nonce) {
				return r.ended(r.sh.last)
			}
		case e := <-r.sh.done:
			return r.died(e)
		case <-deadline.C:
			return r.cut(fmt.Sprintf("timed out: the limit of %s is over", limit))
		case <-check.C:
			if r.call.Idle > 0 && time.Since(r.out.lastWrite()) >= r.call.Idle {
				return r.cut(fmt.Sprintf("timed out: no output for %s, the idle limit", r.call.Idle))
			}
			if r.astray() {
				lost++
			}
			if lost > 1 { // twice, for the report may have been on its way
				return r.lost()
			}
			check.Reset(r.nextCheck())
		}
	}
}

// nextCheck is when to look next at silence and at the shell.
func (r *running) nextCheck() time.Duration {
	if r.call.Idle <= 0 {
		return checkEvery
	}
	left := r.call.Idle - time.Since(r.out.lastWrite())
	return max(min(left, checkEvery), time.Millisecond)
}

// astray reports whether the shell has read all of its script and yet there is no report.
func (r *running) astray() bool {
	return !r.sh.readsAhead && (r.sh.broken || r.sh.idle()) && len(r.sh.reports) == 0
}

func (r *running) ended(code int) sandbox.Result {
	r.sh.out.swap(r.jobs)
	return r.result(&code, "")
}

// died is the end of a call that ended the shell. The next one is started at once, so that the next
// call need not wait.
func (r *running) died(e exit) sandbox.Result {
	r.sh.out.swap(r.jobs)
	r.sh.last = e.code
	r.sh.close()
	r.drop()
	res := r.result(&e.code, "")
	_ = r.ensure() // what is wrong with it the next call says
	return res
}

// cut ends the call by force: all that it started is dead before the answer says so.
func (r *running) cut(words string) sandbox.Result {
	r.sh.last = 128 + int(syscall.SIGKILL)
	_ = syscall.Kill(r.sh.pid, syscall.SIGKILL)
	clean := r.procs.killTree(r.group, true)
	r.sh.discard()
	r.sh.out.swap(r.jobs)
	r.drop()
	if clean {
		words += "; all that this command had started was killed"
	} else {
		words += "; some of what this command had started could not be killed"
	}
	res := r.result(nil, words)
	res.TimedOut = true
	_ = r.ensure()
	return res
}

// lost replaces a shell that does not report any more. The command itself has run.
func (r *running) lost() sandbox.Result {
	r.sh.discard()
	r.sh.out.swap(r.jobs)
	r.sh.last = 1
	r.drop()
	code := 1
	res := r.result(&code, "the shell no longer worked after this command and was started again")
	_ = r.ensure()
	return res
}

// result makes the Result of a call that exited with code, or did not where code is nil; words are a
// last line.
func (r *running) result(code *int, words string) sandbox.Result {
	output, truncated := r.out.take()
	res := sandbox.Result{Output: output, Truncated: truncated}
	if code != nil {
		n := *code
		res.Exit = &n
	}
	if r.oom >= 0 && r.session.oom.count() > r.oom {
		res.OOM = true
		res.Output = lastLine(res.Output, r.session.oom.words())
	}
	if words != "" {
		res.Output = lastLine(res.Output, words)
	}
	return res
}

// lastLine adds a line of ours to an output.
func lastLine(output []byte, words string) []byte {
	if len(output) > 0 && output[len(output)-1] != '\n' {
		output = append(output, '\n')
	}
	return append(append(append(output, '['), words...), "]\n"...)
}

// refuse is the Result of what a tool does not do.
func refuse(format string, args ...any) sandbox.Result {
	one := 1
	return sandbox.Result{Output: fmt.Appendf(nil, format+"\n", args...), Exit: &one}
}

func done(output []byte) sandbox.Result {
	zero := 0
	return sandbox.Result{Output: output, Exit: &zero}
}
