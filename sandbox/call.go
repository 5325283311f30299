package sandbox

import "time"

// Op names what a Call does.
type Op string

// The operations of the agent's tools. Appended to, never renamed: they are stored in records.
const (
	OpShell   Op = "shell"   // type Command into the persistent shell and wait for its end
	OpSpawn   Op = "spawn"   // start Command beside the shell, with its cwd and exported environment; gives a Handle
	OpOutput  Op = "output"  // what Handle printed since the last poll, waiting at most Wait for more; "shell" is the shell's own jobs
	OpInput   Op = "input"   // write Text and then Keys to the stdin of Handle, or give its terminal another size
	OpKill    Op = "kill"    // kill the whole process tree of Handle
	OpView    Op = "view"    // show a file, a range of its lines, or a folder
	OpCreate  Op = "create"  // write Text to Path, making missing folders
	OpReplace Op = "replace" // replace the only occurrence of Old in Path with New
	OpInsert  Op = "insert"  // put New below line Line of Path (0: above the first)
	OpUndo    Op = "undo"    // take the last edit of Path back
)

// Control reports whether op acts on a running command, and so must not queue behind it.
func (op Op) Control() bool { return op == OpOutput || op == OpInput || op == OpKill }

// Call is one operation inside a sandbox. Only the fields that its Op names are read.
type Call struct {
	// ID makes the call idempotent inside the sandbox: a Call whose ID the box has seen joins the
	// first one, running or done, and gives its Result; it never runs twice. Unique in the sandbox,
	// 1 to 128 bytes.
	ID string
	Op Op

	Command string        // OpShell, OpSpawn; any bytes but NUL, at most 8 MiB
	Timeout time.Duration // OpShell: wall-clock limit; 0 means DefaultTimeout
	Idle    time.Duration // OpShell: longest silence; 0 means none

	PTY  bool // OpSpawn: on a terminal of its own; OpOutput then gives its screen
	Rows int  // OpSpawn with PTY, OpInput: lines of the terminal, at most MaxRows; 0 for DefaultRows, or as it is
	Cols int  // and columns, at most MaxCols; 0 for DefaultCols, or as it is

	Handle string        // OpOutput, OpInput, OpKill
	Wait   time.Duration // OpOutput

	Path  string   // file operations; relative ones are relative to Spec.Workdir
	Text  string   // OpInput, OpCreate
	Keys  []string // OpInput: see KeyBytes; at most 256
	Old   string   // OpReplace
	New   string   // OpReplace, OpInsert
	Line  int      // OpInsert
	Range []int    // OpView: [first, last], from 1, inclusive, last -1 for the end; nil for all
}

// Result is what a Call gave. What the tool itself refuses (no such file, an unknown handle) is a
// Result with Exit 1 and words in Output; an error of Do means that there is no result at all.
type Result struct {
	// Output is stdout and stderr merged in the order written, at most OutputLimit bytes plus one
	// notice line: head and tail are kept, the whole is in a file inside the sandbox that the
	// notice names. Any bytes, not only UTF-8.
	Output    []byte
	Exit      *int   // nil where the command did not end by itself or still runs; 128+n after signal n
	TimedOut  bool   // the wall-clock or the idle limit cut it off; its whole tree is dead
	Truncated bool   // Output is not the whole
	Handle    string // set while the command goes on
	OOM       bool   // the kernel killed it, or a child of it, for memory
	Cwd       string // the shell's folder after the call; "" where not known
	Started   time.Time
	Duration  time.Duration
}

// Exec is a one-shot command by the harness: no shell, no state, streams apart.
type Exec struct {
	ID      string // idempotency inside the sandbox, as Call.ID; "" for none
	Argv    []string
	Stdin   []byte
	Env     []string // added to the sandbox's, KEY=value
	Dir     string   // "" for the workdir
	User    string   // "" for the sandbox's user; "root", a name, or uid[:gid]
	Timeout time.Duration
	Limit   int64 // bytes kept of each stream; 0 means 16 MiB
}

// ExecResult is what an Exec gave.
type ExecResult struct {
	Stdout, Stderr []byte
	Exit           *int // nil when timed out
	TimedOut       bool
	Truncated      bool
	OOM            bool
	Duration       time.Duration
}

// CallState says what a sandbox knows of a call.
type CallState string

// The states of a call, as Session.State tells them.
const (
	CallUnknown CallState = "unknown" // never arrived: it can be made as if for the first time
	CallRunning CallState = "running"
	CallDone    CallState = "done"
)

// Limits on what calls carry and give back, and their defaults.
const (
	OutputLimit    = 64 << 10          // bytes of Output shown, head and tail
	CommandLimit   = 8 << 20           // bytes of a Command
	DefaultTimeout = 120 * time.Second // of a Call or Exec that sets none

	DefaultRows, DefaultCols = 24, 80 // of a terminal
	MaxRows, MaxCols         = 100, 250
)
