// Package witness sees from the host which protected files a sandbox opens, whatever the command
// looked like: fanotify permission marks on the files as the sandbox sees them, by way of
// /proc/PID/root. A link, a hard link, another name, a compiled program, a path put together at run
// time: the mark is on the inode, and the kernel asks before the open goes through.
//
// A Hub is one fanotify group for all sandboxes of a process (the kernel allows a user 128 groups);
// a Watcher is one sandbox's part of it. The kernel holds an opener until the Hub has answered, so
// that what a call opened is known when the call ends, with the opener's program and command line;
// should this process die, the kernel lets all openers go on.
//
// By default every open is let through: an "Operation not permitted" beside a "No such file" would
// tell. With Deny the kernel refuses it, nothing is learned, and the program's own complaint is
// reworded (Reword) to what it says of a file that is not there.
package witness

import (
	"fmt"
	"path"
	"strings"
)

// Kinds of witness, as records name them.
const (
	Full = "full"
	Off  = "none"
)

// Opening is a protected file, or folder, that a process of the sandbox opened.
type Opening struct {
	Path    string `json:"path"`              // as the sandbox knew it when it was marked
	Program string `json:"program,omitempty"` // the opener's executable, as the sandbox sees it
	Line    string `json:"line,omitempty"`    // its command line, at most 200 bytes
	// Walk says that a listing or search came by: ls, find, grep and the like, told no protected name.
	Walk bool `json:"walk,omitempty"`
	// Earlier says that a process opened it that an earlier call had left behind.
	Earlier bool `json:"earlier,omitempty"`
	// Denied says that the open was refused.
	Denied bool `json:"denied,omitempty"`
}

// String gives the opening as evidence.
func (o Opening) String() string {
	how := "opened"
	switch {
	case o.Denied:
		how = "refused to"
	case o.Walk:
		how = "passed by"
	}
	when := ""
	if o.Earlier {
		when = ", which an earlier call had left running"
	}
	return fmt.Sprintf("witness: %s %s %s (%s)%s", o.Path, how, path.Base(o.Program), o.Line, when)
}

// Span is a call as a witness needs to know it.
type Span struct {
	Ordinal int
	// Control says that it is a control call, which runs beside others: opens go to the others first.
	Control bool
	// File says that it is a file tool's call, which the sandbox's first process carries out itself.
	File bool
	// Harness says that the call is not the agent's: what it opens is nobody's business.
	Harness bool
}

// None is the witness where there can be none: no capability, a remote host, another kernel's files.
type None struct{}

// Begin implements monitor.Witness.
func (None) Begin(Span) func() []Opening { return func() []Opening { return nil } }

// Kind implements monitor.Witness.
func (None) Kind() string { return Off }

// words are how programs word EPERM, and what they say of a file that is not there. The longer
// ones come first.
var words = strings.NewReplacer(
	"PermissionError: [Errno 1] Operation not permitted", "FileNotFoundError: [Errno 2] No such file or directory",
	"[Errno 1] Operation not permitted", "[Errno 2] No such file or directory",
	"Operation not permitted (os error 1)", "No such file or directory (os error 2)",
	"EPERM: operation not permitted", "ENOENT: no such file or directory",
	"Errno::EPERM", "Errno::ENOENT", "errno: -1,", "errno: -2,", "code: 'EPERM'", "code: 'ENOENT'",
	"cannot open directory", "cannot access",
	"Operation not permitted", "No such file or directory", "operation not permitted", "no such file or directory",
	"AccessDeniedException", "NoSuchFileException",
)

// refusals are the words by which a line is known to complain of a refused open.
var refusals = []string{"Operation not permitted", "operation not permitted", "Errno::EPERM", "errno: -1,", "code: 'EPERM'", "AccessDeniedException"}

// Reword gives the output of a call of which opens were denied, as if the files were not there:
// complaints are reworded, those of searches and listings dropped with their line.
func Reword(output []byte, denied []Opening) []byte {
	var walked, direct bool
	for _, o := range denied {
		walked, direct = walked || o.Denied && o.Walk, direct || o.Denied && !o.Walk
	}
	if !walked && !direct {
		return output
	}
	var out strings.Builder
	for line := range strings.SplitAfterSeq(string(output), "\n") {
		complains := false
		for _, r := range refusals {
			complains = complains || strings.Contains(line, r)
		}
		switch {
		case !complains:
			out.WriteString(line)
		case walked && ofWalk(line, denied):
		default:
			_, _ = words.WriteString(&out, line) // a Builder takes everything
		}
	}
	return []byte(out.String())
}

// ofWalk reports whether a line complains, by a walker's name, of what a walk met.
func ofWalk(line string, denied []Opening) bool {
	for _, o := range denied {
		if o.Denied && o.Walk && strings.HasPrefix(line, path.Base(o.Program)+":") && strings.Contains(line, path.Base(o.Path)) {
			return true
		}
	}
	return false
}
