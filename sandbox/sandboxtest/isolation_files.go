package sandboxtest

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"proctor/sandbox"
)

// swapping swaps the name at between a folder and a link, as fast as it can, for a minute.
const swapping = `import os, sys
at, real, target = sys.argv[1:]
os.makedirs(real, exist_ok=True)
if os.fork(): os._exit(0)
os.setsid()
try: os.rename(real, at)
except OSError: pass
import time
end = time.time() + 60
while time.time() < end:
    try:
        os.rename(at, real); os.symlink(target, at); os.unlink(at); os.rename(real, at)
    except OSError: pass`

// swap starts swapping at for a link to target.
func (b *box) swap(at, target string) {
	b.t.Helper()
	b.out("mkdir -p " + filepath.Dir(at) + "; cat > /tmp/swap.py <<'END'\n" + swapping + "\nEND\npython3 /tmp/swap.py " + at + " " + at + ".real " + target + " >/dev/null 2>&1; sleep 0.1")
}

// pulled gives all that a Pull holds, nothing where it fails.
func (b *box) pulled(path string) string {
	stream, err := b.Pull(context.Background(), path)
	if err != nil {
		return ""
	}
	defer stream.Close()
	data, _ := io.ReadAll(io.LimitReader(stream, 1<<20))
	return string(data)
}

// hostile is an archive that tries to get out of the folder that it is unpacked in, by the name evil.
func hostile(evil, outside string) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	file := func(name string) {
		_ = w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: 4})
		_, _ = w.Write([]byte("evil"))
	}
	for _, dots := range []string{"../", "../../../../", "../../../../../../../../../../../"} {
		file(dots + strings.TrimPrefix(filepath.Join(outside, evil), "/"))
	}
	file(filepath.Join(outside, evil))
	_ = w.WriteHeader(&tar.Header{Name: "link", Typeflag: tar.TypeSymlink, Linkname: outside})
	file("link/" + evil)
	_ = w.WriteHeader(&tar.Header{Name: "up", Typeflag: tar.TypeSymlink, Linkname: "../../../../../../../../.." + outside})
	file("up/" + evil)
	_ = w.WriteHeader(&tar.Header{Name: "hard", Typeflag: tar.TypeLink, Linkname: filepath.Join(outside, "kept")})
	file("hard")
	_ = w.Close()
	return b.Bytes()
}

var fileIsolationTests = []test{
	{name: "links that are swapped under the host's calls lead to no file of the host", run: func(b *box) {
		path, text := b.hostSecret()
		dir := filepath.Dir(path)
		b.swap("/tmp/race/d", dir)
		tried := 0
		for deadline := time.Now().Add(2500 * time.Millisecond); time.Now().Before(deadline); tried++ {
			var seen []string
			if data, err := b.ReadFile(context.Background(), "/tmp/race/d/secret", 1<<16); err == nil {
				seen = append(seen, string(data))
			}
			words, _ := b.file(sandbox.Call{Op: sandbox.OpView, Path: "/tmp/race/d/secret"})
			seen = append(seen, words)
			b.file(sandbox.Call{Op: sandbox.OpCreate, Path: "/tmp/race/d/planted", Text: "planted"})
			if tried%8 == 0 {
				seen = append(seen, b.pulled("/tmp/race/d"), b.pulled("/tmp/race/d/secret"))
				_ = b.Push(context.Background(), "/tmp/race/d", bytes.NewReader(hostile("pushed", "/tmp")))
			}
			if all := strings.Join(seen, "\n"); strings.Contains(all, text) {
				b.t.Fatalf("a file of the host was read: %.300q", all)
			}
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
			b.t.Errorf("after %d tries the host's folder holds %v (%v)", tried, left, err)
		}
		if tried < 10 {
			b.t.Errorf("only %d tries", tried)
		}
	}},
	{name: "links that a user swaps lead the file tools to nothing that is not the user's", run: func(b *box) {
		other := b.another(sandbox.Spec{Image: b.lab.NonRoot})
		if _, err := other.Exec(context.Background(), sandbox.Exec{User: "root", Argv: []string{"sh", "-c",
			"mkdir -m 755 /srv/closed && echo rootonly > /srv/closed/secret && chmod 600 /srv/closed/secret"}}); err != nil {
			b.t.Fatal(err)
		}
		other.swap("/tmp/race/d", "/srv/closed")
		for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); {
			if words, _ := other.file(sandbox.Call{Op: sandbox.OpView, Path: "/tmp/race/d/secret"}); strings.Contains(words, "rootonly") {
				b.t.Fatalf("the user read root's file: %s", words)
			}
			other.file(sandbox.Call{Op: sandbox.OpCreate, Path: "/tmp/race/d/planted", Text: "x"})
			other.file(sandbox.Call{Op: sandbox.OpReplace, Path: "/tmp/race/d/secret", Old: "rootonly", New: "x"})
		}
		got, err := other.Exec(context.Background(), sandbox.Exec{User: "root", Argv: []string{"sh", "-c", "find /srv/closed -mindepth 1 -printf '%f\\n'; cat /srv/closed/secret"}})
		if err != nil || string(got.Stdout) != "secret\nrootonly\n" {
			b.t.Errorf("root's folder: %q %v", got.Stdout, err)
		}
	}},
	{name: "an archive does not leave the sandbox", run: func(b *box) {
		outside := b.t.TempDir()
		if err := os.WriteFile(filepath.Join(outside, "kept"), []byte("kept"), 0o644); err != nil {
			b.t.Fatal(err)
		}
		evil := "evil-" + itoa(os.Getpid())
		b.out("mkdir -p /tmp/to")
		for _, dir := range []string{"/tmp", outside} {
			_ = b.Push(context.Background(), "/tmp/to", bytes.NewReader(hostile(evil, dir)))
		}
		for _, path := range []string{filepath.Join("/tmp", evil), filepath.Join(outside, evil)} {
			if _, err := os.Lstat(path); err == nil {
				_ = os.Remove(path)
				b.t.Errorf("the host has %s", path)
			}
		}
		if kept, err := os.ReadFile(filepath.Join(outside, "kept")); err != nil || string(kept) != "kept" {
			b.t.Errorf("the host's own file: %q %v", kept, err)
		}
		for name, data := range map[string][]byte{"cut off": hostile(evil, "/tmp")[:700], "garbage": bytes.Repeat([]byte("x"), 2048), "nothing": nil} {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			_ = b.Push(ctx, "/tmp/to", bytes.NewReader(data))
			if ctx.Err() != nil {
				b.t.Errorf("%s: the push hangs", name)
			}
			cancel()
		}
		b.alive()
	}},
	{name: "a pull of devices, pipes and holes ends", run: func(b *box) {
		b.out("mkdir -p /tmp/odd/sub && cd /tmp/odd && mkfifo pipe && ln -s / root && ln -s loop loop && truncate -s 64M hole && ln -s /proc/self/mem mem && ln /etc/hostname hard 2>/dev/null; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'; touch \"$(printf 'a\\nb')\" $(printf '\\377')")
		ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
		defer cancel()
		stream, err := b.Pull(ctx, "/tmp/odd")
		if err != nil {
			b.t.Fatal(err)
		}
		defer stream.Close()
		names := 0
		for r := tar.NewReader(io.LimitReader(stream, 1<<30)); ; names++ {
			h, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				b.t.Fatalf("after %d entries: %v", names, err)
			}
			if h.Typeflag == tar.TypeReg && h.Size > 64<<20 {
				b.t.Errorf("%s has %d bytes", h.Name, h.Size)
			}
		}
		if names < 6 {
			b.t.Errorf("%d entries", names)
		}
	}},
}
