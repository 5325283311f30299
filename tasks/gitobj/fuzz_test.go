package gitobj

import (
	"bytes"
	"compress/zlib"
	"os"
	"path/filepath"
	"testing"
)

func deflate(data []byte) []byte {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = w.Write(data)
	_ = w.Close()
	return b.Bytes()
}

func FuzzReadLoose(f *testing.F) {
	f.Add(deflate([]byte("blob 3\x00abc")))
	f.Add(deflate([]byte("blob 99999999999\x00abc")))
	f.Add(deflate([]byte("tree")))
	f.Fuzz(func(t *testing.T, data []byte) {
		if kind, content, err := ReadLoose(bytes.NewReader(data), 1<<20); err == nil && (typeNames[kind] == "" || len(content) > 1<<20) {
			t.Fatalf("%v of %d bytes", kind, len(content))
		}
	})
}

func FuzzObjects(f *testing.F) {
	f.Add([]byte("tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nparent 4b825dc642cb6eb9a060e54bf8d69288fbee4904\ncommitter a <b> 1 +0\n\nx"))
	f.Add([]byte("100644 a\x0012345678901234567890"))
	f.Add([]byte("object 4b825dc642cb6eb9a060e54bf8d69288fbee4904\ntype commit\ntag x\ntagger a <b> 1 +0\n\nx"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = ParseCommit(data)
		_, _ = ParseTag(data)
		entries, err := ParseTree(data)
		if err == nil && len(entries)*23 > len(data) {
			t.Fatalf("%d entries from %d bytes", len(entries), len(data))
		}
	})
}

func FuzzDelta(f *testing.F) {
	f.Add([]byte("hello world"), []byte("\x0b\x05\x90\x05"))
	f.Add([]byte("x"), []byte("\x01\xff\xff\xff\x7f\x01x"))
	f.Fuzz(func(t *testing.T, base, delta []byte) {
		out, err := applyDelta(base, delta)
		if err != nil {
			return
		}
		_, rest, _ := deltaSize(delta)
		if size, _, _ := deltaSize(rest); size != uint64(len(out)) {
			t.Fatalf("%d bytes, the delta says %d", len(out), size)
		}
	})
}

func FuzzText(f *testing.F) {
	id := "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
	f.Add([]byte(id + " refs/heads/main\n^" + id + "\n"))
	f.Add([]byte("ref: refs/heads/main\n"))
	f.Add([]byte(id + " " + id + " a <b> 1 +0\tmoving\n"))
	f.Add([]byte("[core]\n\tbare = \"x\\n\" ; c\n[a \"b\\\"c\"]k\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if refs, err := ParsePackedRefs(data); err == nil {
			for name := range refs {
				if !ValidRefName(name) {
					t.Fatalf("name %q", name)
				}
			}
		}
		if _, target, err := ParseRefFile(data); err == nil && target != "" && !ValidRefName(target) {
			t.Fatalf("target %q", target)
		}
		_, _ = ParseReflog(data)
		settings, err := ParseConfig(data)
		if err != nil {
			return
		}
		again, err := ParseConfig(FormatConfig(settings))
		if err != nil || len(again) != len(settings) {
			t.Fatalf("%q is written as %q: %v", data, FormatConfig(settings), err)
		}
		for i := range again {
			if again[i] != settings[i] {
				t.Fatalf("%q becomes %q", settings[i], again[i])
			}
		}
	})
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x00aaaaaaaaaaaaaaaaaaaa"))
	dir := randomRepo(f, 1, 10)
	git(f, dir, "reset", "-q", "--hard")
	for _, version := range []string{"2", "4"} {
		git(f, dir, "update-index", "--index-version", version)
		if data, err := os.ReadFile(filepath.Join(dir, ".git/index")); err == nil {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := ParseIndex(data)
		if err == nil && len(x.Entries)*62 > len(data) {
			t.Fatalf("%d entries from %d bytes", len(x.Entries), len(data))
		}
	})
}

// FuzzPack opens a pack and index of any bytes and reads all that they claim to hold.
func FuzzPack(f *testing.F) {
	dir := randomRepo(f, 1, 8)
	git(f, dir, "repack", "-q", "-a", "-d", "-f")
	packs, _ := filepath.Glob(filepath.Join(dir, ".git/objects/pack/*.pack"))
	for _, p := range packs {
		pack, err1 := os.ReadFile(p)
		idx, err2 := os.ReadFile(p[:len(p)-4] + "idx")
		if err1 == nil && err2 == nil {
			f.Add(pack, idx)
		}
	}
	f.Fuzz(func(t *testing.T, data, idx []byte) {
		file, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := file.Write(data); err != nil {
			t.Fatal(err)
		}
		p, err := openPack(file, "x", idx)
		if err != nil {
			return
		}
		for i := range min(p.index.count, 50) {
			_, _, _ = p.at(p.index.offset(i), func(ID) (Type, []byte, error) { return 0, nil, ErrMissing })
		}
		_, _ = FindInIndex(idx, "ab")
	})
}
