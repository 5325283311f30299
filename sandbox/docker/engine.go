package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/client"

	"proctor/sandbox"
	"proctor/sandbox/box/link"
	"proctor/sandbox/confine"
	"proctor/sandbox/diskwatch"
)

// Options make an Engine. Only Owner is required.
type Options struct {
	// Owner is whose sandboxes these are: the data folder's id. The engine lists, attaches and
	// removes only containers that carry it.
	Owner string
	// BoxPath is the static box agent on the host; "" looks for boxd beside the running program.
	BoxPath string
	// Host is the daemon's address, unix:///...; "" takes DOCKER_HOST or the default socket.
	Host string
	// RunRoot is the folder for run folders and the agent's copy; "" chooses a neutral one by Owner.
	RunRoot string
	// Runtime is the daemon's OCI runtime by name, such as "runsc"; "" for its default.
	Runtime string
	// NoPull keeps Image from asking a registry.
	NoPull bool
	// MaxStarts bounds how many containers start at once; 0 means twice the processors, at least 4.
	// The engine goes below it by itself while the daemon is slow.
	MaxStarts int
	// Log takes what is worth a line; nil discards.
	Log *slog.Logger
}

// Engine makes sandboxes of Docker containers. Safe for concurrent use. It keeps no record of its
// sandboxes: what exists is what the daemon says exists, so an engine made after a crash sees the same.
type Engine struct {
	opts   Options
	cli    *client.Client
	log    *slog.Logger
	root   *confine.RunRoot
	dial   link.Dial // nil for the agent's own protocol
	starts *confine.StartGate
	cpus   *confine.CPUPicker
	disks  *diskwatch.Watcher

	mu         sync.Mutex
	quotaKnown bool // the daemon was asked about its storage driver
	quota      bool
	boxHost    string // the agent's copy under the run root, once made
}

var _ sandbox.Engine = (*Engine)(nil)

// New gives an engine. It does not speak to the daemon yet: Capabilities says whether one answers.
func New(opts Options) (*Engine, error) {
	if opts.Owner == "" || strings.ContainsAny(opts.Owner, "\x00\n") {
		return nil, errors.New("docker engine: Owner must be one line of text and not empty")
	}
	set := []client.Opt{client.FromEnv, client.WithAPIVersionNegotiation()}
	if opts.Host != "" {
		set = append(set, client.WithHost(opts.Host))
	}
	cli, err := client.NewClientWithOpts(set...)
	if err != nil {
		return nil, fmt.Errorf("docker engine: %w", err)
	}
	if host := cli.DaemonHost(); !strings.HasPrefix(host, "unix://") {
		return nil, fmt.Errorf("%w: the daemon at %s is not on this machine; set DOCKER_HOST to a unix:// address",
			sandbox.ErrUnavailable, host)
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.MaxStarts == 0 {
		opts.MaxStarts = max(4, 2*runtime.NumCPU())
	}
	return &Engine{
		opts:   opts,
		cli:    cli,
		log:    opts.Log.With("engine", "docker"),
		root:   confine.NewRunRoot(opts.RunRoot, opts.Owner),
		starts: confine.NewStartGate(opts.MaxStarts),
		cpus:   confine.NewCPUPicker(),
		disks:  diskwatch.New(opts.Log),
	}, nil
}

// Name is "docker".
func (e *Engine) Name() string { return "docker" }

// Capabilities asks the daemon what it holds.
func (e *Engine) Capabilities(ctx context.Context) (sandbox.Capabilities, error) {
	info, err := e.cli.Info(ctx)
	if err != nil {
		return sandbox.Capabilities{}, e.wrap("ask the daemon", err)
	}
	quota := e.diskQuota(info)
	caps := sandbox.Capabilities{
		Version:   info.ServerVersion,
		DiskQuota: quota,
		Witness:   e.opts.Runtime == "" && hasOption(info, "name=rootless") == "" && confine.CanWatch(),
		Fork:      true,
		PTY:       true,
		Egress:    true,
		DiskWatch: info.Driver == "overlay2" || info.Driver == "overlay",
		UserNS:    hasOption(info, "name=userns") != "",
		Seccomp:   hasOption(info, "name=seccomp") != "",
		CgroupV2:  info.CgroupVersion == "2",
	}
	caps.Unprovable = lacks(info, quota, maxOpenFiles())
	return caps, nil
}

// lacks says in words what this machine does not hold, or "".
func lacks(info system.Info, quota bool, files int64) string {
	var words []string
	if !quota {
		words = append(words, "no disk quota on "+storage(info)+", what sandboxes write is measured instead")
	}
	if files < sandbox.DefaultLimits().OpenFiles {
		words = append(words, fmt.Sprintf("open files at most %d, the daemon may not raise its own limit", files))
	}
	return strings.Join(words, "; ")
}

// Close lets go of the connection; sandboxes live on. A run root that holds no sandbox goes.
func (e *Engine) Close() error {
	e.disks.Close()
	e.root.DropIfEmpty()
	return e.cli.Close()
}

// diskQuota reports whether a size for a container's own layer can be asked for. Overlay2 can on xfs
// mounted with pquota only, which the daemon does not tell: the first refusal settles it.
func (e *Engine) diskQuota(info system.Info) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.quotaKnown {
		e.quotaKnown = true
		switch info.Driver {
		case "btrfs", "zfs":
			e.quota = true
		case "overlay2":
			e.quota = strings.Contains(storage(info), "xfs")
		}
	}
	return e.quota
}

// storage names the storage driver and what it lies on.
func storage(info system.Info) string {
	for _, pair := range info.DriverStatus {
		if pair[0] == "Backing Filesystem" {
			return info.Driver + " on " + pair[1]
		}
	}
	return info.Driver
}

// hasOption gives the daemon's security option that starts with prefix, or "".
func hasOption(info system.Info, prefix string) string {
	for _, option := range info.SecurityOptions {
		if strings.HasPrefix(option, prefix) {
			return option
		}
	}
	return ""
}

// wrap turns what the client says into the errors of package sandbox.
func (e *Engine) wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("docker: %s: %w", doing, err)
	}
	if client.IsErrConnectionFailed(err) || errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: docker: %s: %v; start the daemon (make docker)", sandbox.ErrUnavailable, doing, err)
	}
	return fmt.Errorf("docker: %s: %w", doing, err)
}

// detached gives a context for cleaning up that outlives ctx's cancellation.
func detached(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}
