package oci

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/client"

	"proctor/sandbox"
	"proctor/sandbox/confine"
	"proctor/sandbox/diskwatch"
	"proctor/sandbox/oci/images"
)

// DefaultStore is where images and sandboxes lie unless Options say otherwise: one store for all data folders of the
// machine, since unpacked images are large.
const DefaultStore = "/var/lib/initd"

// Options make an Engine. Only Owner is required.
type Options struct {
	// Owner is whose sandboxes these are: the data folder's id. The engine lists, attaches and removes only those.
	Owner string
	// BoxPath is the static box agent on the host; "" looks for boxd beside the running program.
	BoxPath string
	// Runtime is the OCI runtime: a name or a path; "" takes the first of runc, crun and runsc that is there.
	Runtime string
	// Store is the folder for images and sandboxes; "" for DefaultStore. It must lie on a file system that can hold
	// an overlay's upper folder: ext4, xfs and btrfs can, another overlay cannot.
	Store string
	// RunRoot is the folder for run folders and the agent's copy; "" chooses a neutral one by Owner.
	RunRoot string
	// Docker is the address of a daemon to take images from; "" for DOCKER_HOST or the default socket, "off" for none.
	Docker string
	// NoPull keeps Image from asking a registry.
	NoPull bool
	// UserNS maps a sandbox's users to ids of the host from this one up, 65,536 of them; 0 for no user namespace. The
	// layers of images are then kept once more, with their owners shifted.
	UserNS int
	// HidePID hides the agent from commands in /proc (hidepid=2), and with it every process of another user from
	// root's commands, which ps and pkill in honest hands miss.
	HidePID bool
	// MaxStarts bounds how many sandboxes start at once; 0 means twice the processors, at least 4.
	MaxStarts int
	// Log takes what is worth a line; nil discards.
	Log *slog.Logger
}

// Engine makes sandboxes with an OCI runtime. Safe for concurrent use. It keeps no record but the files of its store.
type Engine struct {
	opts   Options
	log    *slog.Logger
	root   *confine.RunRoot
	path   string // of the store, absolute
	boxes  string // the owner's folder, relative to path
	mark   string // the owner's, in names of cgroups
	starts *confine.StartGate
	cpus   *confine.CPUPicker
	disks  *diskwatch.Watcher
	cli    *client.Client // nil for no daemon

	mu      sync.Mutex
	runtime *ociRuntime // nil until looked for
	store   *images.Store
	boxHost string         // the agent's copy under the run root, once made
	still   map[string]int // sandboxes that a commit has stand still, by id; how many do

	condemning sync.Mutex // one at a time reads and rewrites a state
}

var _ sandbox.Engine = (*Engine)(nil)

// New gives an engine. It looks for nothing yet: Capabilities says whether it can run here.
func New(opts Options) (*Engine, error) {
	if opts.Owner == "" || strings.ContainsAny(opts.Owner, "\x00\n") {
		return nil, errors.New("oci engine: Owner must be one line of text and not empty")
	}
	if opts.UserNS != 0 && (opts.UserNS < 1<<16 || opts.UserNS > 1<<31-1<<17) {
		return nil, fmt.Errorf("oci engine: UserNS %d: host ids from 65536 up, with room for 65536 of them", opts.UserNS)
	}
	path, err := filepath.Abs(cmp.Or(opts.Store, DefaultStore))
	if err != nil {
		return nil, fmt.Errorf("oci engine: %w", err)
	}
	if opts.UserNS != 0 {
		path = filepath.Join(path, fmt.Sprintf("u%d", opts.UserNS))
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.MaxStarts == 0 {
		opts.MaxStarts = max(4, 2*runtime.NumCPU())
	}
	e := &Engine{
		opts: opts, log: opts.Log.With("engine", "oci"), path: path,
		root:   confine.NewRunRoot(opts.RunRoot, opts.Owner+"\x00oci"), // not the docker engine's of the same owner
		mark:   ownerMark(opts.Owner),
		still:  map[string]int{},
		starts: confine.NewStartGate(opts.MaxStarts),
		cpus:   confine.NewCPUPicker(),
		disks:  diskwatch.New(opts.Log),
	}
	e.boxes = filepath.Join("b", e.mark)
	if opts.Docker != "off" {
		if e.cli, err = dockerClient(opts.Docker); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// ownerMark is short, and tells nothing.
func ownerMark(owner string) string {
	sum := sha256.Sum256([]byte(owner))
	return hex.EncodeToString(sum[:6])
}

// dockerClient gives a client of the daemon to take images from.
func dockerClient(host string) (*client.Client, error) {
	set := []client.Opt{client.FromEnv, client.WithAPIVersionNegotiation()}
	if host != "" {
		set = append(set, client.WithHost(host))
	}
	cli, err := client.NewClientWithOpts(set...)
	if err != nil {
		return nil, fmt.Errorf("oci engine: %w", err)
	}
	return cli, nil
}

// Name is "oci".
func (e *Engine) Name() string { return "oci" }

// Close lets go of the engine's own resources; sandboxes live on. A run root that holds no sandbox goes.
func (e *Engine) Close() error {
	e.disks.Close()
	e.root.DropIfEmpty()
	_ = os.Remove(filepath.Join(e.path, e.boxes)) // where it is empty
	if e.cli != nil {
		return e.cli.Close()
	}
	return nil
}

// open makes sure that the store and the runtime are there.
func (e *Engine) open() (*images.Store, *ociRuntime, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if os.Geteuid() != 0 {
		return nil, nil, fmt.Errorf("%w: oci: mounting overlays and making cgroups needs root: run the server as root, or use the docker engine", sandbox.ErrUnavailable)
	}
	if e.runtime == nil {
		found, err := findRuntime(e.opts.Runtime)
		if err != nil {
			return nil, nil, err
		}
		e.runtime = found
	}
	if e.store == nil {
		store, err := images.Open(e.path, e.opts.UserNS)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: oci: %w; choose another folder for the store", sandbox.ErrUnavailable, err)
		}
		e.store = store
	}
	return e.store, e.runtime, nil
}

// sources are where images are looked for.
func (e *Engine) sources() images.Sources {
	from := images.Sources{NoRegistry: e.opts.NoPull}
	if e.cli != nil {
		from.Daemon = images.DockerDaemon(e.cli)
	}
	return from
}

// Image resolves ref, unpacking the image where the store has not got it yet; see images.Store.Resolve.
func (e *Engine) Image(ctx context.Context, ref string) (sandbox.Image, error) {
	store, _, err := e.open()
	if err != nil {
		return sandbox.Image{}, err
	}
	release, err := store.Hold(ctx)
	if err != nil {
		return sandbox.Image{}, err
	}
	defer release()
	r, err := store.Resolve(ctx, ref, e.sources())
	if err != nil {
		return sandbox.Image{}, fmt.Errorf("oci: image %s: %w", ref, err)
	}
	return r.Image(ref), nil
}

// detached gives a context for cleaning up that outlives ctx's cancellation.
func detached(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}
