package sandboxtest

import (
	"context"
	"errors"

	"proctor/sandbox"
)

var imageTests = []test{
	{name: "ENTRYPOINT and CMD are overridden (19)", run: func(b *box) {
		b.another(sandbox.Spec{Image: b.lab.Entrypoint}).alive()
	}},
	{name: "an image without bash falls back to sh (19)", run: func(b *box) {
		small := b.another(sandbox.Spec{Image: b.lab.ShOnly})
		small.wants("cd /; x=kept", "", 0)
		small.wants(`echo "$PWD $x"; (exit 5)`, "/ kept\n", 5)
		small.sh("exit 3")
		small.wants("echo alive", "alive\n", 0)
	}},
	{name: "in an image of busybox alone the contract holds (19)", run: func(b *box) {
		small := b.another(sandbox.Spec{Image: b.lab.ShOnly, Workdir: "/work/here"})
		small.cutOff(sandbox.Call{Op: sandbox.OpShell, Command: "env MARK=" + mark + " setsid sleep 300", Timeout: 1e9}, 1e9, "")
		small.wants("pwd; cat <<'END'\na 'b' \"c\"\nEND", "/work/here\na 'b' \"c\"\n", 0)
		small.wants("nosuch 2>/dev/null", "", 127)
		small.wants("id -u; touch /work/here/f && ls", "0\nf\n", 0)
		if words, exit := small.file(sandbox.Call{Op: sandbox.OpReplace, Path: "f", Old: "x", New: "y"}); exit != 1 || words == "" {
			b.t.Errorf("an edit of an empty file: %q %d", words, exit)
		}
		if out, exit := small.exec("busybox", "echo", "no shell"); out != "no shell\n" || exit != 0 {
			b.t.Errorf("an exec: %q %d", out, exit)
		}
	}},
	{name: "an image without any shell is a typed error at create (21)", run: func(b *box) {
		engine := b.lab.Engine(b.t, b.lab.Owner)
		defer engine.Close()
		for _, image := range []string{b.lab.NoShell, b.lab.Distroless} {
			s, err := engine.Create(context.Background(), sandbox.Spec{Image: image})
			if err == nil {
				_ = s.Close(context.Background())
			}
			if !errors.Is(err, sandbox.ErrNoShell) {
				b.t.Errorf("%s: %v, want ErrNoShell", image, err)
			}
		}
	}},
	{name: "a read-only root takes no file, and the rest works", run: func(b *box) {
		other := b.another(sandbox.Spec{ReadOnlyRoot: true, Workdir: "/tmp"})
		other.wants("for d in / /etc /usr/bin /root /home; do (: > $d/new) 2>/dev/null && echo $d; done; true", "", 0)
		other.wants("for d in /tmp /var/tmp /run /dev/shm; do echo x > $d/f && cat $d/f; done", "x\nx\nx\nx\n", 0)
		other.wants("printf '#!/bin/sh\\necho ran\\n' > /tmp/p && chmod +x /tmp/p && /tmp/p; pwd", "ran\n/tmp\n", 0)
		if got := other.sh("head -c 300000 /dev/zero | tr '\\0' x"); !got.Truncated || exitOf(got) != 0 {
			b.t.Errorf("much output: exit %s, truncated %v", exitText(got), got.Truncated)
		}
		other.alive()
	}},
	{name: "commands run as the image's USER (21)", run: func(b *box) {
		other := b.another(sandbox.Spec{Image: b.lab.NonRoot})
		other.wants("id -un; echo $HOME; touch /etc/x 2>/dev/null; echo $?; kill -9 1 2>/dev/null; echo $?", "www-data\n/var/www\n1\n1\n", 0)
		if out, _ := other.exec("id", "-un"); out != "www-data\n" {
			b.t.Errorf("an exec ran as %q", out)
		}
		got, err := other.Exec(context.Background(), sandbox.Exec{User: "root", Argv: []string{"id", "-u"}})
		if err != nil || string(got.Stdout) != "0\n" {
			b.t.Errorf("an exec as root: %q %v", got.Stdout, err)
		}
		other.cutOff(sandbox.Call{Op: sandbox.OpShell, Command: "env MARK=" + mark + " setsid sleep 300", Timeout: 1e9}, 1e9, "")
	}},
	{name: "a user asked for overrides the image's", run: func(b *box) {
		b.another(sandbox.Spec{User: "1234:4321"}).wants("id -u; id -g", "1234\n4321\n", 0)
		b.another(sandbox.Spec{Image: b.lab.NonRoot, User: "root"}).wants("id -u", "0\n", 0)
	}},
}
