package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/docker/docker/client"
	"golang.org/x/sys/unix"
)

// runcRun runs `runc run` of `true` on an overlay of the image's layers that is mounted once, before anything
// is timed: what a runtime costs by itself, without a daemon and without making a root.
func (b *startBench) runcRun(ctx context.Context) (_ starter, err error) {
	runc, err := exec.LookPath("runc")
	if err != nil {
		return starter{}, err
	}
	lower, err := dockerLayers(ctx, b.image)
	if err != nil {
		return starter{}, err
	}
	// The overlay's upper folder must lie on a file system of a disk's: /tmp may be an overlay itself.
	folder, err := os.MkdirTemp("/var/lib", "proctor-bench")
	if err != nil {
		return starter{}, err
	}
	rootfs := filepath.Join(folder, "rootfs")
	finish := func() error {
		unmounted := unix.Unmount(rootfs, unix.MNT_DETACH)
		if errors.Is(unmounted, unix.EINVAL) || errors.Is(unmounted, unix.ENOENT) { // never mounted
			unmounted = nil
		}
		return errors.Join(unmounted, os.RemoveAll(folder))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, finish())
		}
	}()
	for _, name := range []string{"rootfs", "upper", "work"} {
		if err := os.Mkdir(filepath.Join(folder, name), 0o755); err != nil {
			return starter{}, err
		}
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", lower, filepath.Join(folder, "upper"), filepath.Join(folder, "work"))
	if err := unix.Mount("overlay", rootfs, "overlay", 0, options); err != nil {
		return starter{}, fmt.Errorf("mount the image's layers: %w", err)
	}
	if err := runcBundle(ctx, runc, folder); err != nil {
		return starter{}, err
	}
	id := 0
	return starter{name: "runc_run", finish: finish, run: func(ctx context.Context) (lap, error) {
		id++
		took, err := ranFor(exec.CommandContext(ctx, runc, "--root", filepath.Join(folder, "state"), "run", "--bundle", folder, fmt.Sprintf("bench-%d-%d", os.Getpid(), id)))
		return lap{start: took}, err
	}}, nil
}

// dockerLayers gives the layers of a daemon's image as overlay's lowerdir takes them.
func dockerLayers(ctx context.Context, image string) (string, error) {
	cli, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		return "", err
	}
	defer cli.Close()
	got, err := cli.ImageInspect(ctx, image)
	if err != nil {
		return "", err
	}
	upper := got.GraphDriver.Data["UpperDir"]
	if got.GraphDriver.Name != "overlay2" || upper == "" {
		return "", fmt.Errorf("the daemon keeps images by %s, not overlay2: their layers cannot be mounted here", got.GraphDriver.Name)
	}
	if lower := got.GraphDriver.Data["LowerDir"]; lower != "" {
		return upper + ":" + lower, nil
	}
	return upper, nil
}

// runcBundle writes what `runc spec` gives, running true without a terminal.
func runcBundle(ctx context.Context, runc, folder string) error {
	if out, err := exec.CommandContext(ctx, runc, "spec", "--bundle", folder).CombinedOutput(); err != nil {
		return fmt.Errorf("runc spec: %w: %.300s", err, out)
	}
	path := filepath.Join(folder, "config.json")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var spec map[string]any
	if err := json.Unmarshal(text, &spec); err != nil {
		return fmt.Errorf("runc spec: %w", err)
	}
	process, ok := spec["process"].(map[string]any)
	if !ok {
		return errors.New("runc spec: it holds no process")
	}
	process["terminal"], process["args"] = false, []string{"true"}
	spec["root"] = map[string]any{"path": "rootfs"}
	if text, err = json.Marshal(spec); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}
