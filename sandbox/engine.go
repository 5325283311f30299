package sandbox

import (
	"context"
	"io"
	"io/fs"
	"time"
)

// Engine makes sandboxes. Safe for concurrent use. Each engine passes sandboxtest.Run.
type Engine interface {
	// Name is the engine's word in configuration and records: "docker", "oci", "fake".
	Name() string

	// Capabilities tells what the engine can hold on this machine. ErrUnavailable where it cannot
	// run at all, wrapped with the reason and the remedy.
	Capabilities(ctx context.Context) (Capabilities, error)

	// Image resolves a reference, pulling it where a registry is at hand. ErrNoImage where there
	// is none.
	Image(ctx context.Context, ref string) (Image, error)

	// Create starts a sandbox that is ready for calls: box agent answering, limits on, network as
	// asked. A cancelled or failed Create leaves nothing behind. Errors: ErrNoImage, ErrNoShell,
	// ErrUnavailable, ErrCapacity.
	Create(ctx context.Context, spec Spec) (Session, error)

	// Attach takes up a sandbox made earlier, perhaps by a server that died: running calls and
	// finished results are found again. ErrGone where it does not exist or is not ours.
	Attach(ctx context.Context, id string) (Session, error)

	// List gives the sandboxes, running or dead, that carry this engine's own label and owner.
	List(ctx context.Context) ([]Listed, error)

	// Commit keeps the files of a sandbox as an image under ref. Processes are not kept.
	Commit(ctx context.Context, id, ref string) (Image, error)

	// Remove removes a sandbox by id, dead or alive; nil where there is none.
	Remove(ctx context.Context, id string) error

	// Close lets go of the engine's own resources; sandboxes live on.
	Close() error
}

// Session is the host's hold on one sandbox. Safe for concurrent use; shell calls queue behind one
// another in arrival order, control calls do not queue. Close is final; a Session that is only let
// go of (Detach) can be attached again.
type Session interface {
	// ID is the engine's own id of the sandbox, for Attach.
	ID() string

	// Do makes a call. It gives a Result for all that the agent's own doing can cause; an error
	// only where there is no result: *DeadError when the sandbox is gone, ErrUnavailable when the
	// engine is, ctx's error when the caller left. A call that the caller left goes on: Do with the
	// same ID joins it.
	Do(ctx context.Context, call Call) (Result, error)

	// State tells what the sandbox knows of the call with this ID.
	State(ctx context.Context, callID string) (CallState, error)

	// Exec runs one argv outside the shell. ErrStart, wrapped with the reason, where it could not
	// be started, as told apart from a program's own 126 or 127.
	Exec(ctx context.Context, e Exec) (ExecResult, error)

	// ReadFile gives at most limit bytes of a regular file as root in the sandbox sees it, links
	// followed inside the sandbox only; never of procfs or a device. Errors wrap fs.ErrNotExist,
	// fs.ErrPermission or fs.ErrInvalid.
	ReadFile(ctx context.Context, path string, limit int64) ([]byte, error)

	// Stat describes what a path leads to; Real is the path after all links.
	Stat(ctx context.Context, path string) (FileInfo, error)

	// Pull gives a file or folder as a tar stream whose names start with the base name of path.
	// What it holds was written by the agent: read it as hostile.
	Pull(ctx context.Context, path string) (io.ReadCloser, error)

	// Push unpacks a tar stream into the folder dir, which must exist.
	Push(ctx context.Context, dir string, tar io.Reader) error

	// Alive is nil, or a *DeadError that says by whose doing the sandbox died.
	Alive(ctx context.Context) error

	// Detach lets go of the session and leaves the sandbox running.
	Detach() error

	// Close removes the sandbox. Closing twice is harmless.
	Close(ctx context.Context) error
}

// Spec is what a sandbox is made from.
type Spec struct {
	Name     string // the rollout's id; becomes a label, never visible inside
	Image    string
	Workdir  string // made if it is not there; "/" by default
	User     string // "" for the image's USER
	Env      map[string]string
	Hostname string // "" for a neutral random one
	Limits   Limits
	Network  Network
	// ReadOnlyRoot lets nothing write to the image's files: only /tmp, /var/tmp, /run and /dev/shm, in memory. The
	// workdir must be one of these or be there. Push writes to none of them.
	ReadOnlyRoot bool
	Labels       map[string]string // further labels on the host's side
}

// Network is what a sandbox can reach. The zero value is none at all but loopback.
type Network struct {
	Mode string // "none" (default), "open", or "internal": a network without a way out, by Name
	Name string // the engine's network to join, for "internal"
	// Hosts are extra names for the sandbox's hosts file: name -> address.
	Hosts map[string]string
}

// Limits bound a sandbox. Zero fields take DefaultLimits.
type Limits struct {
	CPUs      float64       `json:"cpus,omitempty" yaml:"cpus,omitempty"`             // quota and cpuset, so that nproc agrees
	MemoryMB  int64         `json:"memory_mb,omitempty" yaml:"memory_mb,omitempty"`   // MiB, swap included
	Pids      int64         `json:"pids,omitempty" yaml:"pids,omitempty"`             // processes and threads
	OpenFiles int64         `json:"open_files,omitempty" yaml:"open_files,omitempty"` // per process, soft and hard
	DiskMB    int64         `json:"disk_mb,omitempty" yaml:"disk_mb,omitempty"`       // MiB, where the engine can
	Lifetime  time.Duration `json:"-" yaml:"-"`
}

// DefaultLimits are what a sandbox gets where a task says nothing (design: 1 CPU, 2 GiB, 512
// processes, 65,536 files, 10 GiB of disk where the engine can, 2 hours).
func DefaultLimits() Limits {
	return Limits{CPUs: 1, MemoryMB: 2048, Pids: 512, OpenFiles: 65536, DiskMB: 10240, Lifetime: 2 * time.Hour}
}

// WithDefaults gives l with each zero field taken from DefaultLimits.
func (l Limits) WithDefaults() Limits {
	d := DefaultLimits()
	if l.CPUs == 0 {
		l.CPUs = d.CPUs
	}
	if l.MemoryMB == 0 {
		l.MemoryMB = d.MemoryMB
	}
	if l.Pids == 0 {
		l.Pids = d.Pids
	}
	if l.OpenFiles == 0 {
		l.OpenFiles = d.OpenFiles
	}
	if l.DiskMB == 0 {
		l.DiskMB = d.DiskMB
	}
	if l.Lifetime == 0 {
		l.Lifetime = d.Lifetime
	}
	return l
}

// Image is a resolved image.
type Image struct {
	Ref    string
	Digest string // content id, "sha256:..."
	User   string
	Env    []string
	Size   int64 // bytes
}

// FileInfo is what Stat tells.
type FileInfo struct {
	Path string
	Real string // after all links
	Mode fs.FileMode
	Size int64
	UID  int
	GID  int
	Time time.Time
}

// Listed is one sandbox in a listing.
type Listed struct {
	ID      string
	Name    string // Spec.Name
	Running bool
	Created time.Time
	Labels  map[string]string
}

// Capabilities says what an engine holds on this machine; recorded with each rollout and shown by
// `proctor doctor`.
type Capabilities struct {
	Version    string `json:"version"`
	DiskQuota  bool   `json:"disk_quota"`
	DiskWatch  bool   `json:"disk_watch"` // what a sandbox writes is measured, and one that is over its limit ends
	Witness    bool   `json:"witness"`    // fanotify on the merged root can see opens
	Fork       bool   `json:"fork"`
	PTY        bool   `json:"pty"`
	UserNS     bool   `json:"userns"`
	Egress     bool   `json:"egress"`
	Seccomp    bool   `json:"seccomp"`
	CgroupV2   bool   `json:"cgroup_v2"`
	Unprovable string `json:"unprovable,omitempty"` // what this machine cannot show, in words
}
