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
	{name: "an image without any shell is a typed error at create (21)", run: func(b *box) {
		engine := b.lab.Engine(b.t, b.lab.Owner)
		defer engine.Close()
		s, err := engine.Create(context.Background(), sandbox.Spec{Image: b.lab.NoShell})
		if err == nil {
			_ = s.Close(context.Background())
		}
		if !errors.Is(err, sandbox.ErrNoShell) {
			b.t.Errorf("%v, want ErrNoShell", err)
		}
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
