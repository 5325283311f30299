package docker

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"

	"proctor/sandbox"
	"proctor/sandbox/confine"
	"proctor/sandbox/sandboxtest"
)

const baseImage = "proctor/base:dev"

// needDocker gives a client of a daemon that has the base image. Without one the test fails where a run
// demands Docker, and is skipped, loudly, elsewhere.
func needDocker(t *testing.T) *client.Client {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED under -short: needs Docker")
	}
	cli, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cli.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	lack := "run `make docker`: no Docker daemon answers"
	if _, err = cli.Ping(ctx); err == nil {
		lack = "run `make image`: the daemon has no " + baseImage
		_, err = cli.ImageInspect(ctx, baseImage)
	}
	if err != nil {
		if os.Getenv("CI") == "true" || os.Getenv("PROCTOR_REQUIRE_DOCKER") == "1" {
			t.Fatalf("%s: %v", lack, err)
		}
		t.Skipf("NOT TESTED, needs Docker: %s: %v", lack, err)
	}
	return cli
}

// builtIn is the folder of the box agent, "" before it is built.
var builtIn string

// builtBox builds the box agent once for all tests of the package.
var builtBox = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "boxd")
	if err != nil {
		return "", err
	}
	builtIn = folder
	path := filepath.Join(folder, "boxd")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", path, "proctor/cmd/boxd")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	return path, build.Run()
})

func TestMain(m *testing.M) {
	status := m.Run()
	_ = os.RemoveAll(builtIn)
	os.Exit(status)
}

// newEngine gives an engine of an owner with a box agent built from this tree.
func newEngine(t *testing.T, owner string) *Engine {
	t.Helper()
	path, err := builtBox()
	if err != nil {
		t.Fatalf("build the box agent: %v", err)
	}
	engine, err := New(Options{Owner: owner, BoxPath: path})
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

// newOwner gives an owner of its own to a test, and removes at the end whatever it left.
func newOwner(t *testing.T, cli *client.Client) string {
	owner := "test-" + confine.RandomHex(4)
	t.Cleanup(func() {
		for _, suffix := range []string{"", "-other", "-create"} {
			engine, err := New(Options{Owner: owner + suffix})
			if err != nil {
				t.Fatal(err)
			}
			listed, _ := engine.List(context.Background())
			for _, l := range listed {
				_ = engine.Remove(context.Background(), l.ID)
			}
			_ = engine.RemoveServices(context.Background())
			_ = engine.Sweep(context.Background())
			_ = engine.Close()
		}
		_, _ = cli.ImageRemove(context.Background(), "proctor-test/commit:"+owner, image.RemoveOptions{})
	})
	return owner
}

// derived makes an image of the base with Dockerfile lines; it goes at the test's end.
func derived(t *testing.T, cli *client.Client, owner, name string, changes ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ref := "proctor-test/" + name + ":" + owner
	made, err := cli.ContainerCreate(ctx, &container.Config{Image: baseImage}, &container.HostConfig{NetworkMode: "none"}, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	defer cli.ContainerRemove(context.Background(), made.ID, container.RemoveOptions{Force: true})
	t.Cleanup(func() { _, _ = cli.ImageRemove(context.Background(), ref, image.RemoveOptions{Force: true}) })
	if _, err = cli.ContainerCommit(ctx, made.ID, container.CommitOptions{Reference: ref, Changes: changes}); err != nil {
		t.Fatal(err)
	}
	return ref
}

// imported makes an image of a tar stream's files; it goes at the test's end.
func imported(t *testing.T, cli *client.Client, owner, name string, files []byte) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ref := "proctor-test/" + name + ":" + owner
	t.Cleanup(func() { _, _ = cli.ImageRemove(context.Background(), ref, image.RemoveOptions{Force: true}) })
	answer, err := cli.ImageImport(ctx, image.ImportSource{Source: bytes.NewReader(files), SourceName: "-"}, ref, image.ImportOptions{Changes: []string{"ENV PATH=/bin"}})
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Close()
	if _, err := io.Copy(io.Discard, answer); err != nil {
		t.Fatal(err)
	}
	return ref
}

// leftovers lists what exists on the host for an owner: containers, networks and run folders.
func leftovers(cli *client.Client) func(t *testing.T, owner string) []string {
	return func(t *testing.T, owner string) []string {
		t.Helper()
		var left []string
		found, err := cli.ContainerList(context.Background(), container.ListOptions{All: true,
			Filters: filters.NewArgs(filters.Arg("label", labelOwner+"="+owner))})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range found {
			left = append(left, "container "+strings.Join(c.Names, " "))
		}
		folders, err := confine.NewRunRoot("", owner).Folders()
		if err != nil {
			t.Fatal(err)
		}
		return append(left, folders...)
	}
}

func TestContract(t *testing.T) {
	cli := needDocker(t)
	owner := newOwner(t, cli)
	boxd, err := builtBox()
	if err != nil {
		t.Fatal(err)
	}
	sandboxtest.Run(t, sandboxtest.Lab{
		Engine:     func(t *testing.T, owner string) sandbox.Engine { return newEngine(t, owner) },
		Owner:      owner,
		Base:       baseImage,
		ShOnly:     imported(t, cli, owner, "sh", sandboxtest.Busybox(t)),
		NoShell:    imported(t, cli, owner, "none", make([]byte, 1024)),
		Distroless: imported(t, cli, owner, "one", sandboxtest.OneProgram(t, boxd)),
		NonRoot:    derived(t, cli, owner, "user", "USER www-data"),
		Entrypoint: derived(t, cli, owner, "entry", `ENTRYPOINT ["/bin/false"]`, `CMD ["x"]`),
		Leftovers:  leftovers(cli),
	})
}
