package confine

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// RunRoot is the host's folder for what sandboxes share with the host: a copy of the box agent, and
// one run folder each, which holds the socket.
//
//	/run/initd-<hash>/            tmpfs, by owner
//	    <hash of the agent>/docker-init
//	    <random>/                 tmpfs of 256 KiB, mounted into one sandbox
//
// A bind mount shows in the sandbox's mountinfo with its path on the file system that it comes from, so
// both are mounts of their own and no path says whose they are. A run folder is writable from inside (a
// socket has to be bound there): its own small tmpfs keeps a hostile root from filling anything else.
// Where mounting is not permitted, plain folders on a tmpfs do.
type RunRoot struct {
	path string

	mu     sync.Mutex
	mounts bool // the root and the run folders are mounts of their own
}

// Sizes of the file systems: a few versions of the agent of some 5 MB each; a socket and nothing else.
const (
	rootOptions   = "mode=0711,size=256m,nr_inodes=16k"
	folderOptions = "mode=0700,size=256k,nr_inodes=64"
)

// NewRunRoot gives the run root at path, or at a neutral path by owner.
func NewRunRoot(path, owner string) *RunRoot {
	if path == "" {
		sum := sha256.Sum256([]byte(owner))
		base := "/run"
		if os.Geteuid() != 0 {
			base = "/dev/shm"
		}
		path = filepath.Join(base, "initd-"+hex.EncodeToString(sum[:4]))
	}
	return &RunRoot{path: path}
}

// Path is where the root lies on the host.
func (r *RunRoot) Path() string { return r.path }

// Open makes the root where it is not there (any more).
func (r *RunRoot) Open() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := os.MkdirAll(r.path, 0o711); err != nil {
		return fmt.Errorf("make the run root: %w", err)
	}
	switch mounted, err := isMount(r.path); {
	case err != nil:
		return fmt.Errorf("look at the run root: %w", err)
	case mounted:
		r.mounts = true
	default:
		r.mounts = unix.Mount("tmpfs", r.path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, rootOptions) == nil
	}
	return nil
}

// isMount reports whether path is the root of a mount: its device differs from its parent's.
func isMount(path string) (bool, error) {
	var own, parent unix.Stat_t
	if err := unix.Stat(path, &own); err != nil {
		return false, err
	}
	if err := unix.Stat(filepath.Dir(path), &parent); err != nil {
		return false, err
	}
	return own.Dev != parent.Dev, nil
}

// lock keeps other engines of the owner, in this process or another, from dropping the root while a folder is
// made in it. It locks the folder that the root lies in, so that no lock file stays.
func (r *RunRoot) lock() (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(r.path), 0o755); err != nil {
		return nil, fmt.Errorf("lock the run root: %w", err)
	}
	parent, err := os.Open(filepath.Dir(r.path))
	if err != nil {
		return nil, fmt.Errorf("lock the run root: %w", err)
	}
	if err := unix.Flock(int(parent.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock the run root: %w", err), parent.Close())
	}
	return func() { _ = parent.Close() }, nil // closing unlocks
}

// NewFolder makes a run folder for one sandbox, root's. While there is one, the root stays.
func (r *RunRoot) NewFolder() (string, error) {
	folder := r.Reserve()
	return folder, r.Make(folder, 0)
}

// Reserve gives the path of a run folder that is not there yet, for who writes it down before it is made.
func (r *RunRoot) Reserve() string { return filepath.Join(r.path, RandomHex(6)) }

// Make makes a reserved run folder, which belongs to owner, a user of the host.
func (r *RunRoot) Make(folder string, owner int) error {
	unlock, err := r.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := r.Open(); err != nil {
		return err
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		return fmt.Errorf("make a run folder: %w", err)
	}
	if r.mounts {
		flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC)
		if err := unix.Mount("tmpfs", folder, "tmpfs", flags, folderOptions); err != nil {
			return errors.Join(fmt.Errorf("mount a run folder: %w", err), os.Remove(folder))
		}
	}
	if owner == 0 {
		return nil
	}
	if err := os.Chown(folder, owner, owner); err != nil {
		return errors.Join(fmt.Errorf("give a run folder away: %w", err), r.Drop(folder))
	}
	return nil
}

// Drop removes a run folder and all in it; one that is not there, or is not under the root, is left.
func (r *RunRoot) Drop(folder string) error {
	if filepath.Dir(folder) != r.path {
		return fmt.Errorf("%s is no run folder of %s", folder, r.path)
	}
	if mounted, err := isMount(folder); err == nil && mounted {
		// Detached: the sandbox's own mount of it may live a little longer.
		if err := unix.Unmount(folder, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			return fmt.Errorf("unmount run folder: %w", err)
		}
	}
	return os.RemoveAll(folder)
}

// Folders lists the run folders, whether a sandbox still has them or not.
func (r *RunRoot) Folders() ([]string, error) {
	entries, err := os.ReadDir(r.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var found []string
	for _, entry := range entries {
		if entry.IsDir() && len(entry.Name()) == 12 {
			found = append(found, filepath.Join(r.path, entry.Name()))
		}
	}
	return found, err
}

// DropIfEmpty removes the root where no run folder is left.
func (r *RunRoot) DropIfEmpty() {
	unlock, err := r.lock()
	if err != nil {
		return
	}
	defer unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if left, err := r.Folders(); err != nil || len(left) > 0 {
		return
	}
	if mounted, err := isMount(r.path); err == nil && mounted {
		// A sandbox that just went may hold the agent's file for a moment: detach.
		if unix.Unmount(r.path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW) != nil {
			return
		}
	}
	_ = os.RemoveAll(r.path) // best effort: an empty folder on a tmpfs
}

// RandomHex gives n random bytes in hexadecimal.
func RandomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails: crypto/rand crashes the program instead
	return hex.EncodeToString(b)
}
