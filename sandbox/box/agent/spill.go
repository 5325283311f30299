package agent

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// spillLimit bounds one spill file, in bytes, for sandboxes without a disk quota.
const spillLimit = 16 << 30

// spillFolder is where outputs too long to show are kept, and for whom.
type spillFolder struct {
	dir string
	who identity
}

// spill is one such file. Once something failed, err says what and nothing more is written.
type spill struct {
	path    string
	f       *os.File
	written int64
	err     error
}

// create makes a file under a fresh name. O_EXCL and O_NOFOLLOW, since others may write to the folder.
func (s spillFolder) create() *spill {
	name := "output-" + strings.ToLower(rand.Text()[:10]) + ".txt"
	path := filepath.Join(s.dir, name)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o644)
	if err == nil && s.who.uid != 0 {
		err = f.Chown(int(s.who.uid), int(s.who.gid))
	}
	return &spill{path: path, f: f, err: err}
}

func (s *spill) write(b []byte) {
	if s.err != nil {
		return
	}
	if s.written += int64(len(b)); s.written > spillLimit {
		s.err = fmt.Errorf("%s is at the limit of %d bytes", s.path, int64(spillLimit))
		return
	}
	_, s.err = s.f.Write(b)
}

func (s *spill) close() {
	if s.f == nil {
		return
	}
	if err := s.f.Close(); s.err == nil {
		s.err = err
	}
}
