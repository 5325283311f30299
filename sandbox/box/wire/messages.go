package wire

import (
	"io/fs"
	"slices"

	"proctor/sandbox"
)

// Init configures an agent. The first Hello of its life sets it; later ones are ignored, for the
// agent keeps its state when the host comes again.
type Init struct {
	Workdir  string   // where the shell starts and what relative paths are relative to; made if missing
	User     string   // "" for root; a name, or uid[:gid]
	Env      []string // KEY=value, of the image and the task; neutral defaults are added
	SpillDir string   // where outputs too long to show are kept; "" for /tmp
	Hosts    string   // text of /etc/hosts; "" to leave it as it is
	Resolv   string   // text of /etc/resolv.conf; "" to leave it as it is
}

// Hello opens a connection.
type Hello struct {
	Version int
	Init    Init
}

// Encode gives the payload of h.
func (h Hello) Encode() []byte {
	var e encoder
	e.int(int64(h.Version))
	e.string(h.Init.Workdir)
	e.string(h.Init.User)
	e.strings(h.Init.Env)
	e.string(h.Init.SpillDir)
	e.string(h.Init.Hosts)
	e.string(h.Init.Resolv)
	return e.b
}

// DecodeHello reads the payload of a Hello.
func DecodeHello(b []byte) (Hello, error) {
	d := decoder{b: b}
	h := Hello{Version: int(d.int())}
	h.Init = Init{Workdir: d.string(), User: d.string(), Env: d.strings(), SpillDir: d.string(), Hosts: d.string(), Resolv: d.string()}
	return h, d.done()
}

// Welcome answers a Hello.
type Welcome struct {
	Version int
	Shell   string // path of the shell inside
	Resumed bool   // the agent was configured before
}

// Encode gives the payload of w.
func (w Welcome) Encode() []byte {
	var e encoder
	e.int(int64(w.Version))
	e.string(w.Shell)
	e.bool(w.Resumed)
	return e.b
}

// DecodeWelcome reads the payload of a Welcome.
func DecodeWelcome(b []byte) (Welcome, error) {
	d := decoder{b: b}
	w := Welcome{Version: int(d.int()), Shell: d.string(), Resumed: d.bool()}
	return w, d.done()
}

// EncodeCall gives the payload of a KindDo request.
func EncodeCall(c sandbox.Call) []byte {
	e := encoder{b: make([]byte, 0, 96+len(c.Command)+len(c.Text)+len(c.Old)+len(c.New))}
	e.string(c.ID)
	e.string(string(c.Op))
	e.string(c.Command)
	e.duration(c.Timeout)
	e.duration(c.Idle)
	e.string(c.Handle)
	e.duration(c.Wait)
	e.string(c.Path)
	e.string(c.Text)
	e.string(c.Old)
	e.string(c.New)
	e.int(int64(c.Line))
	e.uint(uint64(len(c.Range)))
	for _, n := range c.Range {
		e.int(int64(n))
	}
	e.bool(c.PTY)
	e.int(int64(c.Rows))
	e.int(int64(c.Cols))
	e.strings(c.Keys)
	return e.b
}

// DecodeCall reads the payload of a KindDo request.
func DecodeCall(b []byte) (sandbox.Call, error) {
	d := decoder{b: b}
	c := sandbox.Call{ID: d.string(), Op: sandbox.Op(d.string()), Command: d.string(), Timeout: d.duration(),
		Idle: d.duration(), Handle: d.string(), Wait: d.duration(), Path: d.string(), Text: d.string(),
		Old: d.string(), New: d.string(), Line: int(d.int())}
	n := d.uint()
	if n > 2 {
		d.fail("a range of more than two numbers")
		n = 0
	}
	for range n {
		c.Range = append(c.Range, int(d.int()))
	}
	c.PTY, c.Rows, c.Cols, c.Keys = d.bool(), int(d.int()), int(d.int()), d.strings()
	return c, d.done()
}

// EncodeResult gives the payload of a reply to KindDo.
func EncodeResult(r sandbox.Result) []byte {
	e := encoder{b: make([]byte, 0, 64+len(r.Output)+len(r.Cwd))}
	e.bytes(r.Output)
	e.optional(r.Exit)
	e.bool(r.TimedOut)
	e.bool(r.Truncated)
	e.string(r.Handle)
	e.bool(r.OOM)
	e.string(r.Cwd)
	e.time(r.Started)
	e.duration(r.Duration)
	return e.b
}

// maxOutput is what a Result may show: the limit, the notice line and a last line of words.
const maxOutput = sandbox.OutputLimit + 8<<10

// DecodeResult reads the payload of a reply to KindDo.
func DecodeResult(b []byte) (sandbox.Result, error) {
	d := decoder{b: b}
	r := sandbox.Result{Output: d.bytes(), Exit: d.optional(), TimedOut: d.bool(), Truncated: d.bool(),
		Handle: d.string(), OOM: d.bool(), Cwd: d.string(), Started: d.time(), Duration: d.duration()}
	if len(r.Output) > maxOutput {
		d.fail("more output than the limit")
	}
	if r.Exit != nil && (*r.Exit < 0 || *r.Exit > 255) {
		d.fail("an exit code that is none")
	}
	return r, d.done()
}

// EncodeExec gives the payload of a KindExec request.
func EncodeExec(x sandbox.Exec) []byte {
	e := encoder{b: make([]byte, 0, 128+len(x.Stdin))}
	e.string(x.ID)
	e.strings(x.Argv)
	e.bytes(x.Stdin)
	e.strings(x.Env)
	e.string(x.Dir)
	e.string(x.User)
	e.duration(x.Timeout)
	e.int(x.Limit)
	return e.b
}

// DecodeExec reads the payload of a KindExec request.
func DecodeExec(b []byte) (sandbox.Exec, error) {
	d := decoder{b: b}
	x := sandbox.Exec{ID: d.string(), Argv: d.strings(), Stdin: d.bytes(), Env: d.strings(), Dir: d.string(),
		User: d.string(), Timeout: d.duration(), Limit: d.int()}
	return x, d.done()
}

// EncodeExecResult gives the payload of a reply to KindExec.
func EncodeExecResult(r sandbox.ExecResult) []byte {
	e := encoder{b: make([]byte, 0, 48+len(r.Stdout)+len(r.Stderr))}
	e.bytes(r.Stdout)
	e.bytes(r.Stderr)
	e.optional(r.Exit)
	e.bool(r.TimedOut)
	e.bool(r.Truncated)
	e.bool(r.OOM)
	e.duration(r.Duration)
	return e.b
}

// DecodeExecResult reads the payload of a reply to KindExec.
func DecodeExecResult(b []byte) (sandbox.ExecResult, error) {
	d := decoder{b: b}
	r := sandbox.ExecResult{Stdout: d.bytes(), Stderr: d.bytes(), Exit: d.optional(), TimedOut: d.bool(),
		Truncated: d.bool(), OOM: d.bool(), Duration: d.duration()}
	if r.Exit != nil && (*r.Exit < 0 || *r.Exit > 255) {
		d.fail("an exit code that is none")
	}
	return r, d.done()
}

// ReadFile asks for at most Limit bytes of Path.
type ReadFile struct {
	Path  string
	Limit int64
}

// Encode gives the payload of r.
func (r ReadFile) Encode() []byte {
	var e encoder
	e.string(r.Path)
	e.int(r.Limit)
	return e.b
}

// DecodeReadFile reads the payload of a KindReadFile request.
func DecodeReadFile(b []byte) (ReadFile, error) {
	d := decoder{b: b}
	r := ReadFile{Path: d.string(), Limit: d.int()}
	return r, d.done()
}

// EncodeFileInfo gives the payload of a reply to KindStat.
func EncodeFileInfo(i sandbox.FileInfo) []byte {
	var e encoder
	e.string(i.Path)
	e.string(i.Real)
	e.uint(uint64(i.Mode))
	e.int(i.Size)
	e.int(int64(i.UID))
	e.int(int64(i.GID))
	e.time(i.Time)
	return e.b
}

// DecodeFileInfo reads the payload of a reply to KindStat.
func DecodeFileInfo(b []byte) (sandbox.FileInfo, error) {
	d := decoder{b: b}
	i := sandbox.FileInfo{Path: d.string(), Real: d.string(), Mode: fs.FileMode(d.uint()), Size: d.int(),
		UID: int(d.int()), GID: int(d.int()), Time: d.time()}
	return i, d.done()
}

// EncodeStrings gives the payload of a request that is a list of texts.
func EncodeStrings(v ...string) []byte {
	var e encoder
	e.strings(v)
	return e.b
}

// DecodeStrings reads a list of texts.
func DecodeStrings(b []byte) ([]string, error) {
	d := decoder{b: b}
	v := d.strings()
	return v, d.done()
}

// DecodeState reads the payload of a reply to KindState.
func DecodeState(b []byte) (sandbox.CallState, error) {
	v, err := DecodeStrings(b)
	if err != nil {
		return "", err
	}
	known := []sandbox.CallState{sandbox.CallUnknown, sandbox.CallRunning, sandbox.CallDone}
	if len(v) != 1 || !slices.Contains(known, sandbox.CallState(v[0])) {
		return "", ErrPayload
	}
	return sandbox.CallState(v[0]), nil
}
