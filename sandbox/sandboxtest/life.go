package sandboxtest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"proctor/sandbox"
)

// listed reports whether an engine of owner lists a sandbox.
func (b *box) listed(engine sandbox.Engine, id string) bool {
	b.t.Helper()
	all, err := engine.List(context.Background())
	if err != nil {
		b.t.Fatal(err)
	}
	return slices.ContainsFunc(all, func(l sandbox.Listed) bool { return l.ID == id })
}

var lifeTests = []test{
	{name: "an engine touches only its own owner's sandboxes (24)", run: func(b *box) {
		own, other := b.lab.Engine(b.t, b.lab.Owner), b.lab.Engine(b.t, b.lab.Owner+"-other")
		defer own.Close()
		defer other.Close()
		if !b.listed(own, b.ID()) || b.listed(other, b.ID()) {
			b.t.Error("a sandbox is listed by its own owner's engine, and by no other")
		}
		if _, err := other.Attach(context.Background(), b.ID()); !errors.Is(err, sandbox.ErrGone) {
			b.t.Errorf("another owner's attach: %v", err)
		}
		if _, err := other.Commit(context.Background(), b.ID(), "x"); !errors.Is(err, sandbox.ErrGone) {
			b.t.Errorf("another owner's commit: %v", err)
		}
		if err := other.Remove(context.Background(), b.ID()); err != nil {
			b.t.Errorf("another owner's remove: %v", err)
		}
		b.alive()
	}},
	{name: "a closed sandbox is gone, and closing again is harmless", run: func(b *box) {
		engine := b.lab.Engine(b.t, b.lab.Owner)
		defer engine.Close()
		for range 2 {
			if err := b.Close(context.Background()); err != nil {
				b.t.Fatal(err)
			}
		}
		if b.listed(engine, b.ID()) {
			b.t.Error("still listed")
		}
		if _, err := engine.Attach(context.Background(), b.ID()); !errors.Is(err, sandbox.ErrGone) {
			b.t.Errorf("attach: %v", err)
		}
		if _, err := b.Do(context.Background(), sandbox.Call{ID: "late", Op: sandbox.OpShell, Command: "true"}); err == nil {
			b.t.Error("a call after the close had a result")
		}
		if err := engine.Remove(context.Background(), b.ID()); err != nil {
			b.t.Errorf("remove of what is gone: %v", err)
		}
	}},
	{name: "a sandbox that is removed under a call ends it, typed (10)", run: func(b *box) {
		engine := b.lab.Engine(b.t, b.lab.Owner)
		defer engine.Close()
		time.AfterFunc(500*time.Millisecond, func() { _ = engine.Remove(context.Background(), b.ID()) })
		began := time.Now()
		_, err := b.Do(context.Background(), sandbox.Call{ID: "cut", Op: sandbox.OpShell, Command: "sleep 60", Timeout: time.Minute})
		var dead *sandbox.DeadError
		if !errors.As(err, &dead) || dead.Class != sandbox.FailureInfra || time.Since(began) > 20*time.Second {
			b.t.Errorf("%v after %v, want a death by infra", err, time.Since(began))
		}
		if err := b.Alive(context.Background()); !errors.As(err, &dead) {
			b.t.Errorf("alive: %v", err)
		}
	}},
	{name: "a failed or cancelled create leaves nothing behind (15)", run: func(b *box) {
		owner := b.lab.Owner + "-create"
		engine := b.lab.Engine(b.t, owner)
		defer engine.Close()
		for _, spec := range []sandbox.Spec{
			{Image: "proctor-test/no-such-image:none"}, {Image: "Not A Reference"}, {Image: ""},
			{Image: b.lab.Base, User: "no-such-user"}, {Image: b.lab.Base, Network: sandbox.Network{Mode: "internal", Name: "no-such-network"}},
			{Image: b.lab.Base, Network: sandbox.Network{Mode: "internal", Name: "bridge"}},
			{Image: b.lab.Base, Network: sandbox.Network{Mode: "host"}}, {Image: b.lab.Base, Workdir: "relative"},
			{Image: b.lab.Base, Limits: sandbox.Limits{MemoryMB: 1}},
		} {
			if s, err := engine.Create(context.Background(), spec); err == nil {
				b.t.Errorf("%+v made a sandbox", spec)
				_ = s.Close(context.Background())
			}
		}
		if _, err := engine.Create(context.Background(), sandbox.Spec{Image: "proctor-test/no-such-image:none"}); !errors.Is(err, sandbox.ErrNoImage) {
			b.t.Errorf("a missing image: %v", err)
		}
		for _, after := range []time.Duration{0, 5, 20, 50, 100, 150, 200, 300, 400} {
			ctx, cancel := context.WithTimeout(context.Background(), after*time.Millisecond)
			if s, err := engine.Create(ctx, sandbox.Spec{Image: b.lab.Base}); err == nil {
				_ = s.Close(context.Background())
			}
			cancel()
		}
		if left := b.lab.Leftovers(b.t, owner); len(left) > 0 {
			b.t.Errorf("left behind: %v", left)
		}
	}},
	{name: "more than 31 sandboxes at once work (16)", slow: true, run: func(b *box) {
		const n = 33
		engine := b.lab.Engine(b.t, b.lab.Owner)
		defer engine.Close()
		var group sync.WaitGroup
		for i := range n {
			group.Go(func() {
				s, err := engine.Create(context.Background(), sandbox.Spec{Image: b.lab.Base, Name: "many", Limits: sandbox.Limits{MemoryMB: 64}})
				if err != nil {
					b.t.Errorf("sandbox %d: %v", i, err)
					return
				}
				defer s.Close(context.Background())
				got, err := s.Do(context.Background(), sandbox.Call{ID: "c", Op: sandbox.OpShell, Command: "echo " + itoa(i)})
				if err != nil || string(got.Output) != itoa(i)+"\n" {
					b.t.Errorf("sandbox %d: %q %v", i, got.Output, err)
				}
			})
		}
		group.Wait()
	}},
	{name: "a committed sandbox's files start another (18)", run: func(b *box) {
		engine := b.lab.Engine(b.t, b.lab.Owner)
		defer engine.Close()
		b.out("mkdir -p /kept; echo state > /kept/f")
		image, err := engine.Commit(context.Background(), b.ID(), "proctor-test/commit:"+strings.ToLower(b.lab.Owner))
		if err != nil {
			b.t.Fatal(err)
		}
		fork := b.another(sandbox.Spec{Image: image.Ref, Workdir: "/kept"})
		fork.wants("cat f; pwd", "state\n/kept\n", 0)
		b.alive()
	}},
	{name: "the environment and workdir are as asked", run: func(b *box) {
		other := b.another(sandbox.Spec{Env: map[string]string{"ASKED": "a b"}, Workdir: "/made/for it"})
		other.wants(`echo "$ASKED|$PWD"`, "a b|/made/for it\n", 0)
		if out, _ := other.exec("sh", "-c", `echo "$ASKED|$PWD"`); out != "a b|/made/for it\n" {
			b.t.Errorf("of an exec: %q", out)
		}
	}},
}
