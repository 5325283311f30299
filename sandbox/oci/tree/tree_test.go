package tree

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// entry is one entry of a stream; a file's content is body.
type entry struct {
	tar.Header
	body string
}

func file(name, body string) entry {
	return entry{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(body))}, body}
}
func folder(name string) entry {
	return entry{tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755}, ""}
}
func symlink(name, to string) entry {
	return entry{tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to, Mode: 0o777}, ""}
}
func hardlink(name, to string) entry {
	return entry{tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: to}, ""}
}
func node(kind byte, name string) entry {
	return entry{tar.Header{Typeflag: kind, Name: name, Devmajor: 1, Devminor: 3, Mode: 0o666}, ""}
}
func xattr(name, value string, e entry) entry {
	e.PAXRecords = map[string]string{xattrPrefix + name: value}
	return e
}

func stream(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, e := range entries {
		head := e.Header
		if head.ModTime.IsZero() {
			head.ModTime = time.Unix(1e9, 0)
		}
		if err := errors.Join(w.WriteHeader(&head), ignore(w.Write([]byte(e.body)))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func ignore(_ int, err error) error { return err }

// needRoot skips what only root can do: give files away, make an overlay's marks.
func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("run the tests as root: engines do")
		}
		t.Skip("NOT TESTED, needs root")
	}
}

// unpacked gives a folder with a stream's files, and one beside it that nobody may touch.
func unpacked(t testing.TB, u Unpacking, data []byte) (string, error) {
	t.Helper()
	world := t.TempDir()
	top := filepath.Join(world, "top")
	if err := errors.Join(os.Mkdir(top, 0o755), os.Mkdir(filepath.Join(world, "beside"), 0o755),
		os.WriteFile(filepath.Join(world, "beside", "f"), []byte("safe"), 0o600)); err != nil {
		t.Fatal(err)
	}
	root, err := Open(top)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	_, err = root.Unpack(context.Background(), bytes.NewReader(data), u)
	return top, err
}

// checkWorld fails where anything but top was made or changed.
func checkWorld(t testing.TB, top string) {
	t.Helper()
	world := filepath.Dir(top)
	names, err := os.ReadDir(world)
	if err != nil || len(names) != 2 {
		t.Fatalf("beside the folder: %v %v", names, err)
	}
	beside, err := os.ReadDir(filepath.Join(world, "beside"))
	body, _ := os.ReadFile(filepath.Join(world, "beside", "f"))
	if err != nil || len(beside) != 1 || string(body) != "safe" {
		t.Fatalf("beside: %v, %q, %v", beside, body, err)
	}
}

func TestUnpackStaysInside(t *testing.T) {
	for name, entries := range map[string][]entry{
		"dots":                    {file("../beside/f", "x"), file("../../etc/hosts", "x")},
		"absolute":                {file("/beside/f", "x")},
		"link to outside":         {symlink("out", "../beside"), file("out/f", "x")},
		"absolute link":           {symlink("out", "/../../beside"), file("out/f", "x")},
		"link chain":              {symlink("a", "b/../.."), symlink("b", "/"), file("a/beside/f", "x")},
		"link replaced by folder": {symlink("d", "../beside"), folder("d"), file("d/f", "x")},
		"magic link":              {symlink("p", "/proc/self/cwd"), folder("p")},
		"hard link out":           {hardlink("h", "../beside/f")},
		"hard link over link":     {symlink("out", "../beside"), hardlink("h", "out/f")},
	} {
		for _, layer := range []bool{false, true} {
			top, _ := unpacked(t, Unpacking{Layer: layer}, stream(t, entries...))
			checkWorld(t, top)
			if body, err := os.ReadFile(filepath.Join(top, "h")); err == nil && string(body) == "safe" {
				t.Errorf("%s: a file outside was linked to", name)
			}
		}
	}
}

func TestUnpackLayer(t *testing.T) {
	needRoot(t)
	own := file("bin/tool", "tool")
	own.Uid, own.Gid, own.Mode = 12, 34, 0o4755
	top, err := unpacked(t, Unpacking{Layer: true}, stream(t,
		folder("./"), symlink("lib", "usr/lib"), folder("usr/lib/"), file("lib/so", "lib"), own, hardlink("bin/same", "bin/tool"),
		file("etc/.wh.gone", ""), file("opt/.wh..wh..opq", ""), file("var/.wh..wh.plnk", ""), file("etc/kept", "a"), file("etc/.wh.kept", ""),
		file("etc/kept", "b"), node(tar.TypeChar, "dev/null"), node(tar.TypeFifo, "run/pipe"), file("was/folder/f", ""), file("was", "now a file"),
		xattr("trusted.overlay.redirect", "/etc", folder("marked")), xattr("user.note", "kept", file("noted", "")), xattr("user.overlay.opaque", "y", folder("odd")),
	))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"usr/lib/so": "lib", "bin/same": "tool", "etc/kept": "b", "was": "now a file"} {
		if got, err := os.ReadFile(filepath.Join(top, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
	var st, same unix.Stat_t
	if err := errors.Join(unix.Stat(filepath.Join(top, "bin/tool"), &st), unix.Stat(filepath.Join(top, "bin/same"), &same)); err != nil ||
		st.Uid != 12 || st.Gid != 34 || st.Mode&0o7777 != 0o4755 || st.Ino != same.Ino || st.Mtim.Sec != 1e9 {
		t.Errorf("%+v, %d, %v", st, same.Ino, err)
	}
	if err := unix.Lstat(filepath.Join(top, "etc/gone"), &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR || st.Rdev != 0 {
		t.Errorf("a whiteout: %+v %v", st, err)
	}
	if got := attribute(filepath.Join(top, "opt"), opaqueXattr); got != "y" {
		t.Errorf("an opaque folder is marked %q", got)
	}
	if a, b, c := attribute(filepath.Join(top, "marked"), "trusted.overlay.redirect"), attribute(filepath.Join(top, "noted"), "user.note"),
		attribute(filepath.Join(top, "odd"), "user.overlay.opaque"); a != "" || b != "kept" || c != "" {
		t.Errorf("attributes %q %q %q", a, b, c)
	}
	for _, name := range []string{"dev/null", "var/.wh..wh.plnk", "etc/.wh.gone"} {
		if _, err := os.Lstat(filepath.Join(top, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if info, err := os.Stat(filepath.Join(top, "usr/lib")); err != nil || info.ModTime().Unix() != 1e9 {
		t.Errorf("a folder's time: %v %v", info, err)
	}
}

func attribute(path, name string) string {
	var buf [256]byte
	n, _ := unix.Lgetxattr(path, name, buf[:])
	return string(buf[:max(n, 0)])
}

func TestUnpackRefuses(t *testing.T) {
	good := stream(t, file("f", strings.Repeat("x", 5000)))
	for name, tc := range map[string]struct {
		data []byte
		u    Unpacking
		want error
	}{
		"device":            {stream(t, node(tar.TypeBlock, "sda")), Unpacking{Layer: true}, ErrDevice},
		"device to push":    {stream(t, node(tar.TypeChar, "dev/null")), Unpacking{}, ErrDevice},
		"overlay mark":      {stream(t, entry{tar.Header{Typeflag: tar.TypeChar, Name: "x"}, ""}), Unpacking{Layer: true}, ErrDevice},
		"cut short":         {good[:2000], Unpacking{}, ErrStream},
		"garbage":           {bytes.Repeat([]byte("garbage!"), 200), Unpacking{}, ErrStream},
		"huge name":         {stream(t, file(strings.Repeat("n", 300), "")), Unpacking{}, unix.ENAMETOOLONG},
		"huge path":         {stream(t, file(strings.Repeat("d/", 3000)+"f", "")), Unpacking{}, unix.ENAMETOOLONG},
		"too many bytes":    {good, Unpacking{MaxBytes: 4999}, ErrTooLarge},
		"too many entries":  {stream(t, file("a", ""), file("b", "")), Unpacking{MaxEntries: 1}, ErrTooLarge},
		"folder over file":  {stream(t, file("a", ""), folder("a")), Unpacking{}, ErrKind},
		"file over folder":  {stream(t, folder("a"), file("a", "")), Unpacking{}, ErrKind},
		"dangling link":     {stream(t, hardlink("a", "none")), Unpacking{Layer: true}, fs.ErrNotExist},
		"no such folder":    {good, Unpacking{Dir: "/none"}, fs.ErrNotExist},
		"whiteout of dots":  {stream(t, file(".wh...", "")), Unpacking{Layer: true}, ErrName},
		"owner beyond":      {stream(t, entry{tar.Header{Typeflag: tar.TypeDir, Name: "d", Uid: 70000}, ""}), Unpacking{Shift: 100000}, ErrOwner},
		"magic link folder": {stream(t, symlink("p", "/proc/self/root"), file("p/x", "")), Unpacking{}, nil},
	} {
		top, err := unpacked(t, tc.u, tc.data)
		checkWorld(t, top)
		var at *EntryError
		if tc.want != nil && (!errors.Is(err, tc.want) || !errors.As(err, &at)) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
	root, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := root.Unpack(ctx, bytes.NewReader(good), Unpacking{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestPackGivesBackWhatWasUnpacked(t *testing.T) {
	data := stream(t, folder("in"), file("in/f", "a\x00b"), hardlink("in/g", "in/f"), symlink("in/l", "/etc/../f"), node(tar.TypeFifo, "in/p"))
	top, err := unpacked(t, Unpacking{}, data)
	if err != nil {
		t.Fatal(err)
	}
	root, err := Open(top)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var out bytes.Buffer
	if err := root.Pack(context.Background(), &out, "/in", 0); err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for r := tar.NewReader(&out); ; {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(r)
		seen[head.Name] = string(head.Typeflag) + head.Linkname + string(body)
	}
	links := seen["in/f"] == "0a\x00b" && seen["in/g"] == "1in/f" || seen["in/g"] == "0a\x00b" && seen["in/f"] == "1in/g"
	if len(seen) != 5 || !links || seen["in/l"] != "2/etc/../f" || seen["in/"] != "5" || seen["in/p"] != "6" {
		t.Errorf("%q", seen)
	}
	for path, missing := range map[string]bool{"/none": true, "/in/f/x": true, "/in/l/": true, "/in": false, "/in/l": false, "/../in/f": false} {
		if err := root.Exists(path); NotFound(err) != missing {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestCopyIsWhole(t *testing.T) {
	needRoot(t)
	top, err := unpacked(t, Unpacking{Layer: true}, stream(t, folder("d"), file("d/f", "body"), hardlink("d/g", "d/f"), symlink("l", "/x"),
		file("d/.wh.gone", ""), file("d/.wh..wh..opq", ""), node(tar.TypeFifo, "p"), xattr("user.note", "n", file("n", ""))))
	if err != nil {
		t.Fatal(err)
	}
	sparse, err := os.Create(filepath.Join(top, "sparse"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(ignore(sparse.WriteAt([]byte("end"), 1<<30)), sparse.Close(),
		unix.Setxattr(filepath.Join(top, "d"), "trusted.overlay.origin", []byte("x"), 0)); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "copy")
	if _, err := Copy(context.Background(), top, to); err != nil {
		t.Fatal(err)
	}
	var f, g, w, s unix.Stat_t
	if err := errors.Join(unix.Stat(to+"/d/f", &f), unix.Stat(to+"/d/g", &g), unix.Lstat(to+"/d/gone", &w), unix.Stat(to+"/sparse", &s)); err != nil {
		t.Fatal(err)
	}
	if f.Ino != g.Ino || f.Mtim.Sec != 1e9 || w.Mode&unix.S_IFMT != unix.S_IFCHR || s.Size != 1<<30+3 || s.Blocks > 1000 {
		t.Errorf("%+v %+v %+v %+v", f, g, w, s)
	}
	if attribute(to+"/d", opaqueXattr) != "y" || attribute(to+"/d", "trusted.overlay.origin") != "" || attribute(to+"/n", "user.note") != "n" {
		t.Error("extended attributes differ")
	}
	if text, err := os.Readlink(to + "/l"); err != nil || text != "/x" {
		t.Errorf("%q %v", text, err)
	}
	if info, err := os.Stat(to + "/d"); err != nil || info.ModTime().Unix() != 1e9 {
		t.Errorf("%v %v", info, err)
	}
}

func TestRemoveGoesAsDeepAsItMust(t *testing.T) {
	world := t.TempDir()
	top := filepath.Join(world, "top")
	if err := errors.Join(os.Mkdir(top, 0o700), os.Symlink(world, filepath.Join(top, "out")), os.WriteFile(filepath.Join(world, "f"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(top, unix.O_PATH|unix.O_DIRECTORY, 0)
	for range 700 {
		if err != nil {
			t.Fatal(err)
		}
		err = errors.Join(unix.Mkdirat(fd, strings.Repeat("d", 200), 0o700), unix.Mknodat(fd, "f", unix.S_IFREG|0o600, 0))
		next, openErr := unix.Openat(fd, strings.Repeat("d", 200), unix.O_PATH|unix.O_DIRECTORY, 0)
		unix.Close(fd)
		fd, err = next, errors.Join(err, openErr)
	}
	unix.Close(fd)
	for range 2 {
		if err := Remove(top); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(world); err != nil || len(left) != 1 {
		t.Errorf("%v %v", left, err)
	}
	if _, err := Copy(context.Background(), filepath.Join(world, "none"), filepath.Join(world, "to")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("copy of nothing: %v", err)
	}
}

// Whatever a stream holds, nothing outside the folder changes, and nothing is made inside that no layer may bring.
func FuzzUnpack(f *testing.F) {
	f.Add(stream(f, folder("a"), file("a/b", "c"), symlink("l", "../beside"), file("l/f", "x")), true)
	f.Add(stream(f, file("a/.wh.b", ""), file("a/.wh..wh..opq", ""), hardlink("h", "../../beside/f")), true)
	f.Add(stream(f, node(tar.TypeChar, "x"), node(tar.TypeFifo, "p")), false)
	f.Add(stream(f, xattr("trusted.overlay.redirect", "/", folder("m")), file(strings.Repeat("n/", 200)+"f", "")), true)
	f.Add(stream(f, symlink("a", "b"), symlink("b", "a"), file("a/x", ""), folder("a"), file("a", "")), true)
	f.Fuzz(func(t *testing.T, data []byte, layer bool) {
		top, _ := unpacked(t, Unpacking{Layer: layer, MaxBytes: 1 << 20, MaxEntries: 200}, data)
		checkWorld(t, top)
		fd, err := unix.Open(top, unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		err = walk(fd, "", 0, func(rel string, fd int, st *unix.Stat_t) error {
			switch kind := st.Mode & unix.S_IFMT; {
			case kind == unix.S_IFBLK, kind == unix.S_IFCHR && (st.Rdev != 0 || !layer):
				t.Errorf("a device at %q", rel)
			case kind == unix.S_IFDIR && attribute(filepath.Join(top, rel), "trusted.overlay.redirect") != "":
				t.Errorf("a mark of the overlay at %q", rel)
			}
			return nil
		})
		if err != nil && !errors.Is(err, ErrDeep) {
			t.Error(err)
		}
		if err := Remove(top); err != nil {
			t.Error(err)
		}
	})
}
