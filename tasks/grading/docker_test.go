package grading

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"proctor/sandbox"
	"proctor/sandbox/docker"
	"proctor/tasks"
)

const baseImage = "proctor/base:dev"

// demoLab is the demo task on the engine that ships, made once for all tests. Its images are the ones
// that any server makes of the task, under the same names, and stay as its cache.
type demoLab struct {
	engine *docker.Engine
	task   *tasks.Task
	raw    string
	image  string
	dir    string
}

var demo = sync.OnceValues(func() (*demoLab, error) {
	found, problems := tasks.Load(context.Background(), "../../testdata/tasks/interval-merge")
	if len(problems) > 0 || len(found) != 1 {
		return nil, fmt.Errorf("demo task: %v", problems)
	}
	dir, err := os.MkdirTemp("", "proctor-grading-test-")
	if err != nil {
		return nil, err
	}
	lab := &demoLab{task: found[0], dir: dir}
	made = lab
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "boxd"), "proctor/cmd/boxd")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building boxd: %w: %s", err, out)
	}
	var token [6]byte
	_, _ = rand.Read(token[:])
	lab.engine, err = docker.New(docker.Options{Owner: "grading-test-" + hex.EncodeToString(token[:]), BoxPath: filepath.Join(dir, "boxd"), NoPull: true})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	prepared, err := (&tasks.Preparer{Engine: lab.engine, Dir: filepath.Join(dir, "images")}).Prepare(ctx, lab.task, true)
	if err != nil {
		return nil, err
	}
	lab.raw, lab.image = prepared.Raw.Ref, prepared.Image.Ref
	return lab, nil
})

// made is what TestMain takes down.
var made *demoLab

func TestMain(m *testing.M) {
	status := m.Run()
	if made != nil {
		if err := made.close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = 1
		}
	}
	os.Exit(status)
}

// close removes every sandbox that is left. Tests close theirs: what is left is a bug of grading's.
func (l *demoLab) close() error {
	defer os.RemoveAll(l.dir)
	if l.engine == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	left, err := l.engine.List(ctx)
	errs := []error{err}
	for _, s := range left {
		errs = append(errs, fmt.Errorf("sandbox %s was left behind", s.Name), l.engine.Remove(ctx, s.ID))
	}
	return errors.Join(append(errs, l.engine.Close())...)
}

// demoSubject gives the engine and a copy of the demo task that a test may change. Where no docker or
// no base image is at hand, it fails under CI and skips loudly elsewhere.
func demoSubject(t *testing.T) (*demoLab, Subject) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED under -short: needs docker and " + baseImage)
	}
	if out, err := exec.Command("docker", "image", "inspect", "-f", "{{.Id}}", baseImage).CombinedOutput(); err != nil {
		message := fmt.Sprintf("needs docker and the image %s (make image): %v: %s", baseImage, err, out)
		if os.Getenv("CI") == "true" || os.Getenv("PROCTOR_REQUIRE_DOCKER") == "1" {
			t.Fatal(message)
		}
		t.Skip("SKIPPED: " + message)
	}
	lab, err := demo()
	if err != nil {
		t.Fatal(err)
	}
	task, grader := *lab.task, *lab.task.Grader
	task.Grader = &grader
	return lab, Subject{Task: &task, Image: lab.image}
}

// sandboxOf makes a sandbox of the demo task that goes away with the test.
func (l *demoLab) sandboxOf(t *testing.T, image string) sandbox.Session {
	t.Helper()
	ctx := context.Background()
	s, err := l.engine.Create(ctx, sandbox.Spec{Name: "agent", Image: image, Workdir: l.task.Workdir, User: "root", Limits: sandbox.Limits{Pids: 128, MemoryMB: 1024}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

// agentIn makes an agent's sandbox and runs a shell script in its working folder.
func agentIn(t *testing.T, l *demoLab, script string) sandbox.Session {
	t.Helper()
	ctx := context.Background()
	s := l.sandboxOf(t, l.image)
	gold, err := os.ReadFile(filepath.Join(l.task.Dir, l.task.Solution))
	if err != nil {
		t.Fatal(err)
	}
	if err := push(ctx, s, "/root", []member{{name: "gold.patch", mode: "100644", content: gold}}); err != nil {
		t.Fatal(err)
	}
	res, err := s.Exec(ctx, sandbox.Exec{Argv: []string{"bash", "-euc", script}, Timeout: time.Minute})
	if err != nil || res.Exit == nil || *res.Exit != 0 {
		t.Fatalf("the script failed: %v: %s%s", err, res.Stdout, res.Stderr)
	}
	return s
}
