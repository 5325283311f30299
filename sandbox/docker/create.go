package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"proctor/sandbox"
	"proctor/sandbox/box"
	"proctor/sandbox/box/link"
	"proctor/sandbox/confine"
)

// Limits of one start's steps; the caller's context may be shorter.
const (
	startLimit   = 2 * time.Minute  // making and starting the container; seconds even in a storm of starts
	readyLimit   = 30 * time.Second // from a started container to an answering agent
	cleanupLimit = 60 * time.Second // removing what a failed create made
)

// Create starts a sandbox that is ready for calls. What a failed or cancelled one made is removed before it
// returns.
func (e *Engine) Create(ctx context.Context, spec sandbox.Spec) (_ sandbox.Session, err error) {
	if err := checkSpec(&spec); err != nil {
		return nil, fmt.Errorf("docker: create %s: %w", spec.Name, err)
	}
	if err := e.checkNetwork(ctx, spec.Network); err != nil {
		return nil, err
	}
	image, err := e.Image(ctx, spec.Image)
	if err != nil {
		return nil, err
	}
	if err := e.starts.Enter(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
	defer func() { e.starts.Leave(time.Since(began), err == nil || !overloaded(err)) }()

	build := &building{engine: e, name: confine.RandomHex(6)}
	defer func() {
		if err != nil {
			err = errors.Join(err, build.undo(ctx))
		}
	}()
	return build.run(ctx, spec, image)
}

// overloaded reports whether err is a reason to start fewer at once.
func overloaded(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, sandbox.ErrUnavailable)
}

// building is a create under way: what undo has to take back. Not safe for concurrent use.
type building struct {
	engine *Engine
	name   string // of the container: by it an answer that got lost is found again
	folder string
	asked  bool // the daemon was asked for the container
}

// run makes folder and container, starts it, and waits until its agent answers.
func (b *building) run(ctx context.Context, spec sandbox.Spec, image sandbox.Image) (*session, error) {
	e := b.engine
	var err error
	if b.folder, err = e.root.NewFolder(); err != nil {
		return nil, fmt.Errorf("%w: docker: %v", sandbox.ErrUnavailable, err)
	}
	binary, err := e.installBox() // the folder keeps the root there
	if err != nil {
		return nil, err
	}
	id, err := b.start(ctx, spec, image, binary)
	if err != nil {
		return nil, err
	}
	state, err := e.cli.ContainerInspect(ctx, id)
	if err != nil {
		return nil, e.wrap("look at a new container", err)
	}
	s := e.newSession(id, b.folder)
	ready, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	if err := s.Connect(ready, state.State.Pid, e.init(spec, image)); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, s.NotReady(ctx, err)
	}
	e.watchDisk(s, state)
	return s, nil
}

// init is what the agent of a new sandbox is told.
func (e *Engine) init(spec sandbox.Spec, image sandbox.Image) box.Init {
	init := link.Init(spec, image)
	if e.ownNetwork(spec) {
		hosts, _ := confine.ExtraHosts(spec.Network.Hosts) // hostConfig has refused bad ones
		init.Hosts, init.Resolv = confine.HostsFile(hosts), confine.ResolvFile
	}
	return init
}

// start makes and starts the container. The daemon goes on with a request whose caller has left, and a
// container that it makes later would stay: so neither request is cut short, and ctx is looked at in between.
func (b *building) start(ctx context.Context, spec sandbox.Spec, image sandbox.Image, binary string) (string, error) {
	patient, cancel := detached(ctx, startLimit)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return "", err
	}
	id, err := b.container(patient, spec, image, binary)
	if err = errors.Join(err, ctx.Err()); err != nil {
		return "", err
	}
	if err := b.engine.cli.ContainerStart(patient, id, container.StartOptions{}); err != nil {
		return "", b.engine.wrap("start a container of "+spec.Image, err)
	}
	return id, ctx.Err()
}

// container asks the daemon for the container; once more without a disk size where the storage driver
// turns out to have no quota.
func (b *building) container(ctx context.Context, spec sandbox.Spec, image sandbox.Image, binary string) (string, error) {
	e := b.engine
	quota, err := e.wantsQuota(ctx)
	if err != nil {
		return "", err
	}
	config := e.containerConfig(spec, image)
	host, err := e.hostConfig(spec, spec.Limits.WithDefaults(), binary, b.folder, quota)
	if err != nil {
		return "", fmt.Errorf("docker: create %s: %w", spec.Name, err)
	}
	if err := e.showLimits(host); err != nil {
		return "", fmt.Errorf("%w: docker: %v", sandbox.ErrUnavailable, err)
	}
	b.asked = true
	made, err := e.cli.ContainerCreate(ctx, config, host, nil, nil, b.name)
	if quota && err != nil && strings.Contains(err.Error(), "storage-opt") {
		e.refuseQuota()
		host.StorageOpt = nil
		made, err = e.cli.ContainerCreate(ctx, config, host, nil, nil, b.name)
	}
	switch {
	case errdefs.IsNotFound(err):
		return "", fmt.Errorf("%w: %s: %v", sandbox.ErrNoImage, spec.Image, err)
	case err != nil:
		return "", e.wrap("create a container of "+spec.Image, err)
	}
	return made.ID, nil
}

// undo takes back what run made, whether or not the daemon's answer arrived.
func (b *building) undo(ctx context.Context) error {
	ctx, cancel := detached(ctx, cleanupLimit)
	defer cancel()
	var errs []error
	if b.asked {
		errs = append(errs, b.engine.removeContainer(ctx, b.name))
	}
	if b.folder != "" {
		errs = append(errs, b.engine.root.Drop(b.folder))
	}
	return errors.Join(errs...)
}

// removeContainer kills and removes a container; one that is not there is fine.
func (e *Engine) removeContainer(ctx context.Context, id string) error {
	for {
		err := e.cli.ContainerRemove(ctx, id, container.RemoveOptions{Force: true, RemoveVolumes: true})
		switch {
		case err == nil, errdefs.IsNotFound(err):
			return nil
		case strings.Contains(err.Error(), "already in progress"):
			// Another caller removes it: wait until it is gone.
		default:
			return e.wrap("remove container "+id, err)
		}
		select {
		case <-ctx.Done():
			return e.wrap("remove container "+id, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// wantsQuota reports whether to ask for a disk size. The daemon is asked once about its storage driver.
func (e *Engine) wantsQuota(ctx context.Context) (bool, error) {
	e.mu.Lock()
	known, quota := e.quotaKnown, e.quota
	e.mu.Unlock()
	if known {
		return quota, nil
	}
	caps, err := e.Capabilities(ctx)
	return caps.DiskQuota, err
}

// refuseQuota notes that the storage driver has no quota.
func (e *Engine) refuseQuota() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.quotaKnown, e.quota = true, false
	e.log.Warn("the storage driver has no disk quota: sandboxes' disks are bounded file by file only")
}

// installBox puts the agent's copy under the run root and gives its path.
func (e *Engine) installBox() (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.boxHost != "" {
		if _, err := os.Stat(e.boxHost); err == nil {
			return e.boxHost, nil
		}
	}
	path, err := confine.FindBox(e.opts.BoxPath)
	if err != nil {
		return "", err
	}
	if e.boxHost, err = e.root.Install(path); err != nil {
		return "", fmt.Errorf("%w: docker: install the box agent: %v", sandbox.ErrUnavailable, err)
	}
	return e.boxHost, nil
}
