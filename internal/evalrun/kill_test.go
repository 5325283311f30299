package evalrun

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"proctor/internal/client"
	"proctor/internal/evalrun/modeltest"
)

// TestChildRun is no test: it is the process that TestKill kills.
func TestChildRun(t *testing.T) {
	dir := os.Getenv("EVALRUN_CHILD")
	if dir == "" {
		t.Skip("only as a child of TestKill")
	}
	var p Plan
	if err := json.Unmarshal([]byte(os.Getenv("EVALRUN_PLAN")), &p); err != nil {
		t.Fatal(err)
	}
	r := newRunner(dir, client.New(os.Getenv("EVALRUN_SERVER"), "key"), p.BaseURL)
	if _, err := r.Run(context.Background(), p); err != nil {
		t.Fatal(err)
	}
}

// A run that is killed at any moment, again and again, ends with the same set: no rollout, call or
// result twice, and no more replies asked for than those that were under way.
func TestKill(t *testing.T) {
	slow := func(w http.ResponseWriter, r *http.Request, req *modeltest.Request) {
		time.Sleep(15 * time.Millisecond)
		modeltest.Script("echo one", "echo two", "echo three", "echo four")(w, r, req)
	}
	c, m, dir := newServer(t, "good-a", "good-b", "bad-c"), model(t, slow), t.TempDir()
	p := planFor(m.URL, "good-a", "good-b", "bad-c")
	p.N = 3
	plan, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1)) //nolint:gosec // any moment will do
	kills, done := 0, false
	for round := 0; round < 60 && !done; round++ {
		cmd := exec.Command(os.Args[0], "-test.run=^TestChildRun$")
		cmd.Env = append(os.Environ(), "EVALRUN_CHILD="+dir, "EVALRUN_SERVER="+c.URL, "EVALRUN_PLAN="+string(plan))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		// The longer it goes on, the longer a sitting is let be, so that a slow machine ends, too.
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			done = true
		case <-time.After(time.Duration(50+rng.IntN(150)+60*round) * time.Millisecond):
			kills++
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			<-ended
		}
	}
	if !done {
		t.Fatal("the run did not end in 60 sittings")
	}
	t.Logf("killed %d times, %d requests", kills, len(m.Requests()))
	rep, err := Open(dir)
	if err != nil || rep.Done != 9 || rep.Graded != 9 || rep.Resolved != 6 {
		t.Fatalf("%+v, %v", rep, err)
	}
	if n := len(allRollouts(t, c)); n != 9 {
		t.Errorf("%d rollouts were made", n)
	}
	for _, res := range rep.Results {
		if got := commands(t, c, res.RolloutID); got != "echo one|echo two|echo three|echo four|submit" {
			t.Errorf("%s #%d ran %s", res.TaskID, res.Attempt, got)
		}
		if res.Turns != 5 {
			t.Errorf("%s #%d: %d turns", res.TaskID, res.Attempt, res.Turns)
		}
	}
	if lines := strings.Count(readFile(t, dir, "journal.jsonl"), "\n"); lines != 9 {
		t.Errorf("the journal has %d lines", lines)
	}
	if n := len(m.Requests()); n > 9*5+kills*3 {
		t.Errorf("%d replies were asked for, with %d kills and three attempts at once", n, kills)
	}
}

// An outside agent whose run was killed starts anew, on a rollout of its own, and none is left behind.
func TestKillOutside(t *testing.T) {
	c, dir := newServer(t, "good"), t.TempDir()
	gate := filepath.Join(dir, "gate")
	const agent = `curl -sSf "$PROCTOR_URL/v1/rollouts/$PROCTOR_ROLLOUT/calls" -H "Authorization: Bearer $PROCTOR_AGENT_TOKEN" -d '{"name": "bash", "arguments": {"command": "echo hi"}}' >/dev/null
[ -e GATE ] || sleep 60`
	p := Plan{Tasks: []string{"good"}, N: 1, Protocol: Auto, Agent: strings.ReplaceAll(agent, "GATE", gate)}
	plan, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "run")
	cmd := exec.Command(os.Args[0], "-test.run=^TestChildRun$")
	cmd.Env = append(os.Environ(), "EVALRUN_CHILD="+out, "EVALRUN_SERVER="+c.URL, "EVALRUN_PLAN="+string(plan))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if views := allRollouts(t, c); len(views) == 1 && views[0].Calls == 1 {
			break
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if err := os.WriteFile(gate, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	res := mustRun(t, &Runner{Dir: out, Client: c, Patience: time.Second}, p).Results[0]
	if res.Reward == nil || res.Try != 1 || commands(t, c, res.RolloutID) != "echo hi" {
		t.Errorf("%+v", res)
	}
	for _, v := range allRollouts(t, c) {
		if v.ID != res.RolloutID && v.Status != "deleted" {
			t.Errorf("%s is left %s", v.ID, v.Status)
		}
	}
}

// A line that a crash cut short is taken away, wherever it was cut.
func TestCutJournal(t *testing.T) {
	line := func(k int) string { return fmt.Sprintf(`{"task_id":"a","attempt":%d,"reward":1}`, k) + "\n" }
	whole := line(1) + line(2)
	for n := range len(whole) + 1 {
		path := filepath.Join(t.TempDir(), "journal.jsonl")
		if err := os.WriteFile(path, []byte(whole[:n]), 0o600); err != nil {
			t.Fatal(err)
		}
		results, log, err := readResults(path)
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		want := strings.Count(whole[:n], "\n")
		if err := log.Append(&Result{TaskID: "a", Attempt: 9}); err != nil || len(results) != want {
			t.Errorf("cut at %d: %d results, want %d, %v", n, len(results), want, err)
		}
		again, log2, err := readResults(path)
		if err != nil || len(again) != want+1 {
			t.Errorf("cut at %d, then appended: %d results, %v", n, len(again), err)
		}
		_, _ = log.Close(), log2.Close()
	}
}
