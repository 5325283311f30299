package grading

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"proctor/sandbox"
	"proctor/tasks"
)

// cliEngine is a sandbox engine over the docker command, for these tests alone: slow and simple, and
// independent of the engine that ships.
type cliEngine struct{ sandbox.Engine }

type cliSession struct {
	sandbox.Session
	id   string
	spec sandbox.Spec
}

const testLabel = "proctor.test=grading"

func docker(ctx context.Context, stdin io.Reader, args ...string) (stdout []byte, exit int, err error) {
	cmd := exec.CommandContext(ctx, "docker", args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &errs
	err = cmd.Run()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return out.Bytes(), ended.ExitCode(), fmt.Errorf("docker %s: %w: %s", args[0], err, clip(errs.String(), 500))
	}
	return out.Bytes(), 0, err
}

func (cliEngine) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Session, error) {
	out, _, err := docker(ctx, nil, "run", "-d", "--init", "--network=none", "--label", testLabel, "--entrypoint=sleep",
		"--memory=1g", "--pids-limit=256", "-w", spec.Workdir, spec.Image, "3600")
	if err != nil {
		return nil, err
	}
	return &cliSession{id: strings.TrimSpace(string(out)), spec: spec}, nil
}

func (s *cliSession) ID() string { return s.id }

func (s *cliSession) Exec(ctx context.Context, e sandbox.Exec) (sandbox.ExecResult, error) {
	timeout := e.Timeout
	if timeout == 0 {
		timeout = sandbox.DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	args := []string{"exec", "-i", "-w", e.Dir}
	for _, kv := range e.Env {
		args = append(args, "-e", kv)
	}
	out, exit, err := docker(ctx, bytes.NewReader(e.Stdin), append(append(args, s.id), e.Argv...)...)
	switch {
	case ctx.Err() != nil:
		return sandbox.ExecResult{Stdout: out, TimedOut: true}, nil
	case exit == 126 || exit == 127:
		if _, _, err := docker(context.Background(), nil, "exec", s.id, "true"); err == nil && len(e.Argv) > 0 && !strings.Contains(e.Argv[0], "sh") {
			return sandbox.ExecResult{}, fmt.Errorf("%w: %s", sandbox.ErrStart, e.Argv[0])
		}
	case err != nil && exit == 0:
		return sandbox.ExecResult{}, err
	}
	result := sandbox.ExecResult{Stdout: out, Exit: &exit}
	if err != nil {
		result.Stderr = []byte(err.Error())
	}
	return result, nil
}

func (s *cliSession) ReadFile(ctx context.Context, name string, limit int64) ([]byte, error) {
	out, _, err := docker(ctx, nil, "cp", s.id+":"+name, "-")
	if err != nil {
		return nil, fs.ErrNotExist
	}
	in := tar.NewReader(bytes.NewReader(out))
	header, err := in.Next()
	if err != nil || header.Typeflag != tar.TypeReg {
		return nil, fs.ErrInvalid
	}
	return io.ReadAll(io.LimitReader(in, limit))
}

func (s *cliSession) Pull(ctx context.Context, name string) (io.ReadCloser, error) {
	out, _, err := docker(ctx, nil, "cp", s.id+":"+name, "-")
	return io.NopCloser(bytes.NewReader(out)), err
}

func (s *cliSession) Push(ctx context.Context, dir string, stream io.Reader) error {
	_, _, err := docker(ctx, stream, "cp", "-", s.id+":"+dir)
	return err
}

func (s *cliSession) Alive(context.Context) error { return nil }

func (s *cliSession) Close(ctx context.Context) error {
	_, _, err := docker(ctx, nil, "rm", "-f", "-v", s.id)
	return err
}

const baseImage = "proctor/base:dev"

// demo gives the demo task with an image of it that is hardened as far as grading cares: its git
// history does not matter here. The image is made once for all tests and removed by TestMain.
var demo = sync.OnceValues(func() (Subject, error) {
	found, problems := tasks.Load(context.Background(), "../../testdata/tasks/interval-merge")
	if len(problems) > 0 || len(found) != 1 {
		return Subject{}, fmt.Errorf("demo task: %v", problems)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	s, err := cliEngine{}.Create(ctx, sandbox.Spec{Image: baseImage, Workdir: found[0].Workdir})
	if err != nil {
		return Subject{}, err
	}
	defer s.Close(ctx)
	members, err := hostFiles(filepath.Join(found[0].Dir, found[0].Build.Files))
	if err != nil {
		return Subject{}, err
	}
	if err := push(ctx, s, found[0].Workdir, members); err != nil {
		return Subject{}, err
	}
	script := strings.Join(found[0].Build.Run, " && ") + " && rm -rf /hidden .eval"
	res, err := s.Exec(ctx, sandbox.Exec{Argv: []string{"sh", "-c", script}, Dir: found[0].Workdir, Timeout: time.Minute})
	if err != nil || *res.Exit != 0 {
		return Subject{}, fmt.Errorf("building the demo image: %w: %s", err, res.Stderr)
	}
	var token [6]byte
	_, _ = rand.Read(token[:])
	image := "proctor-test/grading:" + hex.EncodeToString(token[:])
	if _, _, err := docker(ctx, nil, "commit", "--change", "LABEL "+testLabel, s.ID(), image); err != nil {
		return Subject{}, err
	}
	builtImage = image
	return Subject{Task: found[0], Image: image}, nil
})

var builtImage string

func TestMain(m *testing.M) {
	status := m.Run()
	if builtImage != "" {
		if _, _, err := docker(context.Background(), nil, "rmi", "-f", builtImage); err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = 1
		}
	}
	os.Exit(status)
}

// demoSubject gives a copy of the demo task that a test may change. Where no docker or no base image
// is at hand, it fails under CI and skips loudly elsewhere.
func demoSubject(t *testing.T) Subject {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED under -short: needs docker and " + baseImage)
	}
	if _, _, err := docker(context.Background(), nil, "image", "inspect", baseImage); err != nil {
		message := "needs docker and the image " + baseImage + " (make image): " + err.Error()
		if os.Getenv("CI") == "true" || os.Getenv("PROCTOR_REQUIRE_DOCKER") == "1" {
			t.Fatal(message)
		}
		t.Skip("SKIPPED: " + message)
	}
	subject, err := demo()
	if err != nil {
		t.Fatal(err)
	}
	task, grader := *subject.Task, *subject.Task.Grader
	task.Grader = &grader
	subject.Task = &task
	return subject
}

// agentIn makes an agent's sandbox and runs a shell script in its working folder.
func agentIn(t *testing.T, subject Subject, script string) sandbox.Session {
	t.Helper()
	ctx := context.Background()
	s, err := cliEngine{}.Create(ctx, sandbox.Spec{Image: subject.Image, Workdir: subject.Task.Workdir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(ctx) })
	gold, err := os.ReadFile(filepath.Join(subject.Task.Dir, subject.Task.Solution))
	if err != nil {
		t.Fatal(err)
	}
	if err := push(ctx, s, "/", []member{{name: path.Join("root", "gold.patch"), mode: "100644", content: gold}}); err != nil {
		t.Fatal(err)
	}
	res, err := s.Exec(ctx, sandbox.Exec{Argv: []string{"bash", "-euc", script}, Dir: subject.Task.Workdir, Timeout: time.Minute})
	if err != nil || res.Exit == nil || *res.Exit != 0 {
		t.Fatalf("the script failed: %v: %s%s", err, res.Stdout, res.Stderr)
	}
	return s
}
