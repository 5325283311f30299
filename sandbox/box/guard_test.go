package box_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"proctor/sandbox"
	"proctor/sandbox/box"
	"proctor/sandbox/box/wire"
)

// What root inside can reach of PID 1. The capabilities that no engine leaves are dropped; in newer kernels
// CAP_PERFMON opens maps and environ as well.
func TestInitIsClosed(t *testing.T) {
	b := newBox(t, box.Init{})
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Fatal("setpriv, of util-linux, is needed to drop capabilities")
	}
	out := b.out(`setpriv --bounding-set=-sys_ptrace,-perfmon,-sys_admin,-sys_resource bash -c '
for f in mem environ maps auxv; do (: < /proc/1/$f) 2>/dev/null && echo /proc/1/$f; done
readlink /proc/1/fd/* /proc/1/exe /proc/1/cwd 2>/dev/null; true'`)
	if out != "" {
		t.Errorf("open: %q", out)
	}
}

// Nobody inside can call the agent, whoever he is.
func TestRefusesCallersFromInside(t *testing.T) {
	b := newBox(t, box.Init{})
	// The agent may have hung up before there is anything to send: SIGPIPE is no answer either.
	out := b.out(`perl -e 'use Socket; $SIG{PIPE} = "IGNORE"; socket(S, AF_UNIX, SOCK_STREAM, 0); connect(S, sockaddr_un("` + b.socket + `")) or die;
send(S, "\0\0\0\x0d\1" . "\0" x 12, 0); print "got:", sysread(S, $x, 100) || 0, "\n"'`)
	if out != "got:0\n" {
		t.Errorf("%q", out)
	}
	b.talk(alive)
}

// A socket that root inside removed or put his own in the place of is found out by the host and made
// again by the agent.
func TestImpostor(t *testing.T) {
	b := newBox(t, box.Init{})
	b.out(`rm ` + b.socket + `; perl -e 'use Socket; exit if fork; socket(S, AF_UNIX, SOCK_STREAM, 0); bind(S, sockaddr_un("` + b.socket +
		`")) or die; listen(S, 5); sleep 300' >/dev/null 2>&1; sleep 0.2`)
	_, err := box.Dial(context.Background(), b.socket, box.Options{ExpectPID: b.pid})
	if !errors.Is(err, box.ErrImpostor) {
		t.Errorf("dialling an impostor: %v", err)
	}
	b.talk(alive) // the old connection lives
	deadline := time.Now().Add(15 * time.Second)
	for {
		c, err := box.Dial(context.Background(), b.socket, box.Options{ExpectPID: b.pid})
		if err == nil {
			c.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the agent does not come back: %v", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// Lowered limits, a flood of signals and a changed oom_score_adj leave the agent working.
func TestAbuseOfInit(t *testing.T) {
	b := newBox(t, box.Init{})
	b.talk(loose("echo 500 > /proc/1/oom_score_adj; for i in $(seq 300); do kill -TERM 1; kill -SEGV 1; kill -CHLD 1; kill -URG 1; done"), alive,
		loose("prlimit --pid 1 --nofile=64:1024; chmod 000 /proc/1; mount -o remount,ro /proc 2>/dev/null; mount -o remount,rw /proc"), alive)
}

func TestDeath(t *testing.T) {
	b := newBox(t, box.Init{})
	got := make(chan error, 1)
	go func() {
		_, err := b.Do(context.Background(), sandbox.Call{ID: "x", Op: sandbox.OpShell, Command: "sleep 300"})
		got <- err
	}()
	time.Sleep(100 * time.Millisecond)
	if err := b.Alive(context.Background()); err != nil {
		t.Errorf("alive: %v", err)
	}
	_ = syscall.Kill(b.pid, syscall.SIGKILL)
	for _, err := range []error{<-got, b.Alive(context.Background())} {
		var dead *sandbox.DeadError
		if !errors.As(err, &dead) || dead.Class != "" {
			t.Errorf("%v; want a DeadError without a class", err)
		}
	}
	<-b.Lost()
}

func TestContext(t *testing.T) {
	b := newBox(t, box.Init{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := b.Alive(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := box.Dial(context.Background(), "/run/none/ctl", box.Options{}); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("%v", err)
	}
}

// A user that is not there, or an image without any shell, is told at once.
func TestBadInit(t *testing.T) {
	b := startBox(t)
	if _, err := b.dial(box.Init{User: "no-such-user"}); !errors.Is(err, sandbox.ErrStart) || !strings.Contains(err.Error(), "no-such-user") {
		t.Errorf("%v", err)
	}
	c, err := b.dial(box.Init{}) // not configured by what failed
	if err != nil || c.Resumed() {
		t.Errorf("%v", err)
	}
}

// A host that sends garbage loses its connection, and only that.
func TestServerSurvivesGarbage(t *testing.T) {
	b := newBox(t, box.Init{})
	hello := frame(t, wire.Frame{Kind: wire.KindHello, Payload: wire.Hello{Version: wire.Version}.Encode()})
	for _, data := range [][]byte{{}, {0}, {0xff, 0xff, 0xff, 0xff, 1}, frame(t, wire.Frame{Kind: 99}), frame(t, wire.Frame{Kind: wire.KindHello, Payload: []byte{1}}),
		append(hello, 0xff, 0xff, 0xff, 0xff), append(hello, frame(t, wire.Frame{Kind: wire.KindDo, ID: 1, Payload: []byte("zz")})...),
		append(hello, frame(t, wire.Frame{Kind: wire.KindWelcome, ID: 1})...)} {
		conn, err := net.Dial("unix", b.socket)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write(data)
		_ = conn.(*net.UnixConn).CloseWrite()
		_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		for buf := make([]byte, 4096); err == nil; {
			_, err = conn.Read(buf)
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%.30q: the agent does not hang up", data)
		}
		conn.Close()
	}
	b.talk(alive)
}

func frame(t testing.TB, f wire.Frame) []byte {
	var b strings.Builder
	if err := wire.Write(&b, f); err != nil {
		t.Fatal(err)
	}
	return []byte(b.String())
}

// An idle agent is small.
func TestIdleMemory(t *testing.T) {
	b := newBox(t, box.Init{})
	for range 50 {
		b.talk(alive)
	}
	if rss := memory(t, b.pid); raced {
		t.Logf("NOT MEASURED with the race detector, whose memory counts as well: %d MiB", rss>>20)
	} else if rss > 24<<20 { // the test binary is larger than cmd/boxd
		t.Errorf("%d MiB", rss>>20)
	}
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", b.pid))
	if err != nil || len(entries) > 32 {
		t.Errorf("%d descriptors open, %v", len(entries), err)
	}
}
