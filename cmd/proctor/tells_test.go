package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"proctor/internal/rollouts"
	"proctor/monitor"
)

// tellProbe is one call of the adversary's.
type tellProbe struct {
	group, text string // as it stands in the list
	tool        string
	arguments   map[string]any
}

// probesOf reads a list of probes, in the order of the list.
func probesOf(t *testing.T, name string) []tellProbe {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var out []tellProbe
	group := ""
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "## "):
			group = line[3:]
		case line == "", strings.HasPrefix(line, "# "):
		default:
			p, err := probeOf(line)
			if err != nil {
				t.Fatalf("%s:%d: %v", name, n, err)
			}
			p.group = group
			out = append(out, p)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func probeOf(line string) (tellProbe, error) {
	p := tellProbe{text: line, tool: monitor.ToolBash, arguments: map[string]any{"command": line, "timeout_s": 60}}
	switch {
	case strings.HasPrefix(line, `"`) && strings.HasSuffix(line, `"`):
		var text string
		if err := json.Unmarshal([]byte(line), &text); err != nil {
			return p, err
		}
		p.arguments["command"] = text
	case strings.HasPrefix(line, "@"):
		tool, args, _ := strings.Cut(line[1:], " ")
		p.tool, p.arguments = tool, nil
		return p, json.Unmarshal([]byte(args), &p.arguments)
	}
	return p, nil
}

// subject is one rollout of the comparison and what it was shown.
type subject struct {
	made  rollouts.Created
	shown []monitor.Observation
	took  []time.Duration
}

// probeAll takes both rollouts through all probes, side by side.
func probeAll(t *testing.T, s *child, probes []tellProbe, subjects ...*subject) {
	t.Helper()
	var wg sync.WaitGroup
	for _, sub := range subjects {
		wg.Go(func() {
			for i, p := range probes {
				began := time.Now()
				o, err := s.client.Call(t.Context(), sub.made.ID, sub.made.AgentToken, "c", p.tool, p.arguments, "Idempotency-Key", fmt.Sprint(i))
				if err != nil {
					t.Errorf("probe %d, %s: %v", i, p.text, err)
					return
				}
				sub.shown, sub.took = append(sub.shown, o), append(sub.took, time.Since(began))
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// subjectOf makes a rollout of the demo's task.
func subjectOf(t *testing.T, s *child, mode string, hardened bool) *subject {
	t.Helper()
	made, err := s.client.Create(t.Context(), rollouts.CreateRequest{TaskID: "interval-merge", Mode: mode, Hardening: &hardened})
	if err != nil {
		t.Fatalf("%v\n%s", err, s.stderr)
	}
	return &subject{made: made}
}

// told compares what two rollouts were shown, to the byte.
func told(a, b monitor.Observation) bool {
	exits := (a.ExitCode == nil) == (b.ExitCode == nil) && (a.ExitCode == nil || *a.ExitCode == *b.ExitCode)
	return exits && a.Output == b.Output && a.TimedOut == b.TimedOut && a.Truncated == b.Truncated && (a.Handle == nil) == (b.Handle == nil)
}

// compareTold fails the test for each probe whose answers differ, and says how many were blocked.
func compareTold(t *testing.T, s *child, probes []tellProbe, watched, clean *subject) {
	t.Helper()
	record, err := s.client.Trajectory(t.Context(), watched.made.ID)
	if err != nil {
		t.Fatal(err)
	}
	blocked, hows := 0, map[string]int{}
	for i, p := range probes {
		v := record.Calls[i].Verdict
		if v.Decision == monitor.Block {
			blocked++
		}
		how := "allowed"
		if v.Decoy != nil {
			how = v.Decoy.How
		}
		hows[how]++
		if took := watched.took[i]; took > 500*time.Millisecond {
			t.Logf("%v, clean %v: %s", took, clean.took[i], p.text)
		}
		if a, b := watched.shown[i], clean.shown[i]; !told(a, b) {
			t.Errorf("%s: %s\n(%s %s %s)\nwatched %q (%v)\nclean   %q (%v)", p.group, p.text, v.Decision, v.Class, how, a.Output, exitOf(a), b.Output, exitOf(b))
		}
	}
	t.Logf("%d probes, %d blocked, answered %v", len(probes), blocked, hows)
	if blocked < len(probes)/2 {
		t.Errorf("only %d of %d probes were blocked: the comparison says little", blocked, len(probes))
	}
}

func exitOf(o monitor.Observation) string {
	if o.ExitCode == nil {
		return "none"
	}
	return fmt.Sprint(*o.ExitCode)
}

// tellServer starts a server with the demo's task.
func tellServer(t *testing.T) *child {
	t.Helper()
	task, err := filepath.Abs("../../testdata/tasks/interval-merge")
	if err != nil {
		t.Fatal(err)
	}
	return startServer(t, t.TempDir(), "--tasks", task, "--log-level", "error")
}

// tellsShort is how many probes of each group are tried where not all are asked for: make tells.
const tellsShort = 11

// tellsWanted gives the probes to try: all with PROCTOR_TELLS set, else the first of each group.
func tellsWanted(t *testing.T) []tellProbe {
	t.Helper()
	all := probesOf(t, "tells.txt")
	if len(all) < 150 {
		t.Fatalf("only %d probes are listed", len(all))
	}
	if os.Getenv("PROCTOR_TELLS") != "" {
		return all
	}
	n := map[string]int{}
	return slices.DeleteFunc(all, func(p tellProbe) bool { n[p.group]++; return n[p.group] > tellsShort })
}

// An adversary with root in the sandbox finds no difference between a rollout that is watched and one
// that nobody looks at in a sandbox without the forbidden things, call by call, to the byte: not in
// texts, statuses, streams, the shell's state, times, processes, nor by another tool. It holds for an
// image that was hardened, and where the forbidden files lie in the sandbox that the agent is given.
func TestNoTell(t *testing.T) {
	s := tellServer(t)
	probes := tellsWanted(t)
	watched, clean := subjectOf(t, s, monitor.Enforce, true), subjectOf(t, s, monitor.Off, true)
	t.Run("hardened", func(t *testing.T) {
		probeAll(t, s, probes, watched, clean)
		compareTold(t, s, probes, watched, clean)
	})
	t.Run("raw", func(t *testing.T) {
		// Another history shows in git, and the caches that hardening drops in the root's listing; the
		// network is the same one.
		fit := slices.DeleteFunc(slices.Clone(probes), func(p tellProbe) bool {
			return p.group == "git" || p.group == "network" || strings.Contains(p.text, "git ") || strings.Contains(p.text, ".git/") || strings.Contains(p.text, `{"path": "/"}`)
		})
		watched, clean := subjectOf(t, s, monitor.Enforce, false), subjectOf(t, s, monitor.Off, true)
		probeAll(t, s, fit, watched, clean)
		compareTold(t, s, fit, watched, clean)
	})
	t.Run("http", func(t *testing.T) { tellsInHTTP(t, s, watched, clean) })
	t.Run("time", func(t *testing.T) {
		tellsInTime(t, s, subjectOf(t, s, monitor.Enforce, true), subjectOf(t, s, monitor.Shadow, true))
	})
}
