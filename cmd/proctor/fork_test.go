package main

import (
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"proctor/internal/client"
	"proctor/internal/rollouts"
	"proctor/monitor"
)

// harness runs one argv as the harness and gives what it printed.
func (c *child) harness(id string, argv ...string) string {
	c.t.Helper()
	var got struct{ Stdout string }
	if err := c.client.Do(c.t.Context(), http.MethodPost, "/v1/rollouts/"+id+"/exec", "", map[string]any{"argv": argv}, &got); err != nil {
		c.t.Fatal(err)
	}
	return got.Stdout
}

// snapshotImages lists the images of snapshots of some rollouts' snapshots by id.
func snapshotImages(t *testing.T, ids ...string) []string {
	t.Helper()
	out, err := exec.Command("docker", "image", "ls", "--format", "{{.Tag}}", "proctor/snapshot").Output()
	if err != nil {
		t.Fatal(err)
	}
	var mine []string
	for _, tag := range strings.Fields(string(out)) {
		for _, id := range ids {
			if tag == id {
				mine = append(mine, tag)
			}
		}
	}
	return mine
}

// Forks of a real sandbox: files, folder and environment are carried, processes are not; what the agent exported
// steers nothing of the harness's; a fork outlives a crash and its parent, and images go with the last fork.
func TestForkOfASandbox(t *testing.T) {
	t.Parallel()
	s := startServer(t, t.TempDir())
	parent := s.create(monitor.Enforce)
	do := func(made rollouts.Created, command, want string) {
		t.Helper()
		if got, err := s.bash(made, command, ""); err != nil || got.Output != want {
			t.Errorf("%s: %q %v, want %q\n%s", command, got.Output, err, want, s.stderr)
		}
	}
	do(parent, `mkdir -p "/tmp/a b" && cd "/tmp/a b" && echo shared >f && export KEPT="it's" AGENT_PATH=/tmp && plain=lost`, "")
	do(parent, `sleep 3021 & export PATH="/tmp/bin:$PATH"`, "")
	began := time.Now()
	forks, err := s.client.Fork(t.Context(), parent.ID, rollouts.ForkRequest{N: 2})
	if err != nil || len(forks.Rollouts) != 2 {
		t.Fatalf("%v: %+v\n%s", err, forks, s.stderr)
	}
	t.Logf("two forks in %v, of which the commit %d ms", time.Since(began), forks.Snapshot.TookMS)
	for _, f := range forks.Rollouts {
		do(f, `echo "$KEPT|$PWD|$plain|${PATH%%:*}"; cat f; echo mine >>f; pgrep -f 'sleep 302[1]' || echo none`, "it's|/tmp/a b||/tmp/bin\nshared\nnone\n")
		if got := s.harness(f.ID, "sh", "-c", `echo "$KEPT$AGENT_PATH|$PWD|${PATH%%:*}"`); got != "|/|/usr/local/sbin\n" {
			t.Errorf("the harness's own command in a fork: %q", got)
		}
	}
	do(parent, "cat f", "shared\n")
	kept, err := s.client.Snapshot(t.Context(), parent.ID)
	if err != nil || kept.Ordinal != 3 || len(snapshotImages(t, forks.Snapshot.ID, kept.ID)) != 2 {
		t.Errorf("snapshot %+v %v", kept, err)
	}
	s.kill()
	s.start()
	do(forks.Rollouts[0], "cat f", "shared\nmine\n")
	record, err := s.client.Trajectory(t.Context(), forks.Rollouts[0].ID)
	if err != nil || len(record.Calls) != 5 || record.Calls[1].Origin != parent.ID || record.Calls[2].Origin != "" {
		t.Errorf("record after the crash: %v, %d calls, want two shared, two own and one of the harness", err, len(record.Calls))
	}
	for i, id := range []string{parent.ID, forks.Rollouts[0].ID, forks.Rollouts[1].ID} {
		if err := s.client.Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if got, want := len(snapshotImages(t, forks.Snapshot.ID, kept.ID)), map[bool]int{true: 1, false: 0}[i < 2]; got != want {
			t.Errorf("after %d of three ended: %d images, want %d", i+1, got, want)
		}
	}
	if _, err := s.client.Fork(t.Context(), parent.ID, rollouts.ForkRequest{N: 1}); !isProblem(err, "not_found") {
		t.Errorf("a fork of what is gone: %v", err)
	}
}

func isProblem(err error, code string) bool {
	p, ok := err.(*client.Problem)
	return ok && p.Code == code
}

// Spares of a killed server are removed by the next one, and what was claimed of them goes on.
func TestSparesAndACrash(t *testing.T) {
	s := startServer(t, t.TempDir(), "--pool-max", "2")
	first := s.create(monitor.Enforce)
	time.Sleep(6 * time.Second) // the next is another burst, where a start takes no longer than a quarter of this
	s.create(monitor.Enforce)
	spares := func() int {
		out, err := exec.Command("docker", "ps", "-q", "--filter", "label=proctor.name=spare", "--filter", "label=proctor="+s.owner()).Output()
		if err != nil {
			t.Fatal(err)
		}
		return len(strings.Fields(string(out)))
	}
	for deadline := time.Now().Add(20 * time.Second); spares() == 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no spare after two bursts: %s", s.stderr)
		}
	}
	time.Sleep(500 * time.Millisecond) // it answers
	began := time.Now()
	claimed := s.create(monitor.Enforce)
	t.Logf("made from a spare in %v", time.Since(began))
	if _, err := s.bash(claimed, "echo kept >/tmp/f", ""); err != nil {
		t.Fatal(err)
	}
	s.kill()
	s.args = nil // a server without a pool
	s.start()
	for _, made := range []rollouts.Created{first, claimed} {
		if _, err := s.bash(made, "true", ""); err != nil {
			t.Errorf("after the crash: %v\n%s", err, s.stderr)
		}
	}
	if got, err := s.bash(claimed, "cat /tmp/f", ""); err != nil || got.Output != "kept\n" {
		t.Errorf("%q %v", got.Output, err)
	}
	out, err := exec.Command("docker", "ps", "-aq", "--filter", "label=proctor="+s.owner()).Output()
	if err != nil || len(strings.Fields(string(out))) != 3 {
		t.Errorf("%v: containers %s, want those of three rollouts", err, out)
	}
}

// owner gives the data folder's id, by which its containers are known: that of its only rollouts' label.
func (c *child) owner() string {
	c.t.Helper()
	views, _, err := c.client.List(c.t.Context(), nil)
	if err != nil || len(views) == 0 {
		c.t.Fatalf("%d rollouts, %v", len(views), err)
	}
	for _, v := range views {
		out, err := exec.Command("docker", "ps", "-a", "--filter", "label=proctor.name="+v.ID, "--format", `{{.Label "proctor"}}`).Output()
		if err == nil && len(strings.TrimSpace(string(out))) > 0 {
			return strings.TrimSpace(string(out))
		}
	}
	c.t.Fatal("no rollout has a container of its name")
	return ""
}
