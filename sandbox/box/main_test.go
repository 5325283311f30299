package box_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"proctor/sandbox"
	"proctor/sandbox/box"
	"proctor/sandbox/box/agent"
)

// agentEnv makes this test binary a box agent that listens where it says.
const agentEnv = "TEST_INIT_SOCKET"

// hideEnv names programs that the agent is not to find.
const hideEnv = "TEST_INIT_HIDE"

func TestMain(m *testing.M) {
	if socket := os.Getenv(agentEnv); socket != "" {
		os.Exit(beAgent(socket))
	}
	os.Exit(m.Run())
}

// beAgent runs the agent as PID 1 of the namespaces that it was started in, with a /proc, a /tmp, a
// loopback and a resolv.conf of their own.
func beAgent(socket string) int {
	err := errors.Join(
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount("proc", "/proc", "proc", 0, ""),
		unix.Mount("tmpfs", "/tmp", "tmpfs", 0, ""),
		unix.Mount("tmpfs", "/var/tmp", "tmpfs", 0, ""),
		loopbackUp(),
		os.WriteFile("/var/tmp/resolv", nil, 0o644),
		unix.Mount("/var/tmp/resolv", "/etc/resolv.conf", "", unix.MS_BIND, ""),
		os.Remove("/var/tmp/resolv"),
	)
	for path := range strings.FieldsSeq(os.Getenv(hideEnv)) {
		err = errors.Join(err, unix.Mount("/dev/null", path, "", unix.MS_BIND, ""))
	}
	if err == nil {
		err = agent.Main(context.Background(), socket)
	}
	fmt.Fprintln(os.Stderr, "agent:", err)
	return 1
}

// loopbackUp switches the loopback of a new network namespace on.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}

// testBox is an agent in namespaces of its own, without a container engine.
type testBox struct {
	*box.Client
	t      testing.TB
	pid    int
	socket string
	calls  int
	mu     sync.Mutex
}

// newBox starts an agent; it dies with the test. It needs root, for the namespaces.
func newBox(t testing.TB, init box.Init) *testBox {
	t.Helper()
	b := startBox(t)
	c, err := b.dial(init)
	if err != nil {
		t.Fatalf("Dial: %v", err)
	}
	b.Client = c
	return b
}

// startBox starts an agent and does not connect.
func startBox(t testing.TB, hide ...string) *testBox {
	t.Helper()
	if os.Getuid() != 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("the box agent's tests make PID namespaces: run them as root")
		}
		t.Skip("SKIPPED LOUDLY: the box agent's tests make PID namespaces and need root")
	}
	dir, err := os.MkdirTemp("/run", "boxtest") // not below /tmp, which the agent covers
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "ctl")
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{agentEnv + "=" + socket, hideEnv + "=" + strings.Join(hide, " ")}
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	})
	return &testBox{t: t, pid: cmd.Process.Pid, socket: socket}
}

// dial connects, waiting for the socket to appear.
func (b *testBox) dial(init box.Init) (*box.Client, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for {
		c, err := box.Dial(ctx, b.socket, box.Options{ExpectPID: b.pid, Init: init})
		if err == nil {
			b.t.Cleanup(func() { c.Close() })
			return c, nil
		}
		if !errors.Is(err, syscall.ENOENT) && !errors.Is(err, syscall.ECONNREFUSED) || ctx.Err() != nil {
			return nil, err
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// do makes a call under a fresh ID, which has to give a result.
func (b *testBox) do(call sandbox.Call) sandbox.Result {
	b.t.Helper()
	b.mu.Lock()
	b.calls++
	call.ID = fmt.Sprintf("call-%d", b.calls)
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	res, err := b.Do(ctx, call)
	if err != nil {
		b.t.Fatalf("%s %.200q: %v", call.Op, call.Command+call.Path+call.Handle, err)
	}
	return res
}

// sh runs a command in the shell, for 20 s at most.
func (b *testBox) sh(command string) sandbox.Result {
	b.t.Helper()
	return b.do(sandbox.Call{Op: sandbox.OpShell, Command: command, Timeout: 20 * time.Second})
}

// out runs a command that has to succeed, and gives its output.
func (b *testBox) out(command string) string {
	b.t.Helper()
	res := b.sh(command)
	if code(res) != 0 {
		b.t.Fatalf("%.200q: exit %d, output %.400q", command, code(res), res.Output)
	}
	return string(res.Output)
}

// code gives an exit code, -1 for none.
func code(r sandbox.Result) int {
	if r.Exit == nil {
		return -1
	}
	return *r.Exit
}
