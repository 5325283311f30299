package oci

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"proctor/sandbox/oci/images"
)

// An overlay's options show in mountinfo inside the sandbox as they were given. Relative paths tell nothing of the
// host, and are short enough that a page holds many layers. Relative to what is a property of the thread that mounts.

// overlayOptions are the options for layers, the lowest first, and a sandbox's folder, relative to the store. Renaming
// a lower layer's folder copies it (redirect_dir off): a redirect would tie the upper folder to layers that a commit of
// it may not have. A sandbox's files need not outlive the machine's power: volatile spares it all waiting for the disk.
func overlayOptions(layers []string, folder string, volatile bool) string {
	lower := []string{images.Empty}
	if len(layers) > 0 {
		lower = lower[:0]
	}
	for i := len(layers) - 1; i >= 0; i-- {
		lower = append(lower, images.LayerPath(layers[i]))
	}
	options := "lowerdir=" + strings.Join(lower, ":") + ",upperdir=" + folder + "/u,workdir=" + folder + "/w,redirect_dir=off,metacopy=off,index=off"
	if volatile {
		options += ",volatile"
	}
	return options
}

// mountOverlay mounts a sandbox's root at m in its folder.
func (e *Engine) mountOverlay(layers []string, folder string) error {
	return inFolder(e.path, func() error {
		err := unix.Mount("overlay", filepath.Join(folder, "m"), "overlay", 0, overlayOptions(layers, folder, true))
		if errors.Is(err, unix.EINVAL) { // Linux before 5.10
			err = unix.Mount("overlay", filepath.Join(folder, "m"), "overlay", 0, overlayOptions(layers, folder, false))
		}
		if err != nil {
			return fmt.Errorf("mount an overlay of %d layers at %s: %w", len(layers), e.path, err)
		}
		return nil
	})
}

// inFolder runs do on a thread of its own whose working folder is dir. The thread ends with it.
func inFolder(dir string, do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlock: the thread goes with the goroutine
		err := unix.Unshare(unix.CLONE_FS)
		if err == nil {
			err = unix.Chdir(dir)
		}
		if err == nil {
			err = do()
		}
		done <- err
	}()
	return <-done
}

// unmount takes away what is mounted at path, however often; a sandbox may still hold it for a moment.
func unmount(path string) error {
	for {
		err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		switch {
		case err == nil:
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT):
			return nil
		default:
			return fmt.Errorf("unmount %s: %w", path, err)
		}
	}
}
