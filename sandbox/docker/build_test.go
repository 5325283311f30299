package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"

	"proctor/sandbox"
	"proctor/sandbox/confine"
)

// contextOf makes a build's context.
func contextOf(t *testing.T, files map[string]string) io.Reader {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range sortedKeys(files) {
		if err := addBytes(w, name, []byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

const lentIndex = "https://user:secret-of-the-proxy@mirror.example/simple"

// A build is given settings and certificates, in every stage and past a .dockerignore, and the image
// has neither: not in a layer, not in its settings, not in its history.
func TestBuildLendsAndLeavesNothing(t *testing.T) {
	cli := needDocker(t)
	e := suiteEngine(t)
	ref := "proctor/built:test-" + confine.RandomHex(6)
	t.Cleanup(func() { removeImage(t, cli, ref) })
	dockerfile := `# escape=\
FROM ` + baseImage + ` AS first
RUN env | grep -q 'simple$' && \
    # a comment inside
    grep -q CERTIFICATE "$SSL_CERT_FILE" && grep -q ca.pem "$APT_CONFIG" && echo one > /one
from first
COPY kept.txt /kept
COPY . /all
COPY --from=first /one /two
RUN test -s "$REQUESTS_CA_BUNDLE" && env | grep -c simple > /three
ENV MINE=yes`
	var steps []string
	img, err := e.BuildImage(context.Background(), sandbox.ImageBuild{
		Context:    contextOf(t, map[string]string{"Dockerfile": dockerfile, ".dockerignore": "*\n!kept.txt\n", "kept.txt": "kept", "left.txt": "left"}),
		Dockerfile: "Dockerfile", Ref: ref, NoNetwork: true,
		Env: map[string]string{"PIP_INDEX_URL": lentIndex, "HTTPS_PROXY": "http://proxy-of-the-test.invalid:1"}, CA: []byte("-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"),
		Progress: func(step string) { steps = append(steps, step) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := len(steps); got != 8 || !strings.Contains(steps[2], "FROM") && !strings.Contains(steps[2], "from") {
		t.Errorf("steps told: %q", steps)
	}
	checkNothingLent(t, cli, img)
}

func checkNothingLent(t *testing.T, cli *client.Client, img sandbox.Image) {
	t.Helper()
	ctx := context.Background()
	saved, err := cli.ImageSave(ctx, []string{img.Ref})
	if err != nil {
		t.Fatal(err)
	}
	defer saved.Close()
	all, err := io.ReadAll(saved)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"secret-of-the-proxy", ".lent-", "tmp/.certs", "proxy-of-the-test", "BEGIN CERTIFICATE-----\nx", "PIP_INDEX_URL="} {
		if bytes.Contains(all, []byte(secret)) {
			at := bytes.Index(all, []byte(secret))
			t.Errorf("the saved image holds %q: %q", secret, all[max(0, at-200):min(len(all), at+200)])
		}
	}
	for _, kept := range []string{"MINE=yes", "kept", "three"} {
		if !bytes.Contains(all, []byte(kept)) {
			t.Errorf("the saved image lacks %q", kept)
		}
	}
	left, err := cli.ImageList(ctx, image.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range left {
		for _, tag := range i.RepoTags {
			if strings.HasPrefix(tag, "proctor/building:") {
				t.Errorf("%s was left", tag)
			}
		}
	}
	made, err := cli.ContainerCreate(ctx, &container.Config{Image: img.Ref, Cmd: []string{"true"}, Labels: map[string]string{"proctor": "test"}}, nil, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cli.ContainerRemove(ctx, made.ID, container.RemoveOptions{Force: true}) }()
	for name, want := range map[string]bool{"/one": true, "/two": true, "/three": true, "/kept": true, "/tmp": true, "/tmp/.certs": false, "/all/kept.txt": true} {
		_, err := cli.ContainerStatPath(ctx, made.ID, name)
		if (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func removeImage(t *testing.T, cli *client.Client, ref string) {
	t.Helper()
	if _, err := cli.ImageRemove(context.Background(), ref, image.RemoveOptions{Force: true, PruneChildren: true}); err != nil && !strings.Contains(err.Error(), "No such image") {
		t.Errorf("removing %s: %v", ref, err)
	}
}

// Errors name the step and carry the end of its output, and no secret.
func TestBuildFaults(t *testing.T) {
	cli := needDocker(t)
	e := suiteEngine(t)
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"failing step":  {map[string]string{"Dockerfile": "FROM " + baseImage + "\nRUN echo before; echo \"$PIP_INDEX_URL\"; exit 3\n"}, []string{"exit 3", "before", "$PIP_INDEX_URL", "step "}},
		"no such image": {map[string]string{"Dockerfile": "FROM proctor/not-there:1\n"}, []string{"not-there", "step 1/"}},
		"no Dockerfile": {map[string]string{"other": "x"}, []string{"the context holds no Dockerfile"}},
		"bad syntax":    {map[string]string{"Dockerfile": "FROM " + baseImage + "\nRUNN x\n"}, []string{"RUNN"}},
	} {
		t.Run(name, func(t *testing.T) {
			ref := "proctor/built:test-" + confine.RandomHex(6)
			_, err := e.BuildImage(context.Background(), sandbox.ImageBuild{Context: contextOf(t, c.files), Dockerfile: "Dockerfile", Ref: ref, NoNetwork: true,
				Env: map[string]string{"PIP_INDEX_URL": lentIndex}})
			if !errors.Is(err, sandbox.ErrBuild) {
				t.Fatalf("error is %v", err)
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q is not in: %v", w, err)
				}
			}
			if strings.Contains(err.Error(), "secret-of") {
				t.Errorf("the error tells what was lent: %v", err)
			}
			if _, err := cli.ImageInspect(context.Background(), ref); err == nil {
				t.Error("an image was kept")
				removeImage(t, cli, ref)
			}
		})
	}
}

var suiteBuildEngine sync.Mutex // builds of tests run one at a time: they share a machine of two cores

// suiteEngine gives an engine for builds.
func suiteEngine(t *testing.T) *Engine {
	t.Helper()
	suiteBuildEngine.Lock()
	t.Cleanup(suiteBuildEngine.Unlock)
	e, err := New(Options{Owner: "build-test-" + confine.RandomHex(4), NoPull: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// Lines are put after every FROM and nowhere else.
func TestLend(t *testing.T) {
	l := &loan{env: map[string]string{"A_B": "x", "http_proxy": "y"}, folder: "lent"}
	for _, c := range []struct{ in, want string }{
		{"FROM a", "FROM a\nARG A_B\n"},
		{"FROM a\nRUN b\n", "FROM a\nARG A_B\nRUN b\n"},
		{"ARG V=1\nFROM \\\n  a:$V AS x\nRUN b \\\nFROM c\n", "ARG V=1\nFROM \\\n  a:$V AS x\nARG A_B\nRUN b \\\nFROM c\n"},
		{"from a\nRUN b \\\n# FROM x \\\n  c\nFROM d\n", "from a\nARG A_B\nRUN b \\\n# FROM x \\\n  c\nFROM d\nARG A_B\n"},
		{"# escape=`\nFROM a\nRUN b `\nFROM c\n", "# escape=`\nFROM a\nARG A_B\nRUN b `\nFROM c\n"},
		{"# FROM a\n", "# FROM a\n"},
	} {
		if got := string(l.lend([]byte(c.in))); got != c.want {
			t.Errorf("%q became %q, want %q", c.in, got, c.want)
		}
	}
}
