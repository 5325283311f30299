package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"proctor/sandbox"
)

// ociRuntime is a runtime's program.
type ociRuntime struct {
	path    string
	name    string // "runc", "crun", "runsc"
	version string
}

// runtimes are looked for in this order where none is named.
var runtimes = []string{"runc", "crun", "runsc"}

// findRuntime looks for the runtime by name or path; any that is there for "".
func findRuntime(name string) (*ociRuntime, error) {
	names := runtimes
	if name != "" {
		names = []string{name}
	}
	for _, candidate := range names {
		path, err := lookRuntime(candidate)
		if err != nil {
			continue
		}
		text, err := exec.Command(path, "--version").Output()
		if err != nil {
			return nil, fmt.Errorf("%w: oci: %s --version: %w: reinstall it", sandbox.ErrUnavailable, path, err)
		}
		first, _, _ := strings.Cut(string(text), "\n")
		return &ociRuntime{path: path, name: filepath.Base(path), version: strings.TrimSpace(first)}, nil
	}
	return nil, fmt.Errorf("%w: oci: no OCI runtime (%s) is installed: install the package runc", sandbox.ErrUnavailable, strings.Join(names, ", "))
}

// lookRuntime finds a program, in the system's folders as well, which PATH of an ordinary user leaves out.
func lookRuntime(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return filepath.Abs(path)
	}
	if strings.Contains(name, "/") {
		return "", exec.ErrNotFound
	}
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin", "/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", exec.ErrNotFound
}

// ownKernel reports whether sandboxes see another kernel than this machine's, as under gVisor: the host then has no
// process to look at, and no file is opened that it could see.
func (r *ociRuntime) ownKernel() bool { return r.name == "runsc" }

// command gives a command of the runtime's, with its state below root.
func (r *ociRuntime) command(ctx context.Context, root, log string, args ...string) *exec.Cmd {
	flags := []string{"--root", root, "--log", log, "--log-format", "json"}
	if r.ownKernel() {
		// The agent's socket is one that the host connects to; no network but loopback, since no interface is given.
		flags = append(flags, "--host-uds=all", "--network=none")
	}
	cmd := exec.CommandContext(ctx, r.path, append(flags, args...)...)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	return cmd
}

// do runs a command of the runtime's and gives what it says went wrong.
func (r *ociRuntime) do(cmd *exec.Cmd, log string) error {
	// No pipe: the sandbox's first process inherits these, and reading would last as long as it.
	err := cmd.Run()
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w%s", r.name, err, lastWords(log))
}

// lastWords gives the message of the last error in a runtime's log.
func lastWords(log string) string {
	text, err := os.ReadFile(log)
	if err != nil {
		return ""
	}
	var last string
	for line := range bytes.Lines(text) {
		var entry struct{ Level, Msg string }
		if json.Unmarshal(line, &entry) == nil && (entry.Level == "error" || entry.Level == "fatal") {
			last = ": " + entry.Msg
		}
	}
	return last
}

// run makes and starts the sandbox of a bundle, and gives the pid of its first process. A runtime that is cut short
// leaves pieces: ctx's end kills it, so give it one that does not end with the caller.
func (r *ociRuntime) run(ctx context.Context, root, bundle, id string) (int, error) {
	log, pidFile := filepath.Join(bundle, "log"), filepath.Join(bundle, "pid")
	cmd := r.command(ctx, root, log, "run", "--detach", "--bundle", bundle, "--pid-file", pidFile, id)
	if err := r.do(cmd, log); err != nil {
		return 0, err
	}
	return readPID(pidFile)
}

// listener gives the process that listens for a sandbox's first process, whose pid is given. Under runsc that is its
// gofer, whichever program inside asked: the host can make sure that it speaks to this sandbox, and not to whom in it.
func (r *ociRuntime) listener(root, id string, pid int) (int, error) {
	if !r.ownKernel() {
		return pid, nil
	}
	files, _ := filepath.Glob(filepath.Join(root, id+"*.state")) // the pattern is well formed
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return 0, err
		}
		var known struct{ GoferPid int }
		if err := json.Unmarshal(text, &known); err == nil && known.GoferPid > 1 {
			return known.GoferPid, nil
		}
	}
	return 0, fmt.Errorf("%s: its state of %s names no gofer: use a runsc of before 2024, or runc", r.name, id)
}

// readPID reads a pid file.
func readPID(path string) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	var pid int
	if _, err := fmt.Sscan(string(text), &pid); err != nil || pid < 2 {
		return 0, fmt.Errorf("%s: no pid: %q", path, text)
	}
	return pid, nil
}

// remove has the runtime forget a sandbox, and its cgroup; one that it does not know is fine.
func (r *ociRuntime) remove(ctx context.Context, root, id string) error {
	if known, _ := filepath.Glob(filepath.Join(root, id+"*")); len(known) == 0 { // the pattern is well formed
		return nil
	}
	log := filepath.Join(root, id+".log")
	defer os.Remove(log)
	return r.do(r.command(ctx, root, log, "delete", "--force", id), log)
}
