package harden

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"proctor/sandbox"
)

// tarBox is a sandbox that answers every Pull with the same bytes.
type tarBox struct {
	Box
	stream []byte
}

func (b *tarBox) Pull(context.Context, string) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(b.stream)), nil
}

func (b *tarBox) Stat(_ context.Context, path string) (sandbox.FileInfo, error) {
	if path != "/w" {
		return sandbox.FileInfo{}, fs.ErrNotExist
	}
	return sandbox.FileInfo{Path: path, Real: path}, nil
}

func tarOf(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		content := h.Uname // the content, in a field that nothing else uses here
		h.Uname = ""
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(content))
		}
		h.Mode = 0o777
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := w.Write([]byte(content)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestPullDirIsNotLedAstray(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := tar.Header{Typeflag: tar.TypeDir, Name: "w/"}
	tests := map[string]struct {
		headers []tar.Header
		want    string // error; "" for none
	}{
		"dots":           {[]tar.Header{dir, {Typeflag: tar.TypeReg, Name: "w/../../x", Uname: "x"}}, "outside of it"},
		"absolute":       {[]tar.Header{dir, {Typeflag: tar.TypeReg, Name: "/etc/x", Uname: "x"}}, "outside of it"},
		"other name":     {[]tar.Header{{Typeflag: tar.TypeDir, Name: "v/"}}, "outside of it"},
		"link then file": {[]tar.Header{dir, {Typeflag: tar.TypeSymlink, Name: "w/l", Linkname: filepath.Dir(outside)}, {Typeflag: tar.TypeReg, Name: "w/l/outside", Uname: "x"}}, ""},
		"link as HEAD":   {[]tar.Header{dir, {Typeflag: tar.TypeSymlink, Name: "w/HEAD", Linkname: outside}}, ""},
		"hard link":      {[]tar.Header{dir, {Typeflag: tar.TypeLink, Name: "w/l", Linkname: "w/../../" + outside}}, "hard link"},
		"hard link out":  {[]tar.Header{dir, {Typeflag: tar.TypeLink, Name: "w/l", Linkname: outside}}, "hard link"},
		"device":         {[]tar.Header{dir, {Typeflag: tar.TypeBlock, Name: "w/disk", Devmajor: 8}, {Typeflag: tar.TypeFifo, Name: "w/pipe"}}, ""},
		"a file":         {[]tar.Header{{Typeflag: tar.TypeReg, Name: "w", Uname: "x"}}, "is not a folder"},
		"file over dir":  {[]tar.Header{dir, {Typeflag: tar.TypeDir, Name: "w/a/"}, {Typeflag: tar.TypeReg, Name: "w/a", Uname: "x"}}, "w/a"},
		"long name":      {[]tar.Header{dir, {Typeflag: tar.TypeReg, Name: "w/" + strings.Repeat("x/", 3000) + "y", Uname: "x"}}, "outside of it"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			to := filepath.Join(t.TempDir(), "copy")
			err := pullDir(context.Background(), &tarBox{stream: tarOf(t, test.headers...)}, "/w", to, nil)
			if (test.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want %q", err, test.want)
			}
			if data, _ := os.ReadFile(outside); string(data) != "secret" {
				t.Errorf("the file outside holds %q", data)
			}
			_ = filepath.WalkDir(to, func(p string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() && !d.Type().IsRegular() {
					t.Errorf("%s is %s", p, d.Type())
				}
				if data, _ := os.ReadFile(p); string(data) == "secret" {
					t.Errorf("%s holds what lies outside", p)
				}
				return nil
			})
		})
	}
}

// FuzzSurvey lets a sandbox answer with any stream: an error or a survey, never a panic, and no name
// outside of what was asked for.
func FuzzSurvey(f *testing.F) {
	f.Add(tarOf(f, tar.Header{Typeflag: tar.TypeDir, Name: "w/"}, tar.Header{Typeflag: tar.TypeReg, Name: "w/.git", Uname: "gitdir: ../x"},
		tar.Header{Typeflag: tar.TypeDir, Name: "w/r/objects/"}, tar.Header{Typeflag: tar.TypeReg, Name: "w/r/HEAD", Uname: "x"}))
	f.Add([]byte("no tar"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		s, err := surveyOf(context.Background(), &tarBox{stream: stream}, []string{"/w"})
		if err != nil {
			return
		}
		for name := range s.names {
			if !within(name, "/w") {
				t.Fatalf("name %q", name)
			}
		}
	})
}

// TestRunRandomLeaks puts random sets of leaks together.
func TestRunRandomLeaks(t *testing.T) {
	alone := map[string]bool{"staged": true, "replace ref": true, "fsmonitor": true, "detached": true, "alternates": true, "submodule": true, "stash": true, "packed dangling commit": true}
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 2))
			l := newLab(t)
			l.history()
			for range rng.IntN(4) {
				l.commit("w", fmt.Sprintf("src/r%d.py", rng.IntN(3)), fmt.Sprint(rng.Uint64()))
			}
			fix := l.future()
			var names []string
			want := map[string]bool{}
			used := map[string]bool{}
			for _, i := range rng.Perm(len(leakers))[:12] {
				leak := leakers[i]
				// those that make a branch "next" exclude one another, as do those that change the start
				if alone[leak.name] || strings.Contains("branch packed branch clone bare clone inside bundle commit graph", leak.name) && used["next"] {
					continue
				}
				if strings.Contains("branch packed branch clone bare clone inside bundle commit graph", leak.name) {
					used["next"] = true
				}
				leak.leak(l, fix)
				names = append(names, leak.name)
				want[leak.kind] = true
			}
			before := l.see()
			o, m := l.harden()
			for kind := range want {
				if kind != "" && kind != KindTag && !strings.Contains(" "+kinds(o.Leaks)+" ", " "+kind+" ") {
					t.Errorf("leaks %q: found %q, not %s", names, kinds(o.Leaks), kind)
				}
			}
			if err := m.Verify(context.Background(), l.box); err != nil {
				t.Errorf("leaks %q: %v", names, err)
			}
			l.sameAs(before, "")
			l.onlyAncestors(o)
		})
	}
}
