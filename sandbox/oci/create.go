package oci

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"proctor/sandbox"
	"proctor/sandbox/box/link"
	"proctor/sandbox/confine"
	"proctor/sandbox/oci/tree"
)

// Limits of one start's steps; the caller's context may be shorter.
const (
	startLimit   = 2 * time.Minute  // the runtime's run; a tenth of a second on an idle machine
	readyLimit   = 30 * time.Second // from a started sandbox to an answering agent
	cleanupLimit = 60 * time.Second // removing what a failed create made
)

// Create starts a sandbox that is ready for calls. What a failed or cancelled one made is removed before it returns.
func (e *Engine) Create(ctx context.Context, spec sandbox.Spec) (_ sandbox.Session, err error) {
	if err := checkSpec(&spec); err != nil {
		return nil, fmt.Errorf("oci: create %s: %w", spec.Name, err)
	}
	store, rt, err := e.open()
	if err != nil {
		return nil, err
	}
	// Until its layers are written down as in use, nobody may remove them.
	release, err := store.Hold(ctx)
	if err != nil {
		return nil, err
	}
	held := true
	defer func() {
		if held {
			release()
		}
	}()
	image, err := store.Resolve(ctx, spec.Image, e.sources())
	if err != nil {
		return nil, fmt.Errorf("oci: image %s: %w", spec.Image, err)
	}
	if err := e.starts.Enter(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
	defer func() { e.starts.Leave(time.Since(began), err == nil || !overloaded(err)) }()

	id := confine.RandomHex(idLength / 2)
	defer func() {
		if err != nil {
			undo, cancel := detached(ctx, cleanupLimit)
			defer cancel()
			err = errors.Join(err, e.destroy(undo, id))
		}
	}()
	made := state{ID: id, Owner: e.opts.Owner, Name: spec.Name, Labels: spec.Labels, Created: time.Now().UTC(), Image: image,
		Memory: spec.Limits.MemoryMB << 20, Disk: spec.Limits.DiskMB << 20, Runtime: rt.name, Program: rt.path, Boot: bootID()}
	if err := e.prepare(&made); err != nil {
		return nil, err
	}
	release()
	held = false
	return e.start(ctx, rt, spec, made)
}

// overloaded reports whether err is a reason to start fewer at once.
func overloaded(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, sandbox.ErrUnavailable)
}

// prepare makes the sandbox's folder and writes down what is about to be made: first of all, so that a crash at any
// later moment leaves nothing that is not found again.
func (e *Engine) prepare(s *state) error {
	folder := e.folder(s.ID)
	if err := os.MkdirAll(folder, 0o711); err != nil {
		return fmt.Errorf("%w: oci: %w", sandbox.ErrUnavailable, err)
	}
	s.Folder = e.root.Reserve()
	return e.save(*s)
}

// start makes the overlay, the run folder and the bundle, has the runtime run it, and waits until its agent answers.
func (e *Engine) start(ctx context.Context, rt *ociRuntime, spec sandbox.Spec, s state) (sandbox.Session, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := e.root.Make(s.Folder, e.opts.UserNS); err != nil {
		return nil, fmt.Errorf("%w: oci: %w", sandbox.ErrUnavailable, err)
	}
	binary, err := e.installBox() // the folder keeps the root there
	if err != nil {
		return nil, err
	}
	if err := e.mount(s); err != nil {
		return nil, err
	}
	if err := e.write(spec, s, binary); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	// A runtime that is killed half way leaves pieces that nobody knows of: it is let finish.
	patient, cancel := detached(ctx, startLimit)
	defer cancel()
	if s.PID, err = rt.run(patient, e.runtimeRoot(), e.folder(s.ID), s.ID); err != nil {
		return nil, fmt.Errorf("oci: start a sandbox of %s: %w", spec.Image, err)
	}
	if s.Listener, err = rt.listener(e.runtimeRoot(), s.ID, s.PID); err != nil {
		return nil, fmt.Errorf("%w: oci: %w", sandbox.ErrUnavailable, err)
	}
	s.Start, _ = startOf(s.PID) // gone already: it will be found dead
	s.Ready = true
	if err := errors.Join(e.save(s), ctx.Err()); err != nil {
		return nil, err
	}
	session := e.newSession(s)
	ready, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	if err := session.Connect(ready, s.Listener, link.Init(spec, s.Image.Image(spec.Image))); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, session.NotReady(ctx, err)
	}
	e.watchDisk(s)
	return session, nil
}

// runtimeRoot is where the runtime keeps its own state.
func (e *Engine) runtimeRoot() string { return filepath.Join(e.root.Path(), "rt") }

// mount makes the sandbox's root.
func (e *Engine) mount(s state) error {
	folder := e.folder(s.ID)
	// What a mount before the machine was started anew left in the work folder keeps another from being made.
	if err := tree.Remove(filepath.Join(folder, "w")); err != nil {
		return fmt.Errorf("%w: oci: %w", sandbox.ErrUnavailable, err)
	}
	for _, sub := range []string{"u", "w", "m"} {
		if err := os.Mkdir(filepath.Join(folder, sub), 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("%w: oci: %w", sandbox.ErrUnavailable, err)
		}
	}
	if err := os.Chown(filepath.Join(folder, "u"), e.opts.UserNS, e.opts.UserNS); err != nil {
		return fmt.Errorf("%w: oci: %w", sandbox.ErrUnavailable, err)
	}
	if err := e.mountOverlay(s.Image.Layers, filepath.Join(e.boxes, s.ID)); err != nil {
		return fmt.Errorf("%w: oci: %w; the store must lie on a file system such as ext4 or xfs", sandbox.ErrUnavailable, err)
	}
	return nil
}

// write writes the bundle and what each sandbox has its own of in /etc.
func (e *Engine) write(spec sandbox.Spec, s state, binary string) error {
	hostname := cmp.Or(spec.Hostname, confine.RandomHex(6))
	nano, set := e.cpus.Pick(spec.Limits.CPUs)
	p := plan{id: s.ID, spec: spec, limits: spec.Limits, hostname: hostname, binary: binary, folder: s.Folder, cgroup: e.cgroupName(s.ID),
		quota: quotaOf(nano), cpus: set, files: min(spec.Limits.OpenFiles, maxOpenFiles())}
	if err := e.showLimits(&p, s.Runtime); err != nil {
		return fmt.Errorf("%w: oci: %w", sandbox.ErrUnavailable, err)
	}
	if s.Runtime == "runsc" && !spec.ReadOnlyRoot {
		p.tmp = plainFolder(filepath.Join(e.folder(s.ID), "m", "tmp"))
	}
	text, err := json.Marshal(e.bundle(p, machineFeatures()))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(e.folder(s.ID), "config.json"), text, 0o600); err != nil {
		return fmt.Errorf("%w: oci: %w", sandbox.ErrUnavailable, err)
	}
	hosts, err := confine.ExtraHosts(spec.Network.Hosts)
	if err != nil {
		return fmt.Errorf("oci: create %s: %w", spec.Name, err)
	}
	root, err := tree.Open(filepath.Join(e.folder(s.ID), "m"))
	if err != nil {
		return err
	}
	defer root.Close()
	for _, f := range []struct{ name, text string }{
		{"/etc/hosts", confine.HostsFile(hosts)}, {"/etc/hostname", hostname + "\n"}, {"/etc/resolv.conf", confine.ResolvFile},
	} {
		// An image without /etc, or with one that is no folder, does without.
		if err := root.WriteFile(f.name, []byte(f.text), 0o644, e.opts.UserNS); err != nil && !tree.NotFound(err) {
			return fmt.Errorf("oci: write %s of %s: %w", f.name, spec.Image, err)
		}
	}
	return nil
}

// plainFolder gives path where it is a folder and no link to one. runsc mounts a tmpfs of its own over an empty /tmp,
// which the host could not see into, unless something is mounted there already.
func plainFolder(path string) string {
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		return path
	}
	return ""
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
		return "", fmt.Errorf("%w: oci: install the box agent: %v", sandbox.ErrUnavailable, err)
	}
	return e.boxHost, nil
}

// checkSpec fills in defaults and refuses what the engine cannot hold.
func checkSpec(spec *sandbox.Spec) (err error) {
	spec.Limits = spec.Limits.WithDefaults()
	if spec.Workdir, err = confine.CheckWorkdir(spec.Workdir); err != nil {
		return err
	}
	if err := confine.CheckLimits(spec.Limits); err != nil {
		return err
	}
	if _, err := confine.ExtraHosts(spec.Network.Hosts); err != nil {
		return err
	}
	switch mode := spec.Network.Mode; mode {
	case "", "none":
		return nil
	case "open", "internal":
		return fmt.Errorf("%w: network mode %q: the oci engine gives sandboxes loopback only; let the task reach hosts by an allowlist, or use the docker engine", sandbox.ErrUnavailable, mode)
	default:
		return fmt.Errorf("network mode %q: none is needed", mode)
	}
}

// layersInUse gives the layers that sandboxes of all owners have mounted; for images.Store.GC.
func (e *Engine) layersInUse() (map[string]bool, error) {
	files, err := filepath.Glob(filepath.Join(e.path, "b", "*", "*", "state.json"))
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		var s state
		if err = errors.Join(err, json.Unmarshal(text, &s)); err != nil {
			return nil, fmt.Errorf("oci: %s: %w", file, err)
		}
		for _, id := range s.Image.Layers {
			used[id] = true
		}
	}
	return used, nil
}
