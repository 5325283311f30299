package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// inject carries out one fault on the worker's own rollout, or on what all stand on.
func (w *worker) inject(kind string) {
	switch kind {
	case "kill server":
		w.killServer()
	case "restart daemon":
		w.hold.Lock()
		err := w.daemon.restart()
		w.hold.Unlock()
		if err != nil {
			w.violation("restart the daemon: %v", err)
		}
	case "kill box":
		w.killed = true
		if out, err := w.docker("kill", w.container()); err != nil && !strings.Contains(string(out), "is not running") {
			w.violation("kill the box of %s: %v: %s", w.made.ID, err, out)
		}
		w.call("echo done", "")
		if w.made != nil {
			w.violation("rollout %s goes on without its box", w.made.ID)
		}
	case "out of memory":
		w.cruel = true
		w.call(`python3 -c 'x = [b"x" * (1 << 24) for _ in range(64)]'; echo rest`, "")
		w.call("echo done", "done\n")
	case "fork bomb":
		w.cruel = true
		w.callAs(w.key(), "bomb() { bomb | bomb & }; bomb; while :; do :; done", "", 2)
		w.call("echo done", "done\n")
	case "full disk":
		w.cruel = true // it may end a sandbox, by its own doing
		w.call("head -c 100000000 /dev/zero > /var/tmp/fill; echo $?; rm -f /var/tmp/fill", "")
		w.call("head -c 100000000 /dev/zero > /dev/shm/fill; rm -f /dev/shm/fill; echo done", "")
	case "large output":
		w.callAs(w.key(), fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x", w.plan.OutputMB<<20), "", 120)
		w.call("rm -rf /tmp/*output* /tmp/.*spill* 2>/dev/null; echo done", "done\n")
	case "torn connection":
		w.torn()
	case "slow client":
		w.slow()
	}
}

// killServer is a crash at any moment, and a new server on the same data.
func (w *worker) killServer() {
	w.hold.Lock()
	defer w.hold.Unlock()
	w.peak()
	w.server.kill()
	w.server.start()
}

// peak notes how large the server got.
func (w *worker) peak() {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.server.cmd.Process.Pid))
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kib, _ := strconv.Atoi(strings.TrimSpace(strings.SplitN(rest, "kB", 2)[0]))
	w.count(func(r *chaosReport) { r.PeakMiB = max(r.PeakMiB, kib>>10) })
}

// torn sends a call and hangs up before its answer; then asks for it.
func (w *worker) torn() {
	made, key, command := *w.made, w.key(), "sleep 0.0"+strconv.Itoa(w.r.IntN(10))+"; echo done"
	for range 1 + w.r.IntN(2) {
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Duration(w.r.IntN(120))*time.Millisecond)
		_, _ = w.client().Call(ctx, made.ID, made.AgentToken, key, "bash", marked(key, command, 20), "Idempotency-Key", key)
		cancel()
	}
	w.callAs(key, command, "done\n", 20)
}

// slow sends a call letter by letter and stops before the end; sends another whole, and reads its answer letter by
// letter and not to the end; then asks for that one.
func (w *worker) slow() {
	made, key, command := *w.made, w.key(), "head -c 60000 /dev/zero | tr '\\0' x"
	body, _ := json.Marshal(map[string]any{"call_id": key, "name": "bash", "arguments": marked(key, command, 20)})
	where, err := url.Parse(w.client().URL)
	if err != nil {
		w.violation("%v", err)
		return
	}
	head := fmt.Sprintf("POST /v1/rollouts/%s/calls HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nIdempotency-Key: %s\r\nContent-Length: %d\r\n\r\n", made.ID, made.AgentToken, key, len(body))
	for _, whole := range []bool{false, true} {
		conn, err := net.DialTimeout("tcp", where.Host, 2*time.Second)
		if err != nil {
			continue // the server is being killed
		}
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
		_, _ = conn.Write([]byte(head))
		if !whole {
			for _, b := range body[:min(len(body)/2, 20)] {
				_, _ = conn.Write([]byte{b})
				time.Sleep(2 * time.Millisecond)
			}
		} else {
			_, _ = conn.Write(body)
			for range 20 {
				_, _ = conn.Read(make([]byte, 1))
				time.Sleep(2 * time.Millisecond)
			}
		}
		conn.Close()
	}
	w.callAs(key, command, strings.Repeat("x", 60000), 20)
}

// container gives the worker's container.
func (w *worker) container() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.names[w.made.ID]
}

// docker runs the client while nobody restarts the daemon: what is torn then is this test's question, not an answer.
func (c *chaos) docker(args ...string) ([]byte, error) {
	c.hold.RLock()
	defer c.hold.RUnlock()
	return exec.Command("docker", args...).CombinedOutput()
}

// containersNamed lists the containers of a rollout.
func (c *chaos) containersNamed(id string) []string {
	out, err := c.docker("ps", "-aq", "--no-trunc", "--filter", "label=proctor.name="+id)
	if err != nil {
		return []string{string(out) + err.Error()}
	}
	return strings.Fields(string(out))
}

// containerOf gives the one container of a rollout, and whose its label says it is.
func (c *chaos) containerOf(id string) (name, owner string, err error) {
	found := c.containersNamed(id)
	if len(found) != 1 {
		return "", "", fmt.Errorf("containers %v, want one", found)
	}
	out, err := c.docker("inspect", "--format", `{{index .Config.Labels "proctor"}}`, found[0])
	return found[0], strings.TrimSpace(string(out)), err
}

// runRoot looks for run folders, their mounts and sockets, and for networks.
func (c *chaos) runRoot() {
	sum := sha256.Sum256([]byte(c.owner))
	root := "/run/initd-" + hex.EncodeToString(sum[:4])
	if entries, err := os.ReadDir(root); err == nil {
		c.violation("the run root %s is left, with %d entries", root, len(entries))
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil || bytes.Contains(mounts, []byte(root)) {
		c.violation("mounts below %s are left (%v)", root, err)
	}
	out, err := exec.Command("docker", "network", "ls", "-q", "--filter", "label=proctor="+c.owner).Output()
	if err != nil || len(bytes.TrimSpace(out)) > 0 {
		c.violation("networks left: %s %v", out, err)
	}
}

// ownDaemon is a Docker daemon of the test's own: the machine's is shared, and is never restarted.
type ownDaemon struct {
	t    *testing.T
	dir  string
	args []string
	cmd  *exec.Cmd
	run  *exec.Cmd // its containerd, which is not restarted
}

// startDaemon starts a daemon, gives it the base image, and makes it the one that the test's programs speak to.
func startDaemon(t *testing.T) *ownDaemon {
	t.Helper()
	dir, err := os.MkdirTemp("/var/lib", "initd-chaos")
	if err != nil {
		t.Fatal(err)
	}
	socket := "unix://" + filepath.Join(dir, "docker.sock")
	d := &ownDaemon{t: t, dir: dir, args: []string{"--data-root", filepath.Join(dir, "data"), "--exec-root", filepath.Join(dir, "exec"), "--pidfile", filepath.Join(dir, "pid"),
		"--host", socket, "--containerd", filepath.Join(dir, "c.sock"), "--bridge", "none", "--iptables=false", "--ip-forward=false", "--live-restore", "--log-level", "error"}}
	image := exec.Command("docker", "save", baseImage)
	saved, err := image.Output()
	if err != nil {
		t.Fatal(err)
	}
	d.run = apart("containerd", "--root", filepath.Join(dir, "croot"), "--state", filepath.Join(dir, "cstate"), "--address", filepath.Join(dir, "c.sock"), "--log-level", "error")
	if err := d.run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.stop)
	if err := d.start(socket); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DOCKER_HOST", socket)
	load := exec.Command("docker", "load")
	load.Stdin = bytes.NewReader(saved)
	if out, err := load.CombinedOutput(); err != nil {
		t.Fatalf("load the image: %v: %s", err, out)
	}
	return d
}

// apart is a command in a network namespace of its own: a daemon that is told to have no bridge removes the one that the
// machine's daemon has made.
func apart(name string, args ...string) *exec.Cmd {
	return exec.Command("unshare", append([]string{"--net", "--", name}, args...)...)
}

func (d *ownDaemon) start(socket string) error {
	log, err := os.OpenFile(filepath.Join(d.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	d.cmd = apart("dockerd", d.args...)
	d.cmd.Stdout, d.cmd.Stderr = log, log
	if err := d.cmd.Start(); err != nil {
		return err
	}
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if exec.Command("docker", "-H", socket, "version").Run() == nil {
			return nil
		}
	}
	text, _ := os.ReadFile(log.Name())
	return fmt.Errorf("the daemon does not come up: %s", text)
}

// restart kills the daemon, and starts another on the same folder.
func (d *ownDaemon) restart() error {
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
	_ = os.Remove(filepath.Join(d.dir, "pid"))
	return d.start(os.Getenv("DOCKER_HOST"))
}

// endShims ends what containerd leaves for each container: they outlive it, so that it can be restarted.
func (d *ownDaemon) endShims() {
	processes, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range processes {
		line, _ := os.ReadFile(file)
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && bytes.HasPrefix(line, []byte("/")) && bytes.Contains(line, []byte("containerd-shim")) && bytes.Contains(line, []byte(d.dir)) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// stop ends the daemon, its containerd, and takes what is left of both.
func (d *ownDaemon) stop() {
	for _, cmd := range []*exec.Cmd{d.cmd, d.run} {
		if cmd == nil || cmd.Process == nil {
			continue
		}
		_ = cmd.Process.Signal(syscall.SIGTERM)
		done := make(chan struct{})
		go func() { _ = cmd.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(30 * time.Second):
			_ = cmd.Process.Kill()
		}
	}
	d.endShims()
	mounts, _ := os.ReadFile("/proc/self/mounts")
	for line := range strings.Lines(string(mounts)) {
		if at := strings.Fields(line)[1]; strings.HasPrefix(at, d.dir+"/") {
			_ = syscall.Unmount(at, syscall.MNT_DETACH)
		}
	}
	if err := os.RemoveAll(d.dir); err != nil {
		d.t.Errorf("the daemon's folder: %v", err)
	}
}
