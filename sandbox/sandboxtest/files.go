package sandboxtest

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"

	"proctor/sandbox"
)

// file calls a file operation and gives its output and exit code.
func (b *box) file(call sandbox.Call) (string, int) {
	b.t.Helper()
	got := b.do(call)
	return string(got.Output), exitOf(got)
}

// holds checks a file's bytes.
func (b *box) holds(path, want string) {
	b.t.Helper()
	got, err := b.ReadFile(context.Background(), path, 1<<20)
	if err != nil || string(got) != want {
		b.t.Errorf("%s: %q %v, want %q", path, got, err, want)
	}
}

var fileTests = []test{
	{name: "files are made, edited and taken back", run: func(b *box) {
		steps := []struct {
			call sandbox.Call
			exit int
			then string
		}{
			{sandbox.Call{Op: sandbox.OpCreate, Path: "/tmp/new/deep/f", Text: "\ufeffone\r\ntwo\r\nthree"}, 0, "\ufeffone\r\ntwo\r\nthree"},
			{sandbox.Call{Op: sandbox.OpReplace, Path: "/tmp/new/deep/f", Old: "two", New: "2"}, 0, "\ufeffone\r\n2\r\nthree"},
			{sandbox.Call{Op: sandbox.OpReplace, Path: "/tmp/new/deep/f", Old: "e", New: "x"}, 1, "\ufeffone\r\n2\r\nthree"},
			{sandbox.Call{Op: sandbox.OpReplace, Path: "/tmp/new/deep/f", Old: "absent", New: "x"}, 1, "\ufeffone\r\n2\r\nthree"},
			{sandbox.Call{Op: sandbox.OpInsert, Path: "/tmp/new/deep/f", Line: 0, New: "top"}, 0, ""},
			{sandbox.Call{Op: sandbox.OpUndo, Path: "/tmp/new/deep/f"}, 0, "\ufeffone\r\n2\r\nthree"},
			{sandbox.Call{Op: sandbox.OpUndo, Path: "/tmp/new/deep/f"}, 0, "\ufeffone\r\ntwo\r\nthree"},
		}
		for _, step := range steps {
			if words, exit := b.file(step.call); exit != step.exit || words == "" {
				b.t.Errorf("%+v: %q %d, want %d", step.call, words, exit, step.exit)
			}
			if step.then != "" {
				b.holds("/tmp/new/deep/f", step.then)
			}
		}
	}},
	{name: "odd files are refused with words, at once", run: func(b *box) {
		b.out("mkfifo /tmp/pipe; ln -s loop /tmp/loop")
		for _, path := range []string{"/tmp/pipe", "/dev/zero", "/tmp/none", "/tmp/loop", "/tmp/nul\x00byte", ""} {
			if words, exit := b.file(sandbox.Call{Op: sandbox.OpView, Path: path}); exit != 1 || words == "" {
				b.t.Errorf("view %q: %q %d", path, words, exit)
			}
		}
	}},
	{name: "the host reads only regular files of the sandbox", run: func(b *box) {
		b.out("echo own > /tmp/own; ln -s /tmp/own /tmp/link; ln -s ../../../../../../tmp/own /tmp/dots; mkfifo /tmp/pipe; mkdir /tmp/sub")
		b.holds("/tmp/link", "own\n")
		b.holds("/tmp/dots", "own\n")
		if info, err := b.Stat(context.Background(), "/tmp/link"); err != nil || info.Real != "/tmp/own" || info.Size != 4 {
			b.t.Errorf("stat of a link: %+v %v", info, err)
		}
		if _, err := b.ReadFile(context.Background(), "/tmp/none", 10); !errors.Is(err, fs.ErrNotExist) {
			b.t.Errorf("a missing file: %v", err)
		}
		for _, path := range []string{"/tmp/pipe", "/dev/zero", "/proc/self/environ", "/proc/1/cmdline", "/tmp/sub"} {
			if data, err := b.ReadFile(context.Background(), path, 10); err == nil {
				b.t.Errorf("%s was read: %q", path, data)
			}
		}
		if data, err := b.ReadFile(context.Background(), "/tmp/own", 2); err != nil || string(data) != "ow" {
			b.t.Errorf("the limit: %q %v", data, err)
		}
	}},
	{name: "folders come and go as tar streams", run: func(b *box) {
		b.out("mkdir -p /tmp/tree/in; printf 'a\\0b' > /tmp/tree/in/f; chmod 750 /tmp/tree/in/f; ln -s in/f /tmp/tree/l")
		stream, err := b.Pull(context.Background(), "/tmp/tree")
		if err != nil {
			b.t.Fatal(err)
		}
		defer stream.Close()
		data, err := io.ReadAll(stream)
		if err != nil {
			b.t.Fatal(err)
		}
		if head, err := tar.NewReader(bytes.NewReader(data)).Next(); err != nil || head.Name != "tree/" {
			b.t.Errorf("the first name: %+v %v", head, err)
		}
		other := b.another(sandbox.Spec{})
		other.out("mkdir /tmp/to")
		if err := other.Push(context.Background(), "/tmp/to", bytes.NewReader(data)); err != nil {
			b.t.Fatal(err)
		}
		other.wants("od -An -c /tmp/to/tree/l; find /tmp/to/tree/in/f -printf '%m\\n'", "   a  \\0   b\n750\n", 0)
		if _, err := b.Pull(context.Background(), "/tmp/none"); !errors.Is(err, fs.ErrNotExist) {
			b.t.Errorf("pull of nothing: %v", err)
		}
		if err := b.Push(context.Background(), "/tmp/none", bytes.NewReader(data)); !errors.Is(err, fs.ErrNotExist) {
			b.t.Errorf("push to nowhere: %v", err)
		}
	}},
}
