package sandboxtest

import (
	"archive/tar"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// applets are the programs that the busybox image has.
const applets = "sh cat echo env false grep head id ls mkdir rm setsid sleep touch tr true wc"

// Busybox gives the files of an image with nothing but busybox from Debian's package busybox-static, as a tar stream.
// A machine whose apt knows no Debian source fails the test where a run demands Docker, and skips it elsewhere.
func Busybox(t *testing.T) []byte {
	t.Helper()
	program := debianBusybox(t)
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	put := func(head tar.Header, body []byte) {
		head.Size = int64(len(body))
		if err := w.WriteHeader(&head); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(body); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"bin/", "etc/", "tmp/"} {
		mode := int64(0o755)
		if dir == "tmp/" {
			mode = 0o1777
		}
		put(tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: mode}, nil)
	}
	put(tar.Header{Typeflag: tar.TypeReg, Name: "bin/busybox", Mode: 0o755}, program)
	for _, name := range strings.Fields(applets) {
		put(tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + name, Linkname: "busybox", Mode: 0o777}, nil)
	}
	put(tar.Header{Typeflag: tar.TypeReg, Name: "etc/passwd", Mode: 0o644}, []byte("root:x:0:0:root:/root:/bin/sh\n"))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// OneProgram gives the files of an image with nothing but a static program, as a tar stream.
func OneProgram(t *testing.T, path string) []byte {
	t.Helper()
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "app", Mode: 0o755, Size: int64(len(program))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(program); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// debianBusybox gives the program, from the package as apt fetches it.
func debianBusybox(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	fetch := exec.Command("apt-get", "-o", "APT::Sandbox::User=root", "download", "-qq", "busybox-static")
	fetch.Dir = dir
	words, err := fetch.CombinedOutput()
	packages, _ := filepath.Glob(filepath.Join(dir, "*.deb")) // the pattern is well formed
	if err == nil && len(packages) == 1 {
		words, err = exec.Command("dpkg-deb", "-x", packages[0], dir).CombinedOutput()
	}
	if err != nil || len(packages) != 1 {
		if os.Getenv("CI") == "true" || os.Getenv("PROCTOR_REQUIRE_DOCKER") == "1" {
			t.Fatalf("the package busybox-static cannot be had: run apt-get update: %v %s", err, words)
		}
		t.Skipf("NOT TESTED, the package busybox-static cannot be had: run apt-get update: %v %s", err, words)
	}
	program, err := os.ReadFile(filepath.Join(dir, "bin", "busybox"))
	if err != nil {
		t.Fatal(err)
	}
	return program
}
