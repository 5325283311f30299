package agent

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"proctor/sandbox"
)

// How the shell is driven
//
// The shell is not interactive. It reads its script from a pipe on descriptor 0, byte by byte, which
// is what lets one line run before the next is read. For each call it gets
//
//	\builtin eval '<command>' </dev/null >&29 2>&29 28>&- 29>&- 27>&-
//	\__prompt_command <nonce>
//	<empty line>
//
// eval keeps an unclosed quote or a syntax error inside the call; its redirections are undone after it,
// so `exec >file` in a command lasts for that call only; the three descriptors are closed in it, so no
// child has them (bash keeps its own copies close-on-exec). At rest the shell's own stdout and stderr
// are /dev/null, where traces of these lines go under set -x. The function, readonly and made before any
// command could run, writes nonce, exit code and PWD to descriptor 27, and then the exported environment
// to the memory file on 28, which is read before the next call. Nothing in this forks.
//
// The quoting \builtin is safe from aliases; from a function named builtin nothing is, nor from one
// who closes our descriptors. Then the report does not come although the shell has read everything,
// the empty line included. That is looked for now and then; such a shell is replaced by a new one with
// the same folder and environment, and so is one that exits or had to be killed.
//
// Every byte read costs the shell a system call, so long commands go through the memory file.
//
// When in doubt, replace the shell: it costs the agent its unexported variables and functions, never
// the rollout.

const (
	fdReport, fdMemory, fdOutput = 27, 28, 29 // in bash
	longCommand                  = 1 << 10    // bytes from which a command goes through the memory file
	envLimit                     = 4 << 20    // bytes of an environment that are kept
	startTimeout                 = 10 * time.Second
	startTries                   = 5
)

// dialect is how a kind of shell is driven.
type dialect struct {
	args                   []string
	report, memory, output int
	prelude                string
	call                   string // the words before the quoted command
	long                   string // as call, of a command in the memory file; "" where it cannot be
	closeAll               string
	readsAhead             bool // takes more than a line, so what it has read says nothing; it reports last
}

// bash and sh drive their shells alike; sh knows descriptors of one digit only, and no builtin.
var (
	bash = dialect{
		args: []string{"bash", "--norc", "--noprofile"}, report: fdReport, memory: fdMemory, output: fdOutput,
		prelude: `__prompt_command() { builtin printf '%s %s %s\0' "$1" "$?" "${PWD-}" >&27; builtin export -p >&28; }
readonly -f __prompt_command; shopt -s expand_aliases; exec >/dev/null 2>&1
`,
		call:     `\builtin eval `,
		long:     `\builtin eval "$_c"`,
		closeAll: " </dev/null >&29 2>&29 27>&- 28>&- 29>&-\n",
	}
	sh = dialect{
		args: []string{"sh"}, report: 7, memory: 8, output: 9,
		prelude: `__prompt_command() { set -- "$1" "$?"; command export -p >&8; command printf '%s %s %s\0' "$1" "$2" "${PWD-}" >&7; }
exec >/dev/null 2>&1
`,
		call:       `\eval `,
		closeAll:   " </dev/null >&9 2>&9 7>&- 8>&- 9>&-\n",
		readsAhead: true,
	}
)

// shell is one running shell process. Not safe for concurrent use.
type shell struct {
	dialect
	child
	in      *os.File // its script
	inFD    int
	report  *pump
	reports chan string // what came on the report descriptor, cut at NUL
	memory  *os.File
	out     *pump
	tag     *os.File // its coredump_filter
	env     []string // as last exported
	cwd     string   // as last told
	last    int      // exit code of the last command
	broken  bool     // to be replaced
}

// shellState is what a new shell takes over from an old one.
type shellState struct {
	cwd  string
	env  []string
	last int
}

// start runs the shell at path, and waits for its first report.
func startShell(p *procs, ps *pipes, path string, who identity, st shellState, jobs *collector) (*shell, error) {
	d := bash
	if !strings.HasSuffix(path, "bash") {
		d = sh
	}
	s := &shell{dialect: d, reports: make(chan string, 16), cwd: st.cwd, env: st.env, last: st.last}
	if err := s.launch(p, ps, path, who, jobs); err != nil {
		s.close()
		return nil, err
	}
	nonce := newNonce()
	if err := s.send(s.prelude + restore(st.env) + `\__prompt_command ` + nonce + "\n\n"); err != nil {
		s.discard()
		return nil, err
	}
	timeout := time.NewTimer(startTimeout)
	defer timeout.Stop()
	for {
		select {
		case text := <-s.reports:
			if s.accept(text, nonce) {
				s.last = st.last
				return s, nil
			}
		case e := <-s.done:
			s.close()
			return nil, fmt.Errorf("%w: %s ended with code %d at once", sandbox.ErrNoShell, path, e.code)
		case <-timeout.C:
			s.discard()
			return nil, fmt.Errorf("%w: %s does not answer", sandbox.ErrNoShell, path)
		}
	}
}

func (s *shell) launch(p *procs, ps *pipes, path string, who identity, jobs *collector) error {
	var outW, repW *os.File
	var fds [2]int
	err := syscall.Pipe2(fds[:], syscall.O_CLOEXEC)
	if err != nil {
		return err
	}
	script := os.NewFile(uintptr(fds[0]), "pipe")
	defer script.Close()
	s.in, s.inFD = os.NewFile(uintptr(fds[1]), "pipe"), fds[1]
	if s.out, outW, err = ps.open(jobs); err != nil {
		return err
	}
	defer outW.Close()
	if s.report, repW, err = ps.open(&splitter{to: s.reports}); err != nil {
		return err
	}
	defer repW.Close()
	mem, err := unix.MemfdCreate("sh", unix.MFD_CLOEXEC)
	if err != nil {
		return err
	}
	s.memory = os.NewFile(uintptr(mem), "memory")
	files := make([]uintptr, s.output+1)
	for i := range files {
		files[i] = ^uintptr(0) // not open
	}
	files[0], files[1], files[2] = script.Fd(), outW.Fd(), outW.Fd()
	files[s.dialect.report], files[s.dialect.memory], files[s.output] = repW.Fd(), s.memory.Fd(), outW.Fd()
	env := mergeEnv(startEnv(s.env), nil)
	s.child, err = p.run(command{path: path, argv: s.args, env: env, dir: s.cwd, who: who, files: files})
	if err != nil {
		return err
	}
	s.tag, _ = os.OpenFile(fmt.Sprintf("/proc/%d/coredump_filter", s.pid), os.O_WRONLY, 0)
	return nil
}

// send writes to the script. It blocks only for what is longer than a pipe and a shell that reads ahead.
func (s *shell) send(text string) error {
	_, err := s.in.WriteString(text)
	return err
}

// begin types command in. The caller has called settle.
func (s *shell) begin(command, nonce string) error {
	if err := s.clearMemory(); err != nil {
		return err
	}
	var b strings.Builder
	if s.long != "" && len(command) > longCommand {
		if err := s.remember(command); err != nil {
			return err
		}
		fmt.Fprintf(&b, "IFS= \\builtin read -rd '' _c <&%d\n%s%s%s", s.dialect.memory, status(s.last), s.long, s.closeAll)
		fmt.Fprintf(&b, "\\__prompt_command %s;\\builtin unset _c\n\n", nonce)
		return s.send(b.String())
	}
	b.WriteString(status(s.last))
	b.WriteString(s.call)
	quote(&b, command)
	b.WriteString(s.closeAll)
	b.WriteString(`\__prompt_command `)
	b.WriteString(nonce)
	b.WriteString("\n\n")
	if !s.readsAhead {
		return s.send(b.String())
	}
	go func() { _ = s.send(b.String()) }() // ends with the shell, whose death breaks the pipe
	return nil
}

// remember puts command where read finds it, ended by a NUL, which no command holds.
func (s *shell) remember(command string) error {
	if _, err := s.memory.WriteString(command + "\x00"); err != nil {
		return err
	}
	_, err := s.memory.Seek(0, 0)
	return err
}

// clearMemory empties the file; its offset is the shell's too.
func (s *shell) clearMemory() error {
	if err := s.memory.Truncate(0); err != nil {
		return err
	}
	_, err := s.memory.Seek(0, 0)
	return err
}

// accept takes a report: nonce, exit code and folder. What does not hold the nonce is noise.
func (s *shell) accept(text, nonce string) bool {
	i := strings.LastIndex(text, nonce+" ")
	if i < 0 {
		return false
	}
	code, cwd, ok := strings.Cut(text[i+len(nonce)+1:], " ")
	n, err := parseCode(code)
	if !ok || err != nil {
		return false
	}
	s.last = n
	if strings.HasPrefix(cwd, "/") && len(cwd) < 4096 {
		s.cwd = cwd
	}
	return true
}

// settle waits until the shell has read all of its script, which it has once its report's environment
// is written, and takes that in. False where the shell does not get there.
func (s *shell) settle() bool {
	for wait := 10 * time.Microsecond; !s.idle(); wait *= 2 {
		if wait > time.Second {
			return false
		}
		time.Sleep(wait)
	}
	s.takeEnv()
	return true
}

// idle reports whether the script is read to its end.
func (s *shell) idle() bool {
	left, err := unix.IoctlGetInt(s.inFD, unix.TIOCINQ)
	return err == nil && left == 0
}

// takeEnv reads the environment that the last report left. What cannot be read keeps the one before.
func (s *shell) takeEnv() {
	info, err := s.memory.Stat()
	if err != nil || info.Size() == 0 || info.Size() > envLimit {
		return
	}
	text := make([]byte, info.Size())
	if n, err := s.memory.ReadAt(text, 0); err != nil || n != len(text) {
		return
	}
	if i := strings.LastIndexByte(string(text), 0); i >= 0 { // after a long command
		text = text[i+1:]
	}
	if env, err := parseExports(string(text)); err == nil && len(env) > 0 {
		s.env = env
	}
}

// state is what the next shell takes over.
func (s *shell) state() shellState { return shellState{s.cwd, s.env, s.last} }

// discard kills the shell, and only it, and lets go of it.
func (s *shell) discard() {
	_ = syscall.Kill(s.pid, syscall.SIGKILL)
	select {
	case <-s.done:
	case <-time.After(startTimeout):
	}
	s.close()
}

// close lets go of a dead shell. Its output pipe is pumped on, for jobs that it left.
func (s *shell) close() {
	for _, f := range []*os.File{s.in, s.memory, s.tag} {
		if f != nil {
			f.Close()
		}
	}
	if s.report != nil {
		s.report.to(nil)
	}
}

// splitter cuts reports at NUL. What is too long or comes too fast is dropped: it is no report.
type splitter struct {
	to  chan<- string
	buf []byte
}

const reportLimit = 16 << 10

func (s *splitter) Write(b []byte) (int, error) {
	for _, c := range b {
		switch {
		case c != 0 && len(s.buf) < reportLimit:
			s.buf = append(s.buf, c)
		case c == 0:
			select {
			case s.to <- string(s.buf):
			default:
			}
			s.buf = s.buf[:0]
		}
	}
	return len(b), nil
}

func newNonce() string { return strings.ToLower(rand.Text()[:10]) }

// status sets $? to what the last command left, without tripping set -e.
func status(code int) string {
	switch code {
	case 0:
		return ""
	case 1:
		return "! \\:\n"
	default:
		return fmt.Sprintf("(\\exit %d) && \\:\n", code)
	}
}

func parseCode(text string) (int, error) {
	var n int
	if len(text) == 0 || len(text) > 3 {
		return 0, errors.New("no exit code")
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, errors.New("no exit code")
		}
		n = 10*n + int(c-'0')
	}
	if n > 255 {
		return 0, errors.New("no exit code")
	}
	return n, nil
}
