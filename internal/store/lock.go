package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// folderLock holds a data folder for one process. The kernel frees it when the process ends in
// whatever way, so there is never a stale lock to remove by hand.
type folderLock struct{ file *os.File }

// lockFolder takes the lock of dir. ErrLocked, with the holder's pid and the remedy, where another
// process has it.
func lockFolder(dir string) (*folderLock, error) {
	path := filepath.Join(dir, "lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("store: open the lock of the data folder: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		holder := readPID(f)
		f.Close()
		return nil, fmt.Errorf("store: %w: %s is held by process %s; stop that server, or give this one another folder with --data", ErrLocked, dir, holder)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("store: lock %s: %w", path, err)
	}
	// The pid is for people only; failing to write it (a full disk) must not stop a server.
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return &folderLock{file: f}, nil
}

func readPID(f *os.File) string {
	buf := make([]byte, 32)
	n, _ := f.ReadAt(buf, 0)
	if pid := strings.TrimSpace(string(buf[:n])); pid != "" {
		return pid
	}
	return "(unknown)"
}

func (l *folderLock) release() error { return l.file.Close() }
