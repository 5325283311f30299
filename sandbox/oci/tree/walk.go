package tree

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// walkDepth bounds how deep folders are read: each level holds a descriptor, and whoever writes to the tree may nest
// them a million deep.
const walkDepth = 256

// ErrDeep says that folders are nested too deep to be read.
var ErrDeep = fmt.Errorf("folders nested deeper than %d", walkDepth)

// visitor is told of each file and folder, a folder before what is in it. fd is an O_PATH descriptor that follows no
// link, good until it returns; rel is the path below the top, "" for the top itself; dir is its folder.
type visitor func(rel string, fd int, st *unix.Stat_t) error

// walk visits the tree at an O_PATH descriptor. What goes away meanwhile is left out.
func walk(fd int, rel string, depth int, visit visitor) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if err := visit(rel, fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return err
	}
	if depth >= walkDepth {
		return fmt.Errorf("%.300s: %w", rel, ErrDeep)
	}
	listing, err := reopen(fd, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	dir := os.NewFile(uintptr(listing), rel)
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(512)
		for _, name := range names {
			if err := step(listing, rel, name, depth, visit); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// step visits one name of a folder.
func step(dir int, rel, name string, depth int, visit visitor) error {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%.300s/%s: %w", rel, name, err)
	}
	defer unix.Close(fd)
	if rel != "" {
		name = rel + "/" + name
	}
	return walk(fd, name, depth+1, visit)
}

// linkText reads what an O_PATH descriptor of a symbolic link leads to.
func linkText(fd int) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", buf)
	return string(buf[:max(n, 0)]), err
}

// inode tells files apart.
type inode struct{ dev, ino uint64 }
