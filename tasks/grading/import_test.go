package grading

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

// stream makes a tar stream of headers; regular files hold their own name unless content says else.
func stream(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range headers {
		content := []byte(nil)
		if h.Typeflag == tar.TypeReg {
			content = []byte(h.Name)
			h.Size = int64(len(content))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func reg(name string, mode int64) tar.Header {
	return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode}
}

func testRepo(t testing.TB) *repo {
	t.Helper()
	r, err := newRepo(context.Background(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestImportTakesAndLeaves(t *testing.T) {
	r := testRepo(t)
	tree, notes, err := r.importTar(context.Background(), bytes.NewReader(stream(t,
		tar.Header{Typeflag: tar.TypeDir, Name: "w/", Mode: 0o755},
		reg("w/a.py", 0o644), reg("w/run.sh", 0o755), reg("w/.git/config", 0o644), reg("w/sub/.GIT/hooks/x", 0o755),
		reg("w/../../etc/passwd", 0o644), reg("/etc/shadow", 0o644), reg("w/./b", 0o644), reg("w//c", 0o644),
		reg("w/__pycache__/a.pyc", 0o644), reg("w/b.pyc", 0o644), reg("w/odd \"n\n\xff", 0o600),
		tar.Header{Typeflag: tar.TypeSymlink, Name: "w/link", Linkname: "/etc/shadow"},
		tar.Header{Typeflag: tar.TypeLink, Name: "w/hard", Linkname: "w/run.sh"},
		tar.Header{Typeflag: tar.TypeLink, Name: "w/stolen", Linkname: "../../etc/shadow"},
		tar.Header{Typeflag: tar.TypeFifo, Name: "w/pipe"},
		tar.Header{Typeflag: tar.TypeBlock, Name: "w/disk", Devmajor: 8},
	)), "agent")
	if err != nil {
		t.Fatal(err)
	}
	files, err := r.list(context.Background(), tree)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a.py": "100644", "run.sh": "100755", "link": "120000", "hard": "100755", "odd \"n\n\xff": "100644", "shadow": "100644"}
	for name, mode := range want {
		if files[name].mode != mode {
			t.Errorf("%q has mode %q, want %s", name, files[name].mode, mode)
		}
	}
	if len(files) != len(want) {
		t.Errorf("files %v", files)
	}
	if len(notes) != 3 {
		t.Errorf("notes %q, want one each for the stolen link, the pipe and the device", notes)
	}
	link, err := r.blob(context.Background(), files["link"].hash, 100)
	if err != nil || string(link) != "/etc/shadow" {
		t.Errorf("the link holds %q, %v", link, err)
	}
}

func TestImportIsOrderless(t *testing.T) {
	r := testRepo(t)
	a, _, err := r.importTar(context.Background(), bytes.NewReader(stream(t, reg("w/a", 0o644), reg("w/b", 0o644))), "one")
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := r.importTar(context.Background(), bytes.NewReader(stream(t, reg("x/b", 0o664), reg("x/a", 0o600))), "two")
	if err == nil && a == b {
		t.Fatal("contents are the names, which differ: the trees must too")
	}
	c, _, err := r.importTar(context.Background(), bytes.NewReader(stream(t, reg("w/b", 0o600), reg("w/a", 0o640))), "three")
	if err != nil || a != c {
		t.Errorf("trees %s and %s, %v: want the same", a, c, err)
	}
}

func TestImportRefuses(t *testing.T) {
	whole := stream(t, reg("w/a", 0o644), reg("w/b", 0o644))
	huge := tar.Header{Typeflag: tar.TypeReg, Name: "w/huge", Mode: 0o644, Size: maxFileBytes + 1}
	var big bytes.Buffer
	if err := tar.NewWriter(&big).WriteHeader(&huge); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		data []byte
		want error
	}{
		"cut off":  {whole[:700], errTar},
		"nonsense": {bytes.Repeat([]byte("x"), 2048), errTar},
		"huge":     {big.Bytes(), ErrTooBig},
	} {
		if _, _, err := testRepo(t).importTar(context.Background(), bytes.NewReader(tc.data), "x"); !errors.Is(err, tc.want) {
			t.Errorf("%s: error %v, want %v", name, err, tc.want)
		}
	}
}

func TestDiffAppliesBack(t *testing.T) {
	ctx, r := context.Background(), testRepo(t)
	base, _, err := r.importTar(ctx, bytes.NewReader(stream(t, reg("w/a", 0o644), reg("w/d/x", 0o644), reg("w/.gitattributes", 0o644))), "base")
	if err != nil {
		t.Fatal(err)
	}
	agent, _, err := r.importTar(ctx, bytes.NewReader(stream(t, reg("w/a", 0o755), reg("w/d", 0o644),
		tar.Header{Typeflag: tar.TypeSymlink, Name: "w/l", Linkname: "a"})), "agent")
	if err != nil {
		t.Fatal(err)
	}
	patch, err := r.diff(ctx, base, agent, maxPatch)
	if err != nil {
		t.Fatal(err)
	}
	got, step, err := r.apply(ctx, base, patch, nil)
	if err != nil || step != StepApply {
		t.Fatalf("step %s, %v", step, err)
	}
	want, _ := r.list(ctx, agent)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("applied %v, want %v\n%s", got, want, patch)
	}
	if _, err := r.diff(ctx, base, agent, 10); !errors.Is(err, ErrTooBig) {
		t.Errorf("a diff over its limit: %v", err)
	}
}

// FuzzImportTar reads hostile streams up to the point where git takes over, which is too slow to fuzz.
func FuzzImportTar(f *testing.F) {
	f.Add(stream(f, reg("w/a", 0o644), tar.Header{Typeflag: tar.TypeSymlink, Name: "w/l", Linkname: "../../x"}))
	f.Add(stream(f, reg("w/a/b", 0o644), reg("w/a", 0o644), reg("w/\n\"\\", 0o755), reg("w//c", 0o644)))
	f.Fuzz(func(t *testing.T, data []byte) {
		im := &importer{out: bufio.NewWriter(io.Discard), files: map[string]imported{}}
		if err := im.read(tar.NewReader(bytes.NewReader(data))); err != nil {
			return
		}
		if err := im.commit("x"); err != nil {
			t.Fatal(err)
		}
		for name := range im.files {
			slashed := strings.ToLower("/" + name + "/")
			if strings.Contains(slashed, "//") || strings.Contains(slashed, "/../") || strings.Contains(slashed, "/./") || strings.Contains(slashed, "/.git/") {
				t.Fatalf("took %q", name)
			}
			if q := quotePath(name); strings.ContainsAny(q, "\n\x00") {
				t.Fatalf("quoted as %q", q)
			}
		}
	})
}

func TestScratchIsRemoved(t *testing.T) {
	dir := t.TempDir()
	r, err := newRepo(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.close(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
