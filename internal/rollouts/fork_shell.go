package rollouts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"proctor/sandbox"
)

// A fork's shell is a new one. It is given the folder and the exported environment of the one that was
// forked, by commands typed into it: the environment is the agent's, and as that of the sandbox it would
// steer the harness's own one-shots (LD_PRELOAD, PATH).

// shellTimeout bounds what is asked of a shell for a fork.
const shellTimeout = 10 * time.Second

// exported gives what the rollout's shell exports, from a process that is started beside it, so that nothing
// in the shell changes. What cannot be had, or is longer than an output, is left out: a fork then starts with
// the sandbox's environment.
func (r *rollout) exported(ctx context.Context, id string) []string {
	ctx, cancel := context.WithTimeout(ctx, shellTimeout)
	defer cancel()
	defer r.watch.harness()()
	printed, err := beside(ctx, r.box.sess, id, "cat /proc/self/environ")
	if err != nil {
		r.m.opt.Log.Warn("a snapshot has no environment of the shell", "rollout", r.id, "err", err)
		return nil
	}
	var env []string
	for pair := range bytes.SplitSeq(printed, []byte{0}) {
		if name, _, ok := strings.Cut(string(pair), "="); ok && carried(name) && utf8.Valid(pair) {
			env = append(env, string(pair))
		}
	}
	slices.Sort(env)
	return env
}

// beside runs a command in the shell's folder and environment, and gives what it printed. Where that is more
// than is shown of an output, or the command failed, there is an error.
func beside(ctx context.Context, sess sandbox.Session, id, command string) ([]byte, error) {
	got, err := sess.Do(ctx, sandbox.Call{ID: id + "-0", Op: sandbox.OpSpawn, Command: command})
	if err == nil && got.Handle == "" {
		err = fmt.Errorf("it was not started: %.200s", got.Output)
	}
	var printed []byte
	handle := got.Handle
	for poll := 1; err == nil; poll++ {
		got, err = sess.Do(ctx, sandbox.Call{ID: fmt.Sprintf("%s-%d", id, poll), Op: sandbox.OpOutput, Handle: handle, Wait: shellTimeout})
		printed = append(printed, got.Output...)
		switch {
		case err != nil:
		case got.Truncated || len(printed) > sandbox.OutputLimit:
			err = errors.New("it printed too much")
		case got.Exit != nil && *got.Exit != 0:
			err = fmt.Errorf("it ended with %d", *got.Exit)
		case got.Exit != nil:
			return printed, nil
		}
	}
	return nil, err
}

var shellName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// carried reports whether a variable is one that a shell can be given: not what it keeps itself.
func carried(name string) bool {
	switch name {
	case "_", "PWD", "OLDPWD", "SHLVL", "SHELLOPTS", "BASHOPTS", "UID", "EUID", "PPID", "GROUPS", "HOSTNAME":
		return false
	}
	return shellName.MatchString(name) && !strings.HasPrefix(name, "BASH_")
}

// seed puts a fork's shell where the other stood.
func (s *snapshotDoc) seed(ctx context.Context, sess sandbox.Session) error {
	command := s.command()
	if command == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, shellTimeout)
	defer cancel()
	_, err := sess.Do(ctx, sandbox.Call{ID: "start", Op: sandbox.OpShell, Command: command, Timeout: shellTimeout})
	return err
}

// command is what is typed into a fork's shell before the agent has it.
func (s *snapshotDoc) command() string {
	var b strings.Builder
	for _, pair := range s.Env {
		name, value, _ := strings.Cut(pair, "=")
		b.WriteString("export " + name + "=" + quote(value) + "\n")
	}
	if s.Cwd != "" {
		b.WriteString("cd -- " + quote(s.Cwd) + "\n")
	}
	return b.String()
}

// quote writes text as one word of any shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
