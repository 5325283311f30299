package evalrun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"proctor/internal/rollouts"
)

// outsideGrace is how long an agent's command has between SIGTERM and SIGKILL.
const outsideGrace = 5 * time.Second

// outside runs an agent's command for one attempt. The command has the rollout's own token and not
// the trainer's key, since what it runs may do as an agent likes.
type outside struct {
	plan     *Plan
	url      string
	made     *rollouts.Created
	attempt  int
	dir      string // for the instruction and the log
	deadline time.Duration
}

// run runs the command until it ends or the time budget is out. The error is the command's failure,
// with the end of what it printed.
func (o *outside) run(ctx context.Context) (string, error) {
	instruction := filepath.Join(o.dir, fmt.Sprintf("%d.instruction.txt", o.attempt))
	if err := os.WriteFile(instruction, []byte(o.made.Instruction), 0o644); err != nil {
		return "", err
	}
	log, err := os.OpenFile(filepath.Join(o.dir, fmt.Sprintf("%d.log", o.attempt)), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return "", err
	}
	defer func() { _ = log.Close() }()
	timed := ctx
	if o.deadline > 0 {
		var cancel context.CancelFunc
		timed, cancel = context.WithTimeout(ctx, o.deadline)
		defer cancel()
	}
	cmd := exec.CommandContext(timed, "sh", "-c", o.plan.Agent)
	cmd.Stdout, cmd.Stderr = log, log // a file, no pipe, so that nobody waits for children that hold it open
	cmd.Env = append(withoutKeys(os.Environ()), "PROCTOR_URL="+o.url, "PROCTOR_ROLLOUT="+o.made.ID, "PROCTOR_AGENT_TOKEN="+o.made.AgentToken,
		"PROCTOR_TASK="+o.made.TaskID, fmt.Sprintf("PROCTOR_ATTEMPT=%d", o.attempt), "PROCTOR_WORKDIR="+o.made.Workdir, "PROCTOR_INSTRUCTION_FILE="+absolute(instruction),
		"PROCTOR_MODEL="+o.plan.Model)
	// A group of its own, so that its children end with it; and it ends with us, so that a run which goes
	// on never meets an agent of the last sitting. The kernel means the thread that starts it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = outsideGrace
	err = cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it left behind
	}
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case timed.Err() != nil:
		return StopTime, nil
	case err != nil:
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			return "", err
		}
		return "", &AgentError{Err: err, Tail: tail(log.Name())}
	}
	return StopAgent, nil
}

// AgentError is an outside agent whose command failed.
type AgentError struct {
	Err  error
	Tail string // the end of what it printed
}

func (e *AgentError) Error() string {
	return fmt.Sprintf("the agent's command failed: %v: %s", e.Err, e.Tail)
}

// Unwrap gives the cause.
func (e *AgentError) Unwrap() error { return e.Err }

// withoutKeys leaves out what an agent must not have: the trainer's and the judge's keys.
func withoutKeys(env []string) []string {
	var out []string
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, "PROCTOR_") {
			continue
		}
		out = append(out, v)
	}
	return out
}

// tail gives the last 500 bytes of a file, in words that a record can hold.
func tail(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err == nil && info.Size() > 500 {
		_, _ = f.Seek(-500, io.SeekEnd) // else the beginning does
	}
	body, _ := io.ReadAll(io.LimitReader(f, 500)) // what could be read
	return strings.TrimSpace(strings.ToValidUTF8(string(body), ""))
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
