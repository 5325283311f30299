package main

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"proctor/internal/rollouts"

	"github.com/google/go-cmp/cmp"
)

// SWE-ReX's remote runtime, OpenEnv's client and the MCP SDK, as their authors publish them, drive real
// sandboxes. PROCTOR_COMPAT_PYTHON names a Python that has them (make compat makes one).
func TestCompatClients(t *testing.T) {
	python := os.Getenv("PROCTOR_COMPAT_PYTHON")
	if python == "" {
		t.Skip("SKIPPED: PROCTOR_COMPAT_PYTHON names no Python with swe-rex, openenv-core and mcp; run make compat")
	}
	open := freeAddress(t)
	c := startServer(t, t.TempDir(), "--tasks", "../../testdata/tasks", "--compat-listen", open)
	cmd := exec.Command(python, "../../testdata/compat/clients.py")
	cmd.Env = append(os.Environ(), "PROCTOR_URL="+c.client.URL, "PROCTOR_KEY="+c.client.Key, "OPEN_URL=http://"+open, "TASK=interval-merge")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the clients: %v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n") // SWE-ReX prints beside
	var seen map[string]map[string]any
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &seen); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	for _, who := range []string{"agent", "harness"} {
		want := map[string]any{"alive": true, "echo": "hello\n", "kept": "b /tmp\n", "raised": "NonZeroExitCodeError", "silent": 3.0,
			"execute": "y in /usr\n", "read": "written\n", "uploaded": []any{"tool", "256"}}
		if diff := cmp.Diff(want, seen["swerex"][who]); diff != "" {
			t.Errorf("SWE-ReX as %s (-want +got):\n%s", who, diff)
		}
	}
	if e := seen["openenv"]; e["output"] != "/testbed\n42\n" || e["done"] != true || e["reward"] != 0.0 || e["steps"] != 1.0 || e["instruction"] == "" {
		t.Errorf("OpenEnv: %v", e)
	}
	if m := seen["mcp"]; m["output"] != "over mcp\n" || m["error"] != false || m["bad"] != true || len(m["tools"].([]any)) != len(rollouts.ToolList()) {
		t.Errorf("MCP: %v", m)
	}
	byWhom(t, c, seen["swerex"]["rollout"].(string))
}

// byWhom wants the agent's calls and the harness's told apart in the record.
func byWhom(t *testing.T, c *child, id string) {
	t.Helper()
	var tr rollouts.Trajectory
	if err := c.client.Do(t.Context(), "GET", "/v1/rollouts/"+id+"/trajectory", "", nil, &tr); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, call := range tr.Calls {
		count[call.Principal]++
	}
	if count["agent"] < 8 || count["harness"] < 8 {
		t.Errorf("calls by principal: %v", count)
	}
}

// freeAddress gives a loopback address that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
