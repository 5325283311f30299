package oci

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"proctor/sandbox"
	"proctor/sandbox/oci/images"
)

// state is what the engine knows of a sandbox, as it lies on disk.
type state struct {
	ID      string            `json:"id"`
	Owner   string            `json:"owner"`
	Name    string            `json:"name"`
	Labels  map[string]string `json:"labels"`
	Created time.Time         `json:"created"`
	Image   images.Record     `json:"image"`
	Memory  int64             `json:"memory"`  // bytes, the limit
	Disk    int64             `json:"disk"`    // bytes, the limit
	Folder  string            `json:"folder"`  // the run folder on the host; "" before it is made
	Runtime string            `json:"runtime"` // its name
	Program string            `json:"program"` // and path: the settings may name another by now

	// Once it runs:
	Ready bool `json:"ready"`
	PID   int  `json:"pid"` // of its first process
	// Listener is the process that the kernel names as the one behind the agent's socket: the agent, or, under a
	// runtime of its own kernel, the process that opens files for it.
	Listener int    `json:"listener"`
	Start    uint64 `json:"start"` // of that, in clock ticks since Boot
	Boot     string `json:"boot"`  // which run of the machine

	// Dead is why it must not be taken for alive, whatever runs.
	Dead *sandbox.DeadError `json:"dead,omitempty"`
}

// idLength is how long an id is, in hexadecimal digits.
const idLength = 32

// wellFormedID keeps anything but our own ids from becoming part of a path.
func wellFormedID(id string) bool {
	return len(id) == idLength && strings.Trim(id, "0123456789abcdef") == ""
}

// folder is a sandbox's folder on the host.
func (e *Engine) folder(id string) string { return filepath.Join(e.path, e.boxes, id) }

// load reads a sandbox's state. ErrGone where there is none of this owner's.
func (e *Engine) load(id string) (state, error) {
	if !wellFormedID(id) {
		return state{}, fmt.Errorf("%w: %s", sandbox.ErrGone, id)
	}
	text, err := os.ReadFile(filepath.Join(e.folder(id), "state.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return state{}, fmt.Errorf("%w: %s", sandbox.ErrGone, id)
	}
	if err != nil {
		return state{}, fmt.Errorf("oci: state of %s: %w", id, err)
	}
	var s state
	if err := json.Unmarshal(text, &s); err != nil {
		return state{}, fmt.Errorf("oci: state of %s: %w", id, err)
	}
	if s.ID != id || s.Owner != e.opts.Owner {
		return state{}, fmt.Errorf("%w: %s is not one of ours", sandbox.ErrGone, id)
	}
	return s, nil
}

// save writes a sandbox's state so that no reader sees half of it.
func (e *Engine) save(s state) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	target := filepath.Join(e.folder(s.ID), "state.json")
	part, err := os.CreateTemp(e.folder(s.ID), "state")
	if err != nil {
		return fmt.Errorf("oci: write the state of %s: %w", s.ID, err)
	}
	_, err = part.Write(text)
	if err = errors.Join(err, part.Close()); err == nil {
		err = os.Rename(part.Name(), target)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("oci: write the state of %s: %w", s.ID, err), os.Remove(part.Name()))
	}
	return nil
}

// condemn notes why a sandbox is dead, unless that is known already: written before it is killed, so that nobody who
// finds it dead takes our doing for the agent's.
func (e *Engine) condemn(id string, dead *sandbox.DeadError) error {
	e.condemning.Lock()
	defer e.condemning.Unlock()
	s, err := e.load(id)
	if err != nil || s.Dead != nil {
		return err
	}
	s.Dead = dead
	return e.save(s)
}

// ids lists the owner's sandboxes, in whatever state.
func (e *Engine) ids() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(e.path, e.boxes))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var ids []string
	for _, entry := range entries {
		if wellFormedID(entry.Name()) {
			ids = append(ids, entry.Name())
		}
	}
	return ids, err
}

// bootID tells one run of the machine from the next.
func bootID() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // "" means: all are one
	return strings.TrimSpace(string(text))
}
