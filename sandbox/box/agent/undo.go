package agent

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"

	"proctor/sandbox"
)

// undoLimit bounds what is kept of old contents, in bytes.
const undoLimit = 8 << 20

// change is one edit: the bytes of a file that it put in the place of others.
type change struct {
	path    string
	at      int
	removed []byte
	added   int
	after   [sha256.Size]byte // of the whole file
	created bool
}

// undoStack holds the latest edits of all files, oldest first.
type undoStack struct {
	changes []change
	bytes   int
	err     error // why the tools cannot run at all
}

// push keeps what is needed to take an edit back. The oldest edits go where that is too much.
func (u *undoStack) push(path string, old, edited []byte, created bool) {
	at := commonPrefix(old, edited)
	tail := 0
	for tail < min(len(old), len(edited))-at && old[len(old)-1-tail] == edited[len(edited)-1-tail] {
		tail++
	}
	removed := append([]byte(nil), old[at:len(old)-tail]...)
	u.changes = append(u.changes, change{path, at, removed, len(edited) - tail - at, sha256.Sum256(edited), created})
	u.bytes += len(removed) + 256
	for u.bytes > undoLimit {
		u.bytes -= len(u.changes[0].removed) + 256
		u.changes = u.changes[1:]
	}
}

// last gives the index of the latest edit of a file, -1 where there is none.
func (u *undoStack) last(path string) int {
	for i := len(u.changes) - 1; i >= 0; i-- {
		if u.changes[i].path == path {
			return i
		}
	}
	return -1
}

func (u *undoStack) remove(i int) {
	u.bytes -= len(u.changes[i].removed) + 256
	u.changes = append(u.changes[:i], u.changes[i+1:]...)
}

// undoLast takes the last edit of a file back, unless something else has changed the file since.
func (f *files) undoLast(path string, _ sandbox.Call) (sandbox.Result, error) {
	file, real, content, err := target(path)
	if err != nil {
		return sandbox.Result{}, err
	}
	defer file.Close()
	i := f.undo.last(real)
	if i < 0 {
		return sandbox.Result{}, errors.New("there is no edit to undo")
	}
	c := f.undo.changes[i]
	if sha256.Sum256(content) != c.after {
		return sandbox.Result{}, errors.New("was changed by something else since the last edit; nothing was undone")
	}
	if c.created {
		if err := os.Remove(real); err != nil {
			return sandbox.Result{}, err
		}
		f.undo.remove(i)
		return done(fmt.Appendf(nil, "%s was removed: its creation was undone\n", path)), nil
	}
	before := make([]byte, 0, len(content)-c.added+len(c.removed))
	before = append(append(append(before, content[:c.at]...), c.removed...), content[c.at+c.added:]...)
	if err := overwrite(file, content, before); err != nil {
		return sandbox.Result{}, err
	}
	f.undo.remove(i)
	return done(fmt.Appendf(nil, "the last edit of %s was undone\n", path)), nil
}
