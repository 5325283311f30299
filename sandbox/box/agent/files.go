package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"proctor/sandbox"
)

// editLimit is the size of a file that the edit tools take, in bytes: it is held in memory twice.
const editLimit = 32 << 20

// files are the file tools. They run one at a time, with the rights of the sandbox's user.
type files struct {
	workdir string
	jobs    chan func()
	undo    undoStack
}

// newFiles starts the thread that the tools run on. It alone takes the user's file-system identity,
// for good, which also takes the capabilities that override permissions away from it.
func newFiles(workdir string, who identity) *files {
	f := &files{workdir: workdir, jobs: make(chan func()), undo: undoStack{}}
	ready := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		f.undo.err = assume(who)
		close(ready)
		for job := range f.jobs {
			job()
		}
	}()
	<-ready
	return f
}

// assume sets the identity of this thread only: the raw calls, unlike the C library's, do not reach others.
func assume(who identity) error {
	if who.uid == 0 && who.gid == 0 {
		return nil
	}
	groups := who.groups
	if len(groups) == 0 {
		groups = []uint32{who.gid}
	}
	if err := setThreadGroups(groups); err != nil {
		return fmt.Errorf("taking the user's groups: %w", err)
	}
	for _, set := range []struct {
		call uintptr
		id   uint32
	}{{unix.SYS_SETFSGID, who.gid}, {unix.SYS_SETFSUID, who.uid}} {
		_, _, _ = unix.RawSyscall(set.call, uintptr(set.id), 0, 0)
		if now, _, _ := unix.RawSyscall(set.call, uintptr(set.id), 0, 0); uint32(now) != set.id {
			return errors.New("the user's identity could not be taken")
		}
	}
	return nil
}

// do makes a file call.
func (f *files) do(call sandbox.Call) sandbox.Result {
	result := make(chan sandbox.Result)
	f.jobs <- func() { result <- f.run(call) }
	return <-result
}

func (f *files) run(call sandbox.Call) sandbox.Result {
	if f.undo.err != nil {
		return refuse("file tools do not work here: %v", f.undo.err)
	}
	tool := map[sandbox.Op]func(string, sandbox.Call) (sandbox.Result, error){
		sandbox.OpView: f.view, sandbox.OpCreate: f.create, sandbox.OpReplace: f.replace,
		sandbox.OpInsert: f.insert, sandbox.OpUndo: f.undoLast,
	}[call.Op]
	if tool == nil {
		return refuse("there is no operation %q", call.Op)
	}
	path := call.Path
	if path != "" && !strings.HasPrefix(path, "/") {
		path = f.workdir + "/" + path
	}
	res, err := tool(path, call)
	if err != nil {
		return refuse("%s: %s", call.Path, words(err))
	}
	return res
}

// words says what is wrong with a path as a person would.
func words(err error) string {
	var errno syscall.Errno
	switch {
	case errors.Is(err, errOfProcess):
		return "entries of processes in /proc are not shown"
	case errors.Is(err, syscall.ELOOP):
		return "too many levels of links, or a link of a process in /proc"
	case errors.As(err, &errno):
		return errno.Error()
	}
	return strings.TrimPrefix(err.Error(), fs.ErrInvalid.Error()+": ")
}

// target opens a regular file for an edit and reads it whole. The file is the caller's to close.
func target(path string) (*os.File, string, []byte, error) {
	p, err := findPath(path)
	if err != nil {
		return nil, "", nil, err
	}
	defer p.close()
	switch {
	case p.isDir():
		return nil, "", nil, errors.New("is a folder")
	case !p.isFile() || p.proc:
		return nil, "", nil, errors.New("is not a regular file")
	case p.stat.Size > editLimit:
		return nil, "", nil, fmt.Errorf("has %d bytes; files of up to %d can be edited with this tool", p.stat.Size, editLimit)
	}
	f, err := p.open(unix.O_RDWR)
	if err != nil {
		return nil, "", nil, err
	}
	content, err := io.ReadAll(io.LimitReader(f, editLimit+1))
	if err == nil && len(content) > editLimit {
		err = errors.New("grew while it was read")
	}
	if err != nil {
		f.Close()
		return nil, "", nil, err
	}
	return f, p.real, content, nil
}

// edit changes a text file by change, in place, so that mode, owner, links and all else of it stay.
func (f *files) edit(path string, change func(old []byte) (edited []byte, line int, err error)) (sandbox.Result, error) {
	file, real, old, err := target(path)
	if err != nil {
		return sandbox.Result{}, err
	}
	defer file.Close()
	if bytes.IndexByte(old, 0) >= 0 {
		return sandbox.Result{}, errors.New("is a binary file (it holds NUL bytes); this tool edits text only")
	}
	edited, line, err := change(old)
	if err != nil {
		return sandbox.Result{}, err
	}
	if err := overwrite(file, old, edited); err != nil {
		return sandbox.Result{}, err
	}
	f.undo.push(real, old, edited, false)
	return done(fmt.Appendf(nil, "%s was edited; its lines around the change are now:\n%s", path, snippet(old, edited, line))), nil
}

// create writes a file, making missing folders. A file that is there keeps all but its content.
func (f *files) create(path string, call sandbox.Call) (sandbox.Result, error) {
	file, real, old, err := target(path)
	fresh := errors.Is(err, fs.ErrNotExist)
	if fresh {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return sandbox.Result{}, err
		}
		file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|syscall.O_NONBLOCK, 0o666)
	}
	if err != nil {
		return sandbox.Result{}, err
	}
	defer file.Close()
	if err := overwrite(file, old, []byte(call.Text)); err != nil {
		if fresh {
			_ = os.Remove(path)
		}
		return sandbox.Result{}, err
	}
	if fresh {
		if real, err = filepath.EvalSymlinks(path); err != nil {
			real = path
		}
	}
	f.undo.push(real, old, []byte(call.Text), fresh)
	verb := "overwritten"
	if fresh {
		verb = "created"
	}
	return done(fmt.Appendf(nil, "%s was %s (%d bytes)\n", path, verb, len(call.Text))), nil
}

// overwrite turns a file's content from old into edited. Where that fails, for want of space, old is put
// back: its blocks are still the file's.
func overwrite(f *os.File, old, edited []byte) error {
	same := commonPrefix(old, edited)
	_, err := f.WriteAt(edited[same:], int64(same))
	if err == nil && len(edited) < len(old) {
		err = f.Truncate(int64(len(edited)))
	}
	if err == nil {
		return nil
	}
	_, err2 := f.WriteAt(old[same:], int64(same))
	return errors.Join(err, err2, f.Truncate(int64(len(old))))
}

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
