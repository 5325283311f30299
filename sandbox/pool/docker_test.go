package pool_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"proctor/sandbox"
	"proctor/sandbox/docker"
	"proctor/sandbox/pool"
	"proctor/sandbox/sandboxtest"
)

const baseImage = "proctor/base:dev"

// overDocker gives a function that makes pools over a Docker engine of an owner. Without a daemon the test
// fails where a run demands Docker, and is skipped, loudly, elsewhere.
func overDocker(t *testing.T) func(t *testing.T, owner string) *pool.Engine {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED under -short: needs Docker")
	}
	if out, err := exec.Command("docker", "image", "inspect", baseImage).CombinedOutput(); err != nil {
		if os.Getenv("CI") == "true" || os.Getenv("PROCTOR_REQUIRE_DOCKER") == "1" {
			t.Fatalf("run `make docker image`: %v: %.300s", err, out)
		}
		t.Skipf("NOT TESTED, needs Docker: run `make docker image`: %v", err)
	}
	boxd := filepath.Join(t.TempDir(), "boxd")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", boxd, "proctor/cmd/boxd")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the box agent: %v: %s", err, out)
	}
	return func(t *testing.T, owner string) *pool.Engine {
		t.Helper()
		engine, err := docker.New(docker.Options{Owner: owner, BoxPath: boxd})
		if err != nil {
			t.Fatal(err)
		}
		p, err := pool.New(engine, pool.Options{Max: 4})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
}

// ready makes n spares of a spec.
func ready(t *testing.T, p *pool.Engine, spec sandbox.Spec, n int) {
	t.Helper()
	if err := p.Expect(context.Background(), spec, n); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if have, err := p.Ready(context.Background(), spec); err != nil || have >= n {
			if err != nil {
				t.Fatal(err)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no %d spares of %s", n, spec.Image)
		}
	}
}

// A spare of the Docker engine does all that a sandbox does, is found again by its id, and one that died
// while it waited is passed over.
func TestDockerSpares(t *testing.T) {
	open := overDocker(t)
	owner := "test-pool-" + strings.ToLower(t.Name())
	p := open(t, owner)
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	spec := sandbox.Spec{Name: "r_1", Image: baseImage, Workdir: "/srv", Env: map[string]string{"ASKED": "yes"}, Limits: sandbox.Limits{MemoryMB: 128}}
	ready(t, p, spec, 3)
	listed, err := p.List(context.Background())
	if err != nil || len(listed) != 3 {
		t.Fatalf("listed %v %v", listed, err)
	}
	oldest := slices.MinFunc(listed, func(a, b sandbox.Listed) int { return a.Created.Compare(b.Created) })
	if out, err := exec.Command("docker", "kill", oldest.ID).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	claimed := map[string]bool{}
	for range 2 {
		began := time.Now()
		s, err := p.Create(context.Background(), spec)
		took := time.Since(began)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("claimed in %v", took)
		defer s.Close(context.Background())
		if s.ID() == oldest.ID || claimed[s.ID()] {
			t.Errorf("%s was handed out again, or dead", s.ID())
		}
		claimed[s.ID()] = true
		got, err := s.Do(context.Background(), sandbox.Call{ID: "c1", Op: sandbox.OpShell, Command: `echo "$ASKED $PWD $(nproc)"`})
		if err != nil || string(got.Output) != "yes /srv 1\n" {
			t.Errorf("%q %v", got.Output, err)
		}
		if _, ok := s.(sandbox.Local); !ok {
			t.Error("a claimed spare is the engine's own session")
		}
		again, err := p.Attach(context.Background(), s.ID())
		if err != nil {
			t.Fatal(err)
		}
		if state, err := again.State(context.Background(), "c1"); err != nil || state != sandbox.CallDone {
			t.Errorf("attached: %v %v", state, err)
		}
		_ = again.Detach()
	}
}

// eager is a pool whose every claim finds a spare.
type eager struct {
	*pool.Engine
	t *testing.T
}

// Create makes a spare ready, where the spec has a kind, and claims it.
func (e eager) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Session, error) {
	if ctx.Err() == nil && e.Expect(ctx, spec, 1) == nil {
		for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline) && ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
			if n, err := e.Ready(ctx, spec); n > 0 || err != nil {
				break
			}
		}
	}
	return e.Engine.Create(ctx, spec)
}

// image makes an image of the base by a shell script and removes it at the test's end.
func image(t *testing.T, name, script string) string {
	t.Helper()
	ref := "proctor-test/pool-" + name
	run := exec.Command("sh", "-ec", script)
	run.Env = append(os.Environ(), "REF="+ref, "BASE="+baseImage)
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("image %s: %v: %s", name, err, out)
	}
	t.Cleanup(func() { _ = exec.Command("docker", "rmi", "-f", ref).Run() })
	return ref
}

const (
	committed = `id=$(docker create "$BASE"); docker commit $CHANGES "$id" "$REF"; docker rm "$id"`
	onlySh    = `docker run --rm --network none --entrypoint sh "$BASE" -c 'mkdir -p /tree/bin /tree/etc /tree/tmp /tree/usr/bin
for f in /bin/sh /bin/cat /bin/sleep /bin/true; do for l in $f $(ldd $f | grep -o "/[^ ]*"); do mkdir -p /tree${l%/*}; cp -L $l /tree$l; done; done
tar -C /tree -c .' | docker import - "$REF"`
	noShell = `docker run --rm --network none --entrypoint sh "$BASE" -c 'mkdir -p /tree/etc /tree/tmp; tar -C /tree -c .' | docker import - "$REF"`
)

// The whole contract, by claimed spares. It takes as long as the Docker engine's own: `make pool`.
func TestContractThroughPool(t *testing.T) {
	if os.Getenv("PROCTOR_POOL") == "" {
		t.Skip("SKIPPED: the engine's own tests hold the contract; `make pool` holds it through the pool")
	}
	open := overDocker(t)
	var pools []*pool.Engine
	sandboxtest.Run(t, sandboxtest.Lab{
		Engine: func(t *testing.T, owner string) sandbox.Engine {
			p := open(t, owner)
			pools = append(pools, p)
			return eager{p, t}
		},
		Owner: "test-pool-contract", Base: baseImage,
		ShOnly: image(t, "sh", onlySh), NoShell: image(t, "none", noShell),
		NonRoot:    image(t, "user", strings.Replace(committed, "$CHANGES", `--change "USER www-data"`, 1)),
		Entrypoint: image(t, "entry", strings.Replace(committed, "$CHANGES", `--change 'ENTRYPOINT ["/bin/false"]' --change 'CMD ["x"]'`, 1)),
		Leftovers: func(t *testing.T, owner string) []string {
			var left []string
			p := open(t, owner)
			defer p.Close()
			for _, other := range pools {
				other.Drain() // spares are the pool's own, not left over
			}
			listed, err := p.List(context.Background())
			for _, l := range listed {
				left = append(left, l.ID)
			}
			return append(left, errorText(err)...)
		},
	})
}

func errorText(err error) []string {
	if err == nil || errors.Is(err, context.Canceled) {
		return nil
	}
	return []string{err.Error()}
}
