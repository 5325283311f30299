package oci

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"proctor/sandbox"
	"proctor/sandbox/confine"
	"proctor/sandbox/oci/images"
	"proctor/sandbox/sandboxtest"
)

func contextFor(t *testing.T, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), limit)
}

// reattach gives a sandbox as a server that was started anew finds it.
func reattach(t *testing.T, s *session) *session {
	t.Helper()
	again, err := newEngine(t, Options{Owner: s.engine.opts.Owner, Store: s.engine.opts.Store}).Attach(context.Background(), s.id)
	if err != nil {
		t.Fatal(err)
	}
	return again.(*session)
}

func TestDeathsByWhoseDoing(t *testing.T) {
	needRuntime(t, "runc")
	engine := newEngine(t, Options{Owner: newOwner(t)})

	t.Run("the machine was started anew", func(t *testing.T) {
		s := makeBox(t, engine, sandbox.Spec{})
		known, err := engine.load(s.id)
		if err != nil {
			t.Fatal(err)
		}
		boot := known.Boot
		known.Boot = "another"
		if err := engine.save(known); err != nil {
			t.Fatal(err)
		}
		sandboxtest.WantDeath(t, reattach(t, s), sandbox.FailureInfra, "restarted")
		known.Boot = boot // so that it can be killed
		if err := engine.save(known); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("killed from inside, as by its own limit of CPU time", func(t *testing.T) {
		s := makeBox(t, engine, sandbox.Spec{})
		pid, err := s.InitPID(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Kill(pid, unix.SIGKILL); err != nil { // what root inside can have the kernel do
			t.Fatal(err)
		}
		sandboxtest.WantDeath(t, s, sandbox.FailureModel, "no part in it")
		sandboxtest.WantDeath(t, reattach(t, s), sandbox.FailureModel, "no part in it")
	})
	t.Run("cut off from inside", func(t *testing.T) {
		s := makeBox(t, engine, sandbox.Spec{})
		sandboxtest.WantSevered(t, s)
		if start, alive := startOf(mustLoad(t, engine, s.id).PID); alive {
			t.Errorf("a sandbox that nobody watches runs on since %d", start)
		}
		sandboxtest.WantDeath(t, reattach(t, s), sandbox.FailureModel, "cut off from inside")
	})
	t.Run("paused by somebody", func(t *testing.T) {
		s := makeBox(t, engine, sandbox.Spec{})
		ctx, cancel := contextFor(t, 10*time.Second)
		defer cancel()
		cg, name := machineCgroups(), engine.cgroupName(s.id)
		if err := cg.freeze(ctx, name, true); err != nil {
			t.Fatal(err)
		}
		if err := s.Alive(ctx); !errors.Is(err, sandbox.ErrUnavailable) || !strings.Contains(err.Error(), "paused") {
			t.Errorf("%v", err)
		}
		if err := s.Close(ctx); err != nil { // what stands still can be removed
			t.Error(err)
		}
	})
	t.Run("its own memory", func(t *testing.T) {
		s := makeBox(t, engine, sandbox.Spec{Limits: sandbox.Limits{MemoryMB: 32}})
		// The kernel spares the hogs and takes the agent: what root inside can arrange at worst.
		_, err := s.Do(context.Background(), sandbox.Call{ID: "hog", Op: sandbox.OpShell, Timeout: 10 * time.Second, Command: `
for p in /proc/[0-9]*; do [ $p = /proc/1 ] || echo 500 > $p/oom_score_adj; done 2>/dev/null; echo 1000 > /proc/1/oom_score_adj
head -c 100000000 /dev/zero | tail -c 90000000 > /dev/null`})
		var dead *sandbox.DeadError
		if errors.As(err, &dead) && (dead.Class != sandbox.FailureModel || !strings.Contains(dead.Reason, "its own memory")) {
			t.Errorf("died by %v", dead)
		}
		if err == nil {
			t.Log("the agent survived; the hog did not")
			shell(t, s, "true")
		}
	})
}

func mustLoad(t *testing.T, e *Engine, id string) state {
	t.Helper()
	s, err := e.load(id)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A create that a SIGKILL of the server cut short, after each of its steps, is swept, and what lives is not.
func TestSweepTakesWhatACrashLeft(t *testing.T) {
	needRuntime(t, "runc")
	owner := newOwner(t)
	engine := newEngine(t, Options{Owner: owner})
	live := makeBox(t, engine, sandbox.Spec{})
	store, rt, err := engine.open()
	if err != nil {
		t.Fatal(err)
	}
	image, err := store.Resolve(context.Background(), baseImage, engine.sources())
	if err != nil {
		t.Fatal(err)
	}
	spec := sandbox.Spec{Image: baseImage, Limits: sandbox.DefaultLimits()}
	for steps := 0; steps <= 5; steps++ {
		s := state{ID: confine.RandomHex(16), Owner: owner, Image: image, Boot: bootID()}
		do := []func() error{
			func() error { return os.MkdirAll(engine.folder(s.ID), 0o711) },
			func() error { return engine.prepare(&s) },
			func() error { return engine.root.Make(s.Folder, 0) },
			func() error { return engine.mount(s) },
			func() error { return engine.write(spec, s, engine.boxHost) },
			func() error {
				_, err := rt.run(context.Background(), engine.runtimeRoot(), engine.folder(s.ID), s.ID)
				return err
			},
		}
		for _, step := range do[:steps+1] {
			if err := step(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if left := leftovers(t, owner); len(left) < 10 {
		t.Errorf("the crashes left only %v", left)
	}
	after := newEngine(t, Options{Owner: owner})
	if err := after.Sweep(context.Background()); err != nil {
		t.Fatal(err)
	}
	shell(t, live, "true")
	if err := live.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if left := leftovers(t, owner); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if work, err := os.ReadDir(filepath.Join(engine.path, "t")); err != nil || len(work) > 0 {
		t.Errorf("work left: %v %v", work, err)
	}
}

// A fork copies what the sandbox wrote, not its image, with what it removed and renamed.
func TestForkKeepsWhatWasRemoved(t *testing.T) {
	needRuntime(t, "runc")
	owner := newOwner(t)
	engine := newEngine(t, Options{Owner: owner})
	s := makeBox(t, engine, sandbox.Spec{})
	shell(t, s, "rm -rf /usr/share/doc /etc/motd; mkdir /usr/share/doc; echo new > /usr/share/doc/f; mv /etc/apt /etc/apt2; ln /etc/passwd /etc/passwd2; head -c 20000000 /dev/zero > /big")
	want := shell(t, s, "ls -R /usr/share/doc /etc | cksum; cksum < /big; stat -c %h /etc/passwd; ls /etc/motd 2>&1")
	began := time.Now()
	image, err := engine.Commit(context.Background(), s.id, "proctor/snapshot:"+owner)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("committed in %v", time.Since(began))
	for range 2 {
		fork := makeBox(t, engine, sandbox.Spec{Image: image.Ref})
		if got := shell(t, fork, "ls -R /usr/share/doc /etc | cksum; cksum < /big; stat -c %h /etc/passwd; ls /etc/motd 2>&1"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		shell(t, fork, "echo changed > /big") // its own
	}
	if got := shell(t, s, "cksum < /big"); !strings.Contains(want, got) {
		t.Errorf("a fork wrote into its parent: %q", got)
	}
	if refs, err := engine.Snapshots(context.Background()); err != nil || len(refs) != 1 || refs[0] != image.Ref {
		t.Errorf("%v %v", refs, err)
	}
	for range 2 {
		if err := engine.RemoveImage(context.Background(), image.Ref); err != nil {
			t.Error(err)
		}
	}
	if _, err := engine.Image(context.Background(), image.Ref); !errors.Is(err, sandbox.ErrNoImage) {
		t.Errorf("%v", err)
	}
}

// An option that hides other users' processes hides the agent from root's commands, which still end in time.
func TestHidePIDHidesTheAgent(t *testing.T) {
	needRuntime(t, "runc")
	s := makeBox(t, newEngine(t, Options{Owner: newOwner(t), HidePID: true}), sandbox.Spec{})
	if got := shell(t, s, "ls -d /proc/1 2>&1; ps -e | grep -c docker-init; id -G"); got != "ls: cannot access '/proc/1': No such file or directory\n0\n0\n" {
		t.Errorf("%q", got)
	}
	got, err := s.Do(context.Background(), sandbox.Call{ID: "cut", Op: sandbox.OpShell, Timeout: time.Second,
		Command: `python3 -c 'import os; os.setgid(33); os.setuid(33); os.setsid(); os.execvp("sleep", ["sleep", "300"])'`})
	if err != nil || !got.TimedOut {
		t.Errorf("%+v %v", got, err)
	}
	out, err := exec.Command("pgrep", "-u", "33", "-x", "sleep").Output()
	if err == nil {
		t.Errorf("it was not killed: %s", out)
	}
	shell(t, s, "true")
}

func TestUserNamespace(t *testing.T) {
	needRuntime(t, "runc")
	owner := newOwner(t)
	engine := newEngine(t, Options{Owner: owner, UserNS: 200000})
	t.Cleanup(func() {
		listed, _ := engine.List(context.Background())
		for _, l := range listed {
			_ = engine.Remove(context.Background(), l.ID)
		}
	})
	s := makeBox(t, engine, sandbox.Spec{})
	if got := shell(t, s, "id -u; cat /proc/self/uid_map | tr -s ' '; stat -c %u:%g /etc/passwd /root /tmp; touch /new && chown 33:33 /new && stat -c %u /new; nproc"); got != "0\n 0 200000 65536\n0:0\n0:0\n0:0\n33\n1\n" {
		t.Errorf("%q", got)
	}
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(engine.folder(s.id), "u", "new"), &st); err != nil || st.Uid != 200033 {
		t.Errorf("on the host it is %d's: %v", st.Uid, err)
	}
	image, err := engine.Commit(context.Background(), s.id, "proctor-test/userns:"+owner)
	if err != nil {
		t.Fatal(err)
	}
	if got := shell(t, makeBox(t, engine, sandbox.Spec{Image: image.Ref}), "stat -c %u /new"); got != "33\n" {
		t.Errorf("of a fork: %q", got)
	}
}

func TestListNamesAndGC(t *testing.T) {
	needRuntime(t, "runc")
	owner := newOwner(t)
	engine := newEngine(t, Options{Owner: owner})
	s := makeBox(t, engine, sandbox.Spec{Name: "r_x", Labels: map[string]string{"a": "b"}})
	listed, err := engine.List(context.Background())
	if err != nil || len(listed) != 1 || !listed[0].Running || listed[0].Name != "r_x" || listed[0].Labels["a"] != "b" {
		t.Fatalf("%+v %v", listed, err)
	}
	if left, err := engine.Leftovers(context.Background(), []string{s.id}); err != nil || len(left) != 0 {
		t.Errorf("%+v %v", left, err)
	}
	left, err := engine.Leftovers(context.Background(), nil)
	if err != nil || len(left) != 1 || left[0].ID != s.id {
		t.Fatalf("%+v %v", left, err)
	}
	store, _, _ := engine.open()
	r := mustLoad(t, engine, s.id).Image
	got, err := store.GC(context.Background(), func(images.Record) bool { return true }, engine.layersInUse, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, image := range got.Images {
		if image.Digest == r.Digest {
			t.Error("the image of a sandbox would be collected")
		}
	}
	for range 2 {
		if err := engine.RemoveLeftover(context.Background(), left[0]); err != nil {
			t.Error(err)
		}
	}
	sandboxtest.WantDeath(t, s, sandbox.FailureInfra, "removed from outside")
	if err := engine.RemoveLeftover(context.Background(), confine.Leftover{Kind: "x"}); err == nil {
		t.Error("an unknown kind was removed")
	}
}
