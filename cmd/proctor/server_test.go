package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"proctor/internal/client"
	"proctor/internal/rollouts"
	"proctor/monitor"
)

// builtIn is the folder of binaries, "" before they are built.
var builtIn string

// binaries builds proctor and boxd once per test run and gives their folder.
var binaries = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "proctor-test-bin")
	if err != nil {
		return "", err
	}
	builtIn = dir
	build := exec.Command("go", "build", "-o", dir+"/", "proctor/cmd/proctor", "proctor/cmd/boxd")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return dir, nil
})

// needDocker ends a test where no daemon with the base image answers: as a failure where one is
// promised, as a loud skip elsewhere.
func needDocker(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED under -short: needs Docker")
	}
	out, err := exec.Command("docker", "image", "inspect", "--format", "{{.Id}}", baseImage).CombinedOutput()
	if err == nil {
		return
	}
	words := fmt.Sprintf("no Docker daemon with %s answers (make image): %v %s", baseImage, err, out)
	if os.Getenv("CI") == "true" || os.Getenv("PROCTOR_REQUIRE_DOCKER") != "" {
		t.Fatal(words)
	}
	t.Skip("SKIPPED: " + words)
}

// child is a server in a process of its own, which a test can kill.
type child struct {
	t      *testing.T
	data   string
	args   []string
	cmd    *exec.Cmd
	stderr *bytes.Buffer
	client *client.Client
}

// startServer starts a server on a data folder and waits until it takes requests.
func startServer(t *testing.T, data string, args ...string) *child {
	t.Helper()
	needDocker(t)
	c := &child{t: t, data: data, args: args}
	c.start()
	t.Cleanup(func() { c.end() })
	return c
}

func (c *child) start() {
	c.t.Helper()
	bin, err := binaries()
	if err != nil {
		c.t.Fatal(err)
	}
	ready := filepath.Join(c.t.TempDir(), "ready.json")
	args := append([]string{"serve", "--listen", "127.0.0.1:0", "--data", c.data, "--ready-file", ready, "--on-exit", "remove"}, c.args...)
	c.cmd, c.stderr = exec.Command(filepath.Join(bin, "proctor"), args...), &bytes.Buffer{}
	c.cmd.Stderr = c.stderr
	if err := c.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	deadline := time.Now().Add(60 * time.Second)
	for {
		if body, err := os.ReadFile(ready); err == nil {
			var said struct{ URL string }
			if err := json.Unmarshal(body, &said); err != nil {
				c.t.Fatalf("ready file %q: %v", body, err)
			}
			key, err := os.ReadFile(filepath.Join(c.data, "keys", "trainer.key"))
			if err != nil {
				c.t.Fatal(err)
			}
			c.client = client.New(said.URL, strings.TrimSpace(string(key)))
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("the server is not ready after 60 s: %s", c.stderr)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// kill is a crash: SIGKILL, and nothing of the server is left.
func (c *child) kill() {
	c.t.Helper()
	if err := c.cmd.Process.Kill(); err != nil {
		c.t.Fatal(err)
	}
	_ = c.cmd.Wait()
}

// end drains the server, which removes its sandboxes.
func (c *child) end() {
	if c.cmd.ProcessState != nil {
		return
	}
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	if err := c.cmd.Wait(); err != nil {
		c.t.Errorf("the server ended with %v: %s", err, c.stderr)
	}
}

// create makes a rollout of an inline task on the base image.
func (c *child) create(mode string) rollouts.Created {
	c.t.Helper()
	made, err := c.client.Create(c.t.Context(), rollouts.CreateRequest{Mode: mode,
		Task: json.RawMessage(`{"id": "probe", "instruction": "probe", "image": "` + baseImage + `", "workdir": "/"}`)})
	if err != nil {
		c.t.Fatalf("create: %v\n%s", err, c.stderr)
	}
	return made
}

func (c *child) bash(made rollouts.Created, command, key string) (monitor.Observation, error) {
	return c.client.Call(c.t.Context(), made.ID, made.AgentToken, "c", "bash", map[string]any{"command": command, "timeout_s": 30}, "Idempotency-Key", key)
}

// A call whose server is killed under it runs once, and a retry with its key gets its answer; so does
// one of eight clients at once.
func TestKeyOutlivesTheServer(t *testing.T) {
	t.Parallel()
	s := startServer(t, t.TempDir())
	made := s.create(monitor.Enforce)
	const command = "echo run >> /tmp/runs; sleep 2; wc -l < /tmp/runs; (exit 6)"
	cut := make(chan error, 1)
	go func() {
		_, err := s.bash(made, command, "once")
		cut <- err
	}()
	time.Sleep(time.Second)
	s.kill()
	if err := <-cut; err == nil {
		t.Fatal("the call was answered before the server was killed")
	}
	s.start()

	var wg sync.WaitGroup
	answers := make([]monitor.Observation, 8)
	errs := make([]error, len(answers))
	for i := range answers {
		wg.Go(func() { answers[i], errs[i] = s.bash(made, command, "once") })
	}
	wg.Wait()
	for i, a := range answers {
		if errs[i] != nil {
			t.Fatalf("retry %d: %v\n%s", i, errs[i], s.stderr)
		}
		if a.Output != "1\n" || a.ExitCode == nil || *a.ExitCode != 6 {
			t.Errorf("retry %d was answered %+v", i, a)
		}
	}
	if runs, err := s.bash(made, "wc -l < /tmp/runs", "count"); err != nil || runs.Output != "1\n" {
		t.Errorf("runs %q, %v", runs.Output, err)
	}
	other, err := s.bash(made, "echo other", "once")
	var p *client.Problem
	if !errors.As(err, &p) || p.Code != "idempotency_conflict" {
		t.Errorf("the key with another command: %+v, %v", other, err)
	}
}

// State of the shell and of the record outlive a crash between calls.
func TestShellOutlivesTheServer(t *testing.T) {
	t.Parallel()
	s := startServer(t, t.TempDir())
	made := s.create(monitor.Enforce)
	if _, err := s.bash(made, "cd /tmp && plain=kept", "a"); err != nil {
		t.Fatal(err)
	}
	s.kill()
	s.start()
	seen, err := s.bash(made, `echo "$PWD $plain"`, "b")
	if err != nil || seen.Output != "/tmp kept\n" {
		t.Errorf("after the crash: %+v, %v", seen, err)
	}
	record, err := s.client.Trajectory(t.Context(), made.ID)
	if err != nil || len(record.Calls) != 2 || record.Calls[0].Observation == nil || record.Calls[1].Ordinal != 2 {
		t.Errorf("record %+v, %v", record, err)
	}
}

// The black-box probe of the sandbox contract passes as a whole, on both engines. Most of it is waiting: both at once.
func TestExecProbe(t *testing.T) {
	t.Run("docker", func(t *testing.T) {
		t.Parallel()
		execProbe(t)
	})
	t.Run("oci with runc", func(t *testing.T) {
		t.Parallel()
		needRunc(t)
		execProbe(t, "--engine", "oci", "--oci-runtime", "runc", "--oci-store", ociStore(t))
	})
}

// needRunc makes sure that the oci engine can run here. Where it cannot, the test fails under a run that demands all,
// and is skipped, loudly, elsewhere.
func needRunc(t *testing.T) {
	t.Helper()
	_, err := exec.LookPath("runc")
	if err == nil && os.Geteuid() != 0 {
		err = errors.New("not root")
	}
	if err == nil {
		return
	}
	if os.Getenv("CI") == "true" || os.Getenv("PROCTOR_REQUIRE_DOCKER") == "1" {
		t.Fatalf("the oci engine needs root and the package runc: %v", err)
	}
	t.Skipf("NOT TESTED, the oci engine needs root and the package runc: %v", err)
}

// ociStore gives a store of the test's own, on the disk that the machine's would be on.
func ociStore(t *testing.T) string {
	t.Helper()
	path, err := os.MkdirTemp("/var/lib", "initd-test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(path); err != nil {
			t.Error(err)
		}
	})
	return path
}

// execProbe runs the probe against a server with flags.
func execProbe(t *testing.T, flags ...string) {
	t.Helper()
	script, err := filepath.Abs("../../../shared/tools/exec_probe.py")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(script); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the shared probe is not beside the project: %v", err)
		}
		t.Skipf("SKIPPED, LOUDLY: the shared probe is not beside the project: %v", err)
	}
	s := startServer(t, t.TempDir(), append([]string{"--log-level", "warn"}, flags...)...)
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	// Most of a probe is waiting, so that some at once take a fraction of the time.
	var wg sync.WaitGroup
	var passed atomic.Int64
	names := probes(t, script)
	const hands = 3
	for hand := range hands {
		wg.Go(func() {
			var mine []string
			for i := hand; i < len(names); i += hands {
				mine = append(mine, names[i])
			}
			if len(mine) == 0 {
				return
			}
			got := runProbes(ctx, script, s, mine)
			if slices.Equal(got.failures(), []string{countsFiles}) {
				got = got.with(runProbes(ctx, script, s, []string{countsFiles}))
			}
			if got.err != nil || got.Failed != 0 || got.Passed+got.Skipped != len(mine) {
				t.Errorf("%v: %+v of %d\n%s\nserver: %s", got.err, got, len(mine), got.progress, s.stderr)
			}
			passed.Add(int64(got.Passed))
		})
	}
	wg.Wait()
	t.Logf("%d of %d probes passed", passed.Load(), len(names))
}

// countsFiles is a probe that counts the files below /proc that hold its mark, to know how many processes do: of one that
// turns into another program between the reading of its two files it counts both. It is asked a second time.
const countsFiles = "background_job_returns_at_once"

// probeReport is what the probe says.
type probeReport struct {
	Passed, Failed, Skipped int
	Probes                  []struct{ Name, Status string }

	err      error
	progress string
}

// failures names the probes that failed.
func (p probeReport) failures() []string {
	var names []string
	for _, x := range p.Probes {
		if x.Status == "FAIL" {
			names = append(names, x.Name)
		}
	}
	return names
}

// with puts the second answer of the only probe that failed in the place of the first.
func (p probeReport) with(again probeReport) probeReport {
	return probeReport{Passed: p.Passed + again.Passed, Failed: again.Failed, Skipped: p.Skipped + again.Skipped, err: again.err, progress: p.progress + again.progress}
}

// runProbes runs some probes one after the other.
func runProbes(ctx context.Context, script string, s *child, names []string) probeReport {
	args := []string{script, "--url", s.client.URL, "--key", s.client.Key, "--image", baseImage, "--json", "--only", strings.Join(names, ",")}
	var out, progress bytes.Buffer
	cmd := exec.CommandContext(ctx, "python3", args...)
	cmd.Stdout, cmd.Stderr = &out, &progress
	var got probeReport
	got.err = cmd.Run()
	got.err = errors.Join(got.err, json.Unmarshal(out.Bytes(), &got))
	got.progress = progress.String()
	return got
}

// probes gives the names of all probes but the slow ones, or those that PROCTOR_PROBE_ONLY lists.
func probes(t *testing.T, script string) []string {
	t.Helper()
	args := []string{script, "--list", "--json"}
	only := os.Getenv("PROCTOR_PROBE_ONLY")
	if only != "" {
		args = append(args, "--only", only)
	}
	out, err := exec.Command("python3", args...).Output()
	var rows []struct {
		Name string
		Slow bool
	}
	if err = errors.Join(err, json.Unmarshal(out, &rows)); err != nil {
		t.Fatalf("the probe does not list its probes: %v: %s", err, out)
	}
	var names []string
	for _, r := range rows {
		if !r.Slow || only != "" {
			names = append(names, r.Name)
		}
	}
	if len(names) == 0 {
		t.Fatal("the probe lists no probes")
	}
	return names
}

// A second server on the same data folder is refused, and says whose it is.
func TestSecondServerIsRefused(t *testing.T) {
	data := t.TempDir()
	s := startServer(t, data)
	bin, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(filepath.Join(bin, "proctor"), "serve", "--listen", "127.0.0.1:0", "--data", data).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitInfra || !strings.Contains(string(out), fmt.Sprint(s.cmd.Process.Pid)) {
		t.Errorf("%v: %s", err, out)
	}
}

// A decoyed answer is told from no other by its fields, headers or status.
func TestDecoyedAnswerHasNoTell(t *testing.T) {
	task, err := filepath.Abs("../../testdata/tasks/interval-merge")
	if err != nil {
		t.Fatal(err)
	}
	s := startServer(t, t.TempDir(), "--tasks", task)
	made, err := s.client.Create(t.Context(), rollouts.CreateRequest{TaskID: "interval-merge"})
	if err != nil {
		t.Fatalf("%v\n%s", err, s.stderr)
	}
	var decoyed, natural monitor.Observation
	if decoyed, err = s.bash(made, "cat /testbed/.eval/secret_cases.json", "1"); err != nil {
		t.Fatal(err)
	}
	if natural, err = s.bash(made, "cat /testbed/.nothing/secret_cases.json", "2"); err != nil {
		t.Fatal(err)
	}
	if got := strings.ReplaceAll(natural.Output, ".nothing", ".eval"); decoyed.Output != got || *decoyed.ExitCode != *natural.ExitCode {
		t.Errorf("decoy %+v\nnatural %+v", decoyed, natural)
	}
	record, err := s.client.Trajectory(t.Context(), made.ID)
	if err != nil {
		t.Fatal(err)
	}
	if v := record.Calls[0].Verdict; v.Action != monitor.Decoyed || record.Calls[0].Original != nil {
		t.Errorf("the call was not decoyed: %+v", v)
	}
	if after, err := s.bash(made, "ls -A /testbed | grep -c eval; test -e /testbed/.eval; echo $?", "3"); err != nil || after.Output != "0\n1\n" {
		t.Errorf("a later look: %+v, %v", after, err)
	}
}

// What a hardened repository really holds is shown as it is, byte for byte as where nobody watches,
// and the attempt is on the record.
func TestCleanRepositoryIsShownAsItIs(t *testing.T) {
	task, err := filepath.Abs("../../testdata/tasks/interval-merge")
	if err != nil {
		t.Fatal(err)
	}
	s := startServer(t, t.TempDir(), "--tasks", task)
	shown := map[string][]string{}
	commands := []string{"cat .git/packed-refs", "ls .git/refs/tags .git/logs 2>&1", "find .git/objects -type f | sort", "ls -a .git"}
	for _, mode := range []string{monitor.Enforce, monitor.Off} {
		made, err := s.client.Create(t.Context(), rollouts.CreateRequest{TaskID: "interval-merge", Mode: mode})
		if err != nil {
			t.Fatalf("%v\n%s", err, s.stderr)
		}
		for i, command := range commands {
			seen, err := s.bash(made, command, fmt.Sprint(i))
			if err != nil {
				t.Fatal(err)
			}
			shown[mode] = append(shown[mode], fmt.Sprintf("%s (%d)", seen.Output, *seen.ExitCode))
		}
		if mode == monitor.Off {
			continue
		}
		record, err := s.client.Trajectory(t.Context(), made.ID)
		if err != nil {
			t.Fatal(err)
		}
		if v := record.Calls[0].Verdict; v.Decision != monitor.Block || v.Action != monitor.Filtered || !v.Hack {
			t.Errorf("the attempt is recorded as %+v", v)
		}
	}
	for i, command := range commands {
		if shown[monitor.Enforce][i] != shown[monitor.Off][i] {
			t.Errorf("%s\nwatched: %s\nunwatched: %s", command, shown[monitor.Enforce][i], shown[monitor.Off][i])
		}
	}
}
