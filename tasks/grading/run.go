package grading

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"proctor/sandbox"
	"proctor/tasks"
)

// testRun is what one run of the test command left to be judged.
type testRun struct {
	command   string // the command or script that ran
	exit      *int   // nil: it did not end by itself
	timedOut  bool
	oom       bool
	truncated bool // output is not the whole
	output    []byte
	report    []byte // nil: there is none
	witness   []byte // the runner's own report beside a log; nil: there is none
	sentinels sentinels
}

// command gives what a task runs as its tests: the command, or the text of the script in its place.
func command(task *tasks.Task) (text string, isScript bool, err error) {
	if task.Grader.Script == "" {
		return task.Grader.Command, false, nil
	}
	data, err := os.ReadFile(filepath.Join(task.Dir, task.Grader.Script))
	if err != nil {
		return "", true, fmt.Errorf("%w: grader.script: %w", errTask, err)
	}
	return string(data), true, nil
}

// trial is how a test command is to be run.
type trial struct {
	session   sandbox.Session
	task      *tasks.Task
	sentinels sentinels
	env       []string
	plain     bool // no witness is asked of the runner beside what the command asks for itself
}

// runTests runs the test command in a sandbox and reads its report. What the tests do to their own
// sandbox is a result; an error is trouble of ours.
func runTests(ctx context.Context, t trial) (testRun, error) {
	dir, err := reportDir(ctx, t.session)
	if err != nil {
		return testRun{}, err
	}
	file := path.Join(dir, "report")
	text, isScript, err := command(t.task)
	if err != nil {
		return testRun{}, err
	}
	result := testRun{command: text, sentinels: t.sentinels}
	witness := ""
	if t.asksWitness(text) {
		witness = path.Join(dir, "witness.xml")
		t.sentinels.addopts += " --junitxml=" + witness
	}
	exec, err := t.exec(ctx, dir, strings.ReplaceAll(text, "{report}", file), isScript)
	if err != nil {
		return testRun{}, err
	}
	res, err := t.session.Exec(ctx, exec)
	var dead *sandbox.DeadError
	switch {
	case errors.As(err, &dead) && dead.Class == sandbox.FailureModel:
		return result, nil // no exit status: unresolved
	case err != nil:
		return testRun{}, fmt.Errorf("test command: %w", err)
	}
	result.exit, result.timedOut, result.oom, result.truncated = res.Exit, res.TimedOut, res.OOM, res.Truncated
	result.output = append(res.Stdout, res.Stderr...)
	err = t.read(ctx, &result, file, witness)
	if errors.As(err, &dead) && dead.Class == sandbox.FailureModel {
		return testRun{command: text, sentinels: t.sentinels}, nil
	}
	return result, err
}

// asksWitness reports whether pytest is to write a report of its own beside the log that a set's parser
// reads: code under test can print lines, and so a log alone says little.
func (t trial) asksWitness(text string) bool {
	_, isLog := logParser(t.task.Grader.Report)
	return isLog && !t.plain && runsPytest(text) && !strings.Contains(text, "junitxml") && !strings.Contains(text, "junit-xml")
}

// exec prepares the command. Where its log is read, both of its streams go the same way, as they do where
// sets make their logs.
func (t trial) exec(ctx context.Context, dir, text string, isScript bool) (sandbox.Exec, error) {
	_, isLog := logParser(t.task.Grader.Report)
	argv := []string{"/bin/sh", "-c", text}
	if isLog {
		argv[2] = "exec 2>&1\n" + text
	}
	if isScript {
		argv = []string{"/bin/bash", path.Join(dir, "run.sh")}
		if isLog {
			argv = []string{"/bin/bash", "-c", `exec /bin/bash "$0" 2>&1`, path.Join(dir, "run.sh")}
		}
		if err := push(ctx, t.session, dir, []member{{name: "run.sh", mode: "100755", content: []byte(text)}}); err != nil {
			return sandbox.Exec{}, err
		}
	}
	env := t.env
	if opts := strings.TrimSpace(t.task.Env["PYTEST_ADDOPTS"] + " " + t.sentinels.addopts); opts != "" {
		env = append(env[:len(env):len(env)], "PYTEST_ADDOPTS="+opts)
	}
	return sandbox.Exec{Argv: argv, Env: env, Dir: t.task.Workdir, Timeout: testTimeout(t.task), Limit: maxReport}, nil
}

// read fetches the reports of a run that ended.
func (t trial) read(ctx context.Context, run *testRun, file, witness string) (err error) {
	if run.report, err = readIf(ctx, t.session, file); err != nil {
		return err
	}
	if run.report == nil && t.task.Grader.Report == "reward-file" && !strings.Contains(run.command, "{report}") {
		for _, place := range rewardPlaces {
			if run.report, err = readIf(ctx, t.session, place); err != nil || run.report != nil {
				return err
			}
		}
	}
	if witness != "" {
		run.witness, err = readIf(ctx, t.session, witness)
	}
	return err
}

// readIf reads a file of a sandbox; nil where there is none, or what lies there is none.
func readIf(ctx context.Context, session sandbox.Session, name string) ([]byte, error) {
	data, err := session.ReadFile(ctx, name, maxReport+1)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) || errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	if err == nil && data == nil {
		data = []byte{}
	}
	return data, err
}

// reportDir makes a folder of random name, outside the working folder, that the tests' user can write.
func reportDir(ctx context.Context, session sandbox.Session) (string, error) {
	var token [8]byte
	if _, err := rand.Read(token[:]); err != nil {
		return "", err
	}
	dir := "/tmp/" + hex.EncodeToString(token[:])
	if err := must(ctx, session, []string{"mkdir", "-m", "0777", "-p", dir}); err != nil {
		return "", err
	}
	return dir, nil
}
