package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"

	"proctor/sandbox"
	"proctor/sandbox/confine"
	"proctor/sandbox/sandboxtest"
)

// makeBox makes a sandbox of the base image that goes at the test's end.
func makeBox(t *testing.T, e *Engine, spec sandbox.Spec) *session {
	t.Helper()
	if spec.Image == "" {
		spec.Image = baseImage
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := e.Create(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s.(*session)
}

// shell types a command and gives its output.
func shell(t *testing.T, s sandbox.Session, command string) string {
	t.Helper()
	got, err := s.Do(context.Background(), sandbox.Call{ID: confine.RandomHex(8), Op: sandbox.OpShell, Command: command, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatalf("%q: %v", command, err)
	}
	return string(got.Output)
}

func TestDeathFromOutsideIsInfra(t *testing.T) {
	cli := needDocker(t)
	engine := newEngine(t, newOwner(t, cli))
	for word, kill := range map[string]func(id string) error{
		"told to kill": func(id string) error { return cli.ContainerKill(context.Background(), id, "KILL") },
		"removed": func(id string) error {
			return cli.ContainerRemove(context.Background(), id, container.RemoveOptions{Force: true})
		},
	} {
		s := makeBox(t, engine, sandbox.Spec{})
		if err := kill(s.ID()); err != nil {
			t.Fatal(err)
		}
		sandboxtest.WantDeath(t, s, sandbox.FailureInfra, word)
	}
}

func TestDeathIsFoundAfterARestart(t *testing.T) {
	cli := needDocker(t)
	owner := newOwner(t, cli)
	s := makeBox(t, newEngine(t, owner), sandbox.Spec{Name: "r_x"})
	_ = s.Detach()
	if err := cli.ContainerKill(context.Background(), s.ID(), "KILL"); err != nil {
		t.Fatal(err)
	}
	engine := newEngine(t, owner)
	listed, err := engine.List(context.Background())
	if err != nil || len(listed) != 1 || listed[0].Running || listed[0].Name != "r_x" {
		t.Fatalf("%+v %v", listed, err)
	}
	again, err := engine.Attach(context.Background(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	sandboxtest.WantDeath(t, again, sandbox.FailureInfra, "told to kill")
}

func TestDeathByItsOwnMemoryIsModel(t *testing.T) {
	cli := needDocker(t)
	s := makeBox(t, newEngine(t, newOwner(t, cli)), sandbox.Spec{Limits: sandbox.Limits{MemoryMB: 32}})
	// The kernel spares the hogs and takes the agent: what root inside can arrange at worst.
	_, err := s.Do(context.Background(), sandbox.Call{ID: "hog", Op: sandbox.OpShell, Timeout: 10 * time.Second, Command: `
for p in /proc/[0-9]*; do [ $p = /proc/1 ] || echo 500 > $p/oom_score_adj; done 2>/dev/null; echo 1000 > /proc/1/oom_score_adj
head -c 100000000 /dev/zero | tail -c 90000000 > /dev/null`})
	var dead *sandbox.DeadError
	if errors.As(err, &dead) && dead.Class != sandbox.FailureModel {
		t.Errorf("died by %v", dead)
	}
	if err == nil {
		t.Log("the agent survived; the hog did not")
		shell(t, s, "true")
	}
}

func TestAgentMendsItsSocket(t *testing.T) {
	cli := needDocker(t)
	s := makeBox(t, newEngine(t, newOwner(t, cli)), sandbox.Spec{})
	shell(t, s, `x=kept; rm /run/init/ctl; (python3 -c 'import socket, time
s = socket.socket(socket.AF_UNIX); s.bind("/run/init/ctl"); s.listen(); time.sleep(60)' >/dev/null 2>&1 &)`)
	if err := s.Detach(); err != nil { // as when the server restarts
		t.Fatal(err)
	}
	if got := shell(t, s, "echo $x"); got != "kept\n" {
		t.Errorf("found again: %q", got)
	}
}

func TestSeveredAgentIsModel(t *testing.T) {
	cli := needDocker(t)
	s := makeBox(t, newEngine(t, newOwner(t, cli)), sandbox.Spec{})
	sandboxtest.WantSevered(t, s)
	if found, err := cli.ContainerInspect(context.Background(), s.ID()); err != nil || found.State.Running {
		t.Errorf("a sandbox that nobody watches runs on (%v)", err)
	}
}

func TestPausedIsUnavailable(t *testing.T) {
	cli := needDocker(t)
	s := makeBox(t, newEngine(t, newOwner(t, cli)), sandbox.Spec{})
	if err := cli.ContainerPause(context.Background(), s.ID()); err != nil {
		t.Fatal(err)
	}
	if err := s.Alive(context.Background()); !errors.Is(err, sandbox.ErrUnavailable) || !strings.Contains(err.Error(), "unpause") {
		t.Errorf("%v", err)
	}
	if err := cli.ContainerUnpause(context.Background(), s.ID()); err != nil {
		t.Fatal(err)
	}
	shell(t, s, "true")
}

func TestInternalNetwork(t *testing.T) {
	cli := needDocker(t)
	owner := newOwner(t, cli)
	engine := newEngine(t, owner)
	ctx, name := context.Background(), "t"+confine.RandomHex(6)
	if err := engine.InternalNetwork(ctx, name); err != nil {
		t.Fatal(err)
	}
	var files bytes.Buffer
	w := tar.NewWriter(&files)
	_ = w.WriteHeader(&tar.Header{Name: "srv/fix.txt", Mode: 0o644, Size: 4})
	_, _ = w.Write([]byte("fix\n"))
	_ = w.Close()
	service, err := engine.StartService(ctx, ServiceSpec{Name: "upstream", Image: baseImage, Network: name, Aliases: []string{"git.example"},
		Argv: []string{"python3", "-m", "http.server", "-d", "/srv", "80"}, Files: files.Bytes()})
	if err != nil {
		t.Fatal(err)
	}
	s := makeBox(t, engine, sandbox.Spec{Network: sandbox.Network{Mode: "internal", Name: name, Hosts: map[string]string{"raw.example": service.Address}}})
	for _, host := range []string{"git.example", "raw.example"} {
		if got := shell(t, s, "curl -s --retry 20 --retry-delay 1 --retry-connrefused http://"+host+"/fix.txt"); got != "fix\n" {
			t.Errorf("from %s: %q", host, got)
		}
	}
	if got := shell(t, s, "curl -s -m 3 http://192.0.2.1/; echo $?"); got != "7\n" && got != "28\n" {
		t.Errorf("a way out: %q", got)
	}
	other := newEngine(t, owner+"-other")
	if _, err := other.Create(ctx, sandbox.Spec{Image: baseImage, Network: sandbox.Network{Mode: "internal", Name: name}}); err == nil {
		t.Error("another owner joined the network")
	}
	if err := other.RemoveNetwork(ctx, name); err == nil {
		t.Error("another owner removed the network")
	}
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := errors.Join(engine.RemoveService(ctx, service.ID), engine.RemoveNetwork(ctx, name)); err != nil {
			t.Error(err)
		}
	}
	if left, _ := cli.NetworkList(ctx, network.ListOptions{Filters: engine.labelled("")}); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestServiceThatEndsAtOnceLeavesNothing(t *testing.T) {
	cli := needDocker(t)
	owner := newOwner(t, cli)
	engine := newEngine(t, owner)
	name := "t" + confine.RandomHex(6)
	if err := engine.InternalNetwork(context.Background(), name); err != nil {
		t.Fatal(err)
	}
	for _, argv := range [][]string{{"/no/such/program"}} {
		if _, err := engine.StartService(context.Background(), ServiceSpec{Image: baseImage, Network: name, Argv: argv}); err == nil {
			t.Errorf("%v started", argv)
		}
	}
	if left := leftovers(cli)(t, owner); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if err := engine.RemoveServices(context.Background()); err != nil { // the network too
		t.Error(err)
	}
}

func TestSweepTakesOnlyOrphans(t *testing.T) {
	cli := needDocker(t)
	engine := newEngine(t, newOwner(t, cli))
	s := makeBox(t, engine, sandbox.Spec{})
	orphan, err := engine.root.NewFolder() // of a create that a crash cut short
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Sweep(context.Background()); err != nil {
		t.Fatal(err)
	}
	if exists(orphan) || !exists(s.folder) {
		t.Errorf("orphan there: %v, a live one there: %v", exists(orphan), exists(s.folder))
	}
	shell(t, s, "true")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestMissingImageIsToldQuickly(t *testing.T) {
	cli := needDocker(t)
	engine := newEngine(t, newOwner(t, cli))
	for ref, words := range map[string]string{
		"proctor/none:dev": "make image", "": "is no image reference", "a b": "is no image reference", "UPPER": "no such image",
	} {
		_, err := engine.Image(context.Background(), ref)
		if !errors.Is(err, sandbox.ErrNoImage) || !strings.Contains(err.Error(), words) {
			t.Errorf("%q: %v, want %q", ref, err, words)
		}
	}
}

func TestStoppedDaemonIsUnavailable(t *testing.T) {
	engine, err := New(Options{Owner: "o", Host: "unix://" + filepath.Join(t.TempDir(), "none.sock"), RunRoot: filepath.Join(t.TempDir(), "r")})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	ctx := context.Background()
	_, create := engine.Create(ctx, sandbox.Spec{Image: baseImage})
	_, attach := engine.Attach(ctx, "x")
	_, list := engine.List(ctx)
	_, caps := engine.Capabilities(ctx)
	for what, err := range map[string]error{"create": create, "attach": attach, "list": list, "capabilities": caps, "remove": engine.Remove(ctx, "x")} {
		if !errors.Is(err, sandbox.ErrUnavailable) || !strings.Contains(err.Error(), "make docker") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestMissingAgentIsTold(t *testing.T) {
	needDocker(t)
	engine, err := New(Options{Owner: "test-" + confine.RandomHex(4), BoxPath: filepath.Join(t.TempDir(), "none")})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	_, err = engine.Create(context.Background(), sandbox.Spec{Image: baseImage})
	if !errors.Is(err, sandbox.ErrUnavailable) || !strings.Contains(err.Error(), "make build") {
		t.Errorf("%v", err)
	}
}
