package agent

import (
	"os"
	"path/filepath"
	"testing"

	"proctor/sandbox/box/wire"
)

func TestWriteNames(t *testing.T) {
	etc, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "precious")
	for path, text := range map[string]string{elsewhere: "kept", filepath.Join(etc, "resolv.conf"): "old"} {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(elsewhere, filepath.Join(etc, "hosts")); err != nil {
		t.Fatal(err)
	}
	writeNames(etc, wire.Init{Hosts: "127.0.0.1\tlocalhost\n"})
	writeNames(filepath.Join(etc, "not-there"), wire.Init{Hosts: "x", Resolv: "x"}) // an image without the folder
	for path, want := range map[string]string{elsewhere: "kept", filepath.Join(etc, "hosts"): "127.0.0.1\tlocalhost\n", filepath.Join(etc, "resolv.conf"): "old"} {
		if text, err := os.ReadFile(path); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v; want %q", path, text, err, want)
		}
	}
	if info, err := os.Lstat(filepath.Join(etc, "hosts")); err != nil || info.Mode() != 0o644 {
		t.Errorf("hosts: %v, %v", info.Mode(), err)
	}
}
