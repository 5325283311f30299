package images

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"proctor/sandbox"
)

// layerOf gives a layer with files by name; a name that ends in a slash is a folder.
func layerOf(t testing.TB, files map[string]string) v1.Layer {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for path, body := range files {
		head := &tar.Header{Typeflag: tar.TypeReg, Name: path, Mode: 0o644, Size: int64(len(body)), ModTime: time.Unix(1e9, 0)}
		if strings.HasSuffix(path, "/") {
			head.Typeflag, head.Mode, head.Size = tar.TypeDir, 0o755, 0
		}
		if err := w.WriteHeader(head); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, body); err != nil && head.Typeflag == tar.TypeReg {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return layerFrom(t, buf.Bytes())
}

func layerFrom(t testing.TB, data []byte) v1.Layer {
	t.Helper()
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil })
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// imageOf gives an image of layers for an architecture.
func imageOf(t testing.TB, arch string, layers ...v1.Layer) v1.Image {
	t.Helper()
	img, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", arch
	config.Config.User, config.Config.Env = "me", []string{"A=b"}
	if img, err = mutate.ConfigFile(img, config); err != nil {
		t.Fatal(err)
	}
	return img
}

// twoLayers is an image whose upper layer hides a file of the lower one.
func twoLayers(t testing.TB) v1.Image {
	return imageOf(t, runtime.GOARCH, layerOf(t, map[string]string{"etc/": "", "etc/a": "a", "etc/b": "b"}), layerOf(t, map[string]string{"etc/.wh.a": "", "etc/c": "c"}))
}

func newStore(t testing.TB) *Store {
	t.Helper()
	if os.Geteuid() != 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("run the tests as root: engines do")
		}
		t.Skip("NOT TESTED, needs root")
	}
	s, err := Open(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// writeLayout writes images as a layout; names are their tags.
func writeLayout(t testing.TB, images map[string]v1.Image) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lay:out")
	l, err := layout.Write(path, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	for tag, img := range images {
		if err := l.AppendImage(img, layout.WithAnnotations(map[string]string{refName: tag})); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// archived gives a folder as a tar file.
func archived(t testing.TB, folder string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "layout.tar")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := tar.NewWriter(f)
	if err := errors.Join(w.AddFS(os.DirFS(folder)), w.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

func saved(t testing.TB, img v1.Image) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "saved.tar")
	tag, err := name.NewTag("some/name:tag")
	if err != nil {
		t.Fatal(err)
	}
	if err := tarball.WriteToFile(path, tag, img); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEveryKindOfFileGivesTheSameImage(t *testing.T) {
	img := twoLayers(t)
	folder := writeLayout(t, map[string]v1.Image{"one": img})
	two := writeLayout(t, map[string]v1.Image{"one": img, "other": imageOf(t, runtime.GOARCH)})
	file := saved(t, img)
	for _, ref := range []string{
		folder, "oci:" + folder, "oci:" + folder + ":one", "oci:" + two + ":one", archived(t, folder), "oci-archive:" + archived(t, folder) + ":one",
		file, "docker-archive:" + file, "docker-archive:" + file + ":some/name:tag",
	} {
		s := newStore(t)
		r, err := s.Resolve(context.Background(), ref, Sources{NoRegistry: true})
		if err != nil {
			t.Errorf("%s: %v", ref, err)
			continue
		}
		want, _ := img.ConfigName()
		if r.Digest != want.String() || len(r.Layers) != 2 || r.User != "me" || r.Env[0] != "A=b" || r.Size != 3 {
			t.Errorf("%s: %+v", ref, r)
		}
		upper := filepath.Join(s.path, LayerPath(r.Layers[1]), "etc")
		if info, err := os.Lstat(upper + "/a"); err != nil || info.Mode()&os.ModeCharDevice == 0 {
			t.Errorf("%s: the whiteout is %v %v", ref, info, err)
		}
		if again, err := s.Lookup(r.Digest); err != nil || again.Digest != r.Digest {
			t.Errorf("%s: %+v %v", ref, again, err)
		}
		if left, _ := filepath.Glob(filepath.Join(s.path, "t", "*")); len(left) != 2 { // the layers' locks
			t.Errorf("%s: left %v", ref, left)
		}
	}
}

func TestBadImagesAreTyped(t *testing.T) {
	img := twoLayers(t)
	other := "arm64"
	if runtime.GOARCH == other {
		other = "amd64"
	}
	good := saved(t, img)
	data, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, data []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	lying := writeLayout(t, map[string]v1.Image{"x": imageOf(t, runtime.GOARCH, layerFrom(t, []byte(strings.Repeat("no tar at all ", 100))))})
	many := make([]v1.Layer, maxLayers+1)
	for i := range many {
		many[i] = layerOf(t, map[string]string{"f": strings.Repeat("x", i)})
	}
	for ref, want := range map[string]struct {
		err   error
		words string
	}{
		writeLayout(t, map[string]v1.Image{"x": imageOf(t, other)}): {sandbox.ErrBadImage, "linux/" + other + " and this machine is linux/" + runtime.GOARCH},
		lying:                                   {sandbox.ErrBadImage, "layer sha256:"},
		write("cut.tar", data[:len(data)-3000]): {sandbox.ErrBadImage, "cut.tar"},
		write("text.tar", []byte("hello")):      {sandbox.ErrBadImage, "no tar archive"},
		write("empty.tar", make([]byte, 1024)):  {sandbox.ErrBadImage, "neither manifest.json nor index.json"},
		t.TempDir():                             {sandbox.ErrBadImage, "no OCI layout"},
		"oci:/no/such/folder":                   {sandbox.ErrNoImage, "there is no /no/such/folder"},
		"oci:" + lying + ":none":                {sandbox.ErrNoImage, `none is named "none"`},
		writeLayout(t, map[string]v1.Image{"a": img, "b": img}):                                         {sandbox.ErrNoImage, "holds 2 images"},
		writeLayout(t, map[string]v1.Image{"x": imageOf(t, runtime.GOARCH, many...)}):                   {sandbox.ErrBadImage, "at most 120 can be mounted"},
		writeLayout(t, map[string]v1.Image{"x": imageOf(t, runtime.GOARCH, deviceLayer(t, "srv/sda"))}): {sandbox.ErrBadImage, `entry "srv/sda": device nodes are refused`},
		"":                 {sandbox.ErrNoImage, "is no image reference"},
		"a b":              {sandbox.ErrNoImage, "is no image reference"},
		"proctor/none:dev": {sandbox.ErrNoImage, "make image"},
	} {
		s := newStore(t)
		_, err := s.Resolve(context.Background(), ref, Sources{NoRegistry: true})
		if !errors.Is(err, want.err) || !strings.Contains(err.Error(), want.words) {
			t.Errorf("%s: %v, want %q", ref, err, want.words)
		}
		if left, _ := filepath.Glob(filepath.Join(s.path, "l", "*")); len(left) > 0 && len(left) < maxLayers {
			for _, l := range left {
				if _, err := os.Stat(filepath.Join(s.path, "m", filepath.Base(l))); err != nil {
					t.Errorf("%s: half a layer is left: %v", ref, l)
				}
			}
		}
	}
	var layer *LayerError
	_, err = newStore(t).Resolve(context.Background(), lying, Sources{})
	if !errors.As(err, &layer) || !strings.HasPrefix(layer.Layer, "sha256:") {
		t.Errorf("the layer is not told: %v", err)
	}
}

func deviceLayer(t testing.TB, path string) v1.Layer {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	if err := errors.Join(w.WriteHeader(&tar.Header{Typeflag: tar.TypeBlock, Name: path, Devmajor: 254}), w.Close()); err != nil {
		t.Fatal(err)
	}
	return layerFrom(t, buf.Bytes())
}

func TestALayerIsItsContent(t *testing.T) {
	s := newStore(t)
	real := layerOf(t, map[string]string{"f": "real"})
	id, _ := layerOf(t, map[string]string{"f": "promised"}).DiffID()
	if _, err := s.unpackOnce(context.Background(), id.String(), real); !errors.Is(err, sandbox.ErrBadImage) || !strings.Contains(err.Error(), "its content is") {
		t.Errorf("%v", err)
	}
	if _, there := s.layer(id.String()); there {
		t.Error("a layer passes for another")
	}
}

// fakeDaemon is a daemon with one image.
type fakeDaemon struct {
	t     testing.TB
	path  string
	id    string
	err   error
	saves int

	config *v1.ConfigFile
}

func (d *fakeDaemon) Inspect(context.Context, string) (string, *v1.ConfigFile, error) {
	return d.id, d.config, d.err
}
func (d *fakeDaemon) Save(context.Context, string) (io.ReadCloser, error) {
	d.saves++
	return os.Open(d.path)
}

func TestDaemonsImagesAreExportedOnce(t *testing.T) {
	img := twoLayers(t)
	id, _ := img.ConfigName()
	config, _ := img.ConfigFile()
	daemon := &fakeDaemon{t: t, path: saved(t, img), id: id.String(), config: config}
	s := newStore(t)
	var group sync.WaitGroup
	for range 6 { // each as a process of its own
		group.Go(func() {
			own, err := Open(s.path, 0)
			if err == nil {
				_, err = own.Resolve(context.Background(), "name:tag", Sources{Daemon: daemon})
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if daemon.saves != 1 {
		t.Errorf("exported %d times", daemon.saves)
	}
	derived := config.DeepCopy() // as by `docker commit`: needs no export
	derived.Config.User = "other"
	empty, _ := v1.NewHash(emptyLayer)
	derived.RootFS.DiffIDs = append(derived.RootFS.DiffIDs, empty)
	daemon.id, daemon.config = "sha256:"+strings.Repeat("d", 64), derived
	if r, err := s.Resolve(context.Background(), "derived", Sources{Daemon: daemon}); err != nil || r.User != "other" || len(r.Layers) != 3 || daemon.saves != 1 {
		t.Errorf("%+v %v, exported %d times", r, err, daemon.saves)
	}
	daemon.err = errNoDaemon // what is known stays known without it
	if r, err := s.Resolve(context.Background(), "name:tag", Sources{Daemon: daemon, NoRegistry: true}); err != nil || r.Digest != id.String() {
		t.Errorf("%+v %v", r, err)
	}
	if r, err := s.Resolve(context.Background(), id.String(), Sources{NoRegistry: true}); err != nil || r.Digest != id.String() {
		t.Errorf("by id: %+v %v", r, err)
	}
	if _, err := s.Resolve(context.Background(), "other:tag", Sources{Daemon: daemon, NoRegistry: true}); !errors.Is(err, sandbox.ErrNoImage) {
		t.Errorf("%v", err)
	}
}

func TestCommitAndGC(t *testing.T) {
	s := newStore(t)
	ctx := context.Background()
	base, err := s.Resolve(ctx, writeLayout(t, map[string]v1.Image{"x": twoLayers(t)}), Sources{})
	if err != nil {
		t.Fatal(err)
	}
	upper := t.TempDir()
	if err := os.WriteFile(filepath.Join(upper, "new"), []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	made, err := s.Commit(ctx, base, upper, "some/commit:x", "me")
	if err != nil || len(made.Layers) != 3 || made.User != "me" || made.Size != base.Size+3 {
		t.Fatalf("%+v %v", made, err)
	}
	if again, err := s.Resolve(ctx, "some/commit:x", Sources{}); err != nil || again.Digest != made.Digest || len(s.Refs("me")) != 1 || len(s.Refs("you")) != 0 {
		t.Errorf("%+v %v", again, err)
	}
	if _, err := s.Commit(ctx, base, upper, "oci:/x", "me"); err == nil {
		t.Error("a commit under a file's name")
	}
	crash := s.workFolder()
	if err := errors.Join(os.Mkdir(crash, 0o700), os.Mkdir(filepath.Join(s.path, "l", "half"), 0o700)); err != nil {
		t.Fatal(err)
	}
	none := func() (map[string]bool, error) { return nil, nil }
	if got, err := s.GC(ctx, func(Record) bool { return false }, none, false); err != nil || len(got.Images) != 0 || got.Layers != 1 {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := os.Lstat(crash); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a crash's work stays: %v", err)
	}
	mounted := func() (map[string]bool, error) {
		return map[string]bool{base.Layers[0]: true, base.Layers[1]: true}, nil
	}
	if got, err := s.GC(ctx, func(Record) bool { return true }, mounted, true); err != nil || len(got.Images) != 1 || got.Layers != 1 {
		t.Errorf("dry: %+v %v", got, err)
	}
	if got, err := s.GC(ctx, func(Record) bool { return true }, mounted, false); err != nil || len(got.Images) != 1 || got.Layers != 1 {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := s.Lookup(base.Digest); err != nil {
		t.Errorf("an image in use went: %v", err)
	}
	if _, err := s.Resolve(ctx, "some/commit:x", Sources{NoRegistry: true}); !errors.Is(err, sandbox.ErrNoImage) || len(s.Refs("me")) != 0 {
		t.Errorf("the commit: %v", err)
	}
}

func TestWhatAPowerFailureMayHaveTakenIsMadeAgain(t *testing.T) {
	s := newStore(t)
	ref := writeLayout(t, map[string]v1.Image{"x": twoLayers(t)})
	r, err := s.Resolve(context.Background(), ref, Sources{})
	if err != nil {
		t.Fatal(err)
	}
	note, _ := s.layer(r.Layers[0])
	note.Boot = "an earlier one"
	if err := s.write("m/"+key(note.ID), note); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Lookup(r.Digest); !errors.Is(err, sandbox.ErrNoImage) {
		t.Errorf("%v", err)
	}
	if _, err := s.Resolve(context.Background(), ref, Sources{}); err != nil {
		t.Error(err)
	}
	if _, err := s.Lookup(r.Digest); err != nil {
		t.Error(err)
	}
}
