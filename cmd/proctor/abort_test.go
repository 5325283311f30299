package main

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"

	"proctor/internal/rollouts"
)

// An abort of a group frees its containers: none is left when it answers. It is to take a second; on a machine that
// does other things too it is held to what the daemon itself takes to remove as many containers.
func TestGroupAbortFreesContainers(t *testing.T) {
	s := startServer(t, t.TempDir())
	const n = 3
	var group rollouts.GroupCreated
	body := rollouts.GroupRequest{N: n, CreateRequest: rollouts.CreateRequest{
		Task: json.RawMessage(`{"id": "probe", "instruction": "probe", "image": "` + baseImage + `", "workdir": "/"}`)}}
	if err := s.client.Do(t.Context(), "POST", "/v1/groups", "", body, &group); err != nil || len(group.Rollouts) != n {
		t.Fatalf("%d members: %v", len(group.Rollouts), err)
	}
	running := make(chan struct{}, n)
	for _, made := range group.Rollouts {
		go func() {
			running <- struct{}{}
			_, _ = s.bash(made, "sleep 300", "k") // ended by the abort: there is no answer
		}()
	}
	for range n {
		<-running
	}
	labels := func() []string {
		var left []string
		for _, made := range group.Rollouts {
			out, err := exec.Command("docker", "ps", "-aq", "--filter", "label=proctor.name="+made.ID).Output()
			if err != nil {
				t.Fatal(err)
			}
			left = append(left, strings.Fields(string(out))...)
		}
		return left
	}
	if got := labels(); len(got) != n {
		t.Fatalf("%d containers run, want %d", len(got), n)
	}
	began := time.Now()
	if err := s.client.Do(t.Context(), "POST", "/v1/groups/"+group.ID+"/abort", "", nil, nil); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	if left := labels(); len(left) > 0 {
		t.Errorf("%d containers are left when the abort answers", len(left))
	}
	out, err := exec.Command("docker", "run", "-d", "--network", "none", "--label", "proctor-test=abort", baseImage, "sleep", "300").Output()
	if err != nil {
		t.Fatal(err)
	}
	began = time.Now()
	if err := exec.Command("docker", "rm", "-f", strings.TrimSpace(string(out))).Run(); err != nil {
		t.Fatal(err)
	}
	one := time.Since(began)
	t.Logf("the abort of %d took %v, docker rm -f of one %v", n, took, one)
	if took > max(time.Second, 2*n*one) {
		t.Errorf("the abort of %d took %v, where the daemon removes one in %v", n, took, one)
	}
}
