package confine

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"proctor/sandbox"
)

// neutralWords are what the agent's copy says instead of our words. A Go program holds the names of its
// packages and functions, root inside can read the agent's file, and a policy that knows what watches it
// behaves for the watcher. The names are for stack traces only, so other letters of the same length do
// as well; the build's own paths and revision go too where it was made with -trimpath.
var neutralWords = [][2]string{
	{"proctor", "dockerd"},
	{"sandbox", "process"},
	{"Sandbox", "Process"},
	{"/boxd", "/init"},
}

// neutral gives the agent's program without our words.
func neutral(program []byte) []byte {
	for _, pair := range neutralWords {
		program = bytes.ReplaceAll(program, []byte(pair[0]), []byte(pair[1]))
	}
	return program
}

// Install puts a neutral copy of the agent under the root, in a folder named by its content, and gives the
// copy's path. Running sandboxes keep the copy that they were started with.
func (r *RunRoot) Install(binary string) (string, error) {
	if err := r.Open(); err != nil {
		return "", err
	}
	program, err := os.ReadFile(binary)
	if err != nil {
		return "", err
	}
	program = neutral(program)
	sum := sha256.Sum256(program)
	folder := filepath.Join(r.path, hex.EncodeToString(sum[:4])) // 8 letters: no run folder
	target := filepath.Join(folder, "docker-init")
	if _, err := os.Stat(target); err == nil {
		return target, nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	part, err := os.CreateTemp(folder, "part")
	if err != nil {
		return "", err
	}
	_, err = part.Write(program)
	if err = errors.Join(err, part.Chmod(0o555), part.Close()); err == nil {
		err = os.Rename(part.Name(), target)
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(part.Name()))
	}
	return target, nil
}

// FindBox gives the path of the box agent: the one asked for, or boxd beside the running program.
// sandbox.ErrUnavailable, with the remedy, where there is none.
func FindBox(path string) (string, error) {
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			return "", fmt.Errorf("%w: %v", sandbox.ErrUnavailable, err)
		}
		path = filepath.Join(filepath.Dir(self), "boxd")
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return "", fmt.Errorf("%w: no box agent at %s; build it with `make build`", sandbox.ErrUnavailable, path)
	}
	return path, nil
}
