package oci

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"proctor/sandbox"
	"proctor/sandbox/confine"
	"proctor/sandbox/sandboxtest"
)

const baseImage = "proctor/base:dev"

// lacking fails a test where a run demands what is lacking, and skips it, loudly, elsewhere.
func lacking(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" || os.Getenv("PROCTOR_REQUIRE_DOCKER") == "1" {
		t.Fatalf(format, args...)
	}
	t.Skipf("NOT TESTED, "+format, args...)
}

// needRuntime makes sure that a runtime is there, that we are root, and that a daemon has the base image.
func needRuntime(t *testing.T, name string) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED under -short: needs an OCI runtime and root")
	}
	if os.Geteuid() != 0 {
		lacking(t, "run the tests as root")
	}
	if _, err := findRuntime(name); err != nil {
		lacking(t, "%v", err)
	}
	cli, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	defer cli.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if _, err := cli.ImageInspect(ctx, baseImage); err != nil {
		lacking(t, "run `make image`: %v", err)
	}
}

// built is the folder of the box agent, and of the store that the tests share; "" before they are made.
var built, sharedStore string

// builtBox builds the box agent once for all tests of the package.
var builtBox = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "boxd")
	if err != nil {
		return "", err
	}
	built = folder
	path := filepath.Join(folder, "boxd")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", path, "proctor/cmd/boxd")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	return path, build.Run()
})

// store gives the tests' own store, on the disk that the machine's would be on.
var store = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("/var/lib", "initd-test")
	if err != nil {
		return "", err
	}
	sharedStore = folder
	return folder, os.Chmod(folder, 0o711) // as the users of a user namespace need it
})

func TestMain(m *testing.M) {
	status := m.Run()
	for _, folder := range []string{built, sharedStore} {
		if folder == "" {
			continue
		}
		if err := os.RemoveAll(folder); err != nil {
			println("left behind:", folder, err.Error())
			status = 1
		}
	}
	os.Exit(status)
}

// newEngine gives an engine of an owner with a box agent built from this tree.
func newEngine(t *testing.T, o Options) *Engine {
	t.Helper()
	path, err := builtBox()
	if err != nil {
		t.Fatalf("build the box agent: %v", err)
	}
	o.BoxPath, o.NoPull = path, true
	if o.Store == "" {
		if o.Store, err = store(); err != nil {
			t.Fatal(err)
		}
	}
	engine, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

// newOwner gives an owner of its own to a test, and removes at the end whatever it left.
func newOwner(t *testing.T) string {
	owner := "test-" + confine.RandomHex(4)
	t.Cleanup(func() {
		for _, suffix := range []string{"", "-other", "-create"} {
			engine := newEngine(t, Options{Owner: owner + suffix})
			listed, _ := engine.List(context.Background())
			for _, l := range listed {
				_ = engine.Remove(context.Background(), l.ID)
			}
			_ = engine.Sweep(context.Background())
			_ = engine.Close()
		}
	})
	return owner
}

// leftovers lists what exists on the host for an owner: folders, mounts, run folders and cgroups.
func leftovers(t *testing.T, owner string) []string {
	t.Helper()
	e := newEngine(t, Options{Owner: owner})
	var left []string
	entries, err := os.ReadDir(filepath.Join(e.path, e.boxes))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, entry := range entries {
		left = append(left, "folder "+entry.Name())
	}
	folders, err := e.root.Folders()
	if err != nil {
		t.Fatal(err)
	}
	left = append(left, folders...)
	for _, id := range machineCgroups().ofOwner(e.mark) {
		left = append(left, "cgroup of "+id)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, e.mark) {
			left = append(left, "mount "+line)
		}
	}
	states, _ := filepath.Glob(filepath.Join(e.runtimeRoot(), "*"))
	return append(left, states...)
}

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

// commit makes an image of the base with Dockerfile lines in the daemon; it goes at the test's end.
func commit(t *testing.T, owner, name string, changes ...string) string {
	t.Helper()
	cli, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	defer cli.Close()
	ctx := context.Background()
	ref := "proctor-test/" + name + ":" + owner
	made, err := cli.ContainerCreate(ctx, &container.Config{Image: baseImage}, &container.HostConfig{NetworkMode: "none"}, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = cli.ContainerCommit(ctx, made.ID, container.CommitOptions{Reference: ref, Changes: changes})
	if err = errors.Join(err, cli.ContainerRemove(ctx, made.ID, container.RemoveOptions{Force: true})); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cli, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
		if err == nil {
			_, err = cli.ImageRemove(ctx, ref, image.RemoveOptions{Force: true})
			err = errors.Join(err, cli.Close())
		}
		if err != nil {
			t.Error(err)
		}
	})
	return ref
}

// layoutOf gives a ref of an OCI layout whose one layer is a tar stream.
func layoutOf(t *testing.T, files []byte) string {
	t.Helper()
	img, err := mutate.AppendLayers(empty.Image, static.NewLayer(files, types.OCIUncompressedLayer))
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config.Env = []string{"PATH=/bin"}
	if img, err = mutate.ConfigFile(img, config); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "layout")
	l, err := layout.Write(path, empty.Index)
	if err == nil {
		err = l.AppendImage(img)
	}
	if err != nil {
		t.Fatal(err)
	}
	return "oci:" + path
}

// lab is the suite's, for engines of one runtime.
func lab(t *testing.T, name string) sandboxtest.Lab {
	needRuntime(t, name)
	owner := newOwner(t)
	boxd, err := builtBox()
	if err != nil {
		t.Fatal(err)
	}
	return sandboxtest.Lab{
		Engine: func(t *testing.T, owner string) sandbox.Engine {
			return newEngine(t, Options{Owner: owner, Runtime: name})
		},
		Owner:      owner,
		Base:       baseImage,
		ShOnly:     layoutOf(t, sandboxtest.Busybox(t)),
		NoShell:    layoutOf(t, make([]byte, 1024)),
		Distroless: layoutOf(t, sandboxtest.OneProgram(t, boxd)),
		NonRoot:    commit(t, owner, "user", "USER www-data"),
		Entrypoint: commit(t, owner, "entry", `ENTRYPOINT ["/bin/false"]`, `CMD ["x"]`),
		Leftovers:  leftovers,
	}
}

func TestContract(t *testing.T) { sandboxtest.Run(t, lab(t, "runc")) }
