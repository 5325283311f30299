package main

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"proctor/internal/client"
	"proctor/internal/rollouts"
	"proctor/monitor"
)

// gone takes an error that no repetition helps: right only where the sandbox is dead, and then by whose doing is known.
func (w *worker) gone(what string, err error) {
	made := *w.made
	var p *client.Problem
	if !errors.As(err, &p) || !slices.Contains([]string{"sandbox_dead", "rollout_ended"}, p.Code) {
		w.violation("%s: %v", what, err)
	}
	var view rollouts.View
	if err := w.again(func(ctx context.Context, c *client.Client) (err error) { view, err = c.Get(ctx, made.ID); return err }); err != nil {
		w.violation("%s: what became of it: %v", what, err)
	}
	w.count(func(r *chaosReport) { r.Deaths[view.FailureClass]++ })
	switch {
	case view.Status != rollouts.StatusFailed:
		w.violation("%s: %v; and the rollout is %s", what, err, view.Status)
	case w.killed && view.FailureClass == "infra", !w.killed && w.cruel && view.FailureClass == "model", w.plan.Daemon && view.FailureClass == "infra":
	default:
		w.violation("%s: %v; the rollout ended as %s (%s), killed by us %v, tortured from inside %v", what, err, view.FailureClass, view.StopReason, w.killed, w.cruel)
	}
	w.record(view)
	w.made = nil
}

// finish checks what a rollout's sandbox and record hold, and ends it.
func (w *worker) finish() {
	if w.made == nil {
		return
	}
	made := *w.made
	var out struct {
		Stdout string `json:"stdout"`
	}
	err := w.again(func(ctx context.Context, c *client.Client) error {
		return c.Do(ctx, http.MethodPost, "/v1/rollouts/"+made.ID+"/exec", "", map[string]any{"argv": []string{"sh", "-c", "cat /var/marks 2>/dev/null; true"}}, &out, "Idempotency-Key", "marks")
	})
	if err != nil {
		w.gone("the marks of "+made.ID, err)
		return
	}
	times := map[string]int{}
	for line := range strings.Lines(out.Stdout) {
		times[strings.TrimSpace(line)]++
	}
	w.count(func(r *chaosReport) { r.Marks += strings.Count(out.Stdout, "\n") })
	for key := range w.calls {
		if times[key] != 1 {
			w.violation("call %s of %s, %q, ran %d times", key, made.ID, w.calls[key].command, times[key])
		}
		delete(times, key)
	}
	for key, n := range times {
		w.violation("call %s of %s ran %d times and was not answered", key, made.ID, n)
	}
	w.record(rollouts.View{ID: made.ID})
	if err := w.again(func(ctx context.Context, c *client.Client) error { return c.Delete(ctx, made.ID) }); err != nil {
		w.violation("delete %s: %v", made.ID, err)
	}
	w.made = nil
}

// record holds the record against what the client was told: every answer is there, once, as it was given, and the numbers
// have no gaps.
func (w *worker) record(view rollouts.View) {
	var kept *rollouts.Trajectory
	if err := w.again(func(ctx context.Context, c *client.Client) (err error) {
		kept, err = c.Trajectory(ctx, w.made.ID)
		return err
	}); err != nil {
		w.violation("the record of %s: %v", w.made.ID, err)
		return
	}
	seen := map[string]int{}
	for i, call := range kept.Calls {
		if call.Ordinal != i+1 {
			w.violation("record of %s: call %d has number %d", w.made.ID, i+1, call.Ordinal)
		}
		if call.Principal != monitor.Agent {
			continue
		}
		seen[call.CallID]++
		told, ok := w.calls[call.CallID]
		switch {
		case !ok && view.FailureClass == "":
			w.violation("record of %s: call %s was never answered", w.made.ID, call.CallID)
		case ok && (call.Observation == nil || call.Observation.Output != told.seen.Output):
			w.violation("record of %s: call %s is not as it was answered", w.made.ID, call.CallID)
		}
	}
	for key := range w.calls {
		if seen[key] != 1 {
			w.violation("record of %s: call %s is there %d times", w.made.ID, key, seen[key])
		}
	}
}

// leftovers looks for what should be gone.
func (c *chaos) leftovers() {
	for id, container := range c.names {
		if left := c.containersNamed(id); len(left) > 0 {
			c.violation("rollout %s: containers left: %v", id, left)
		}
		if container == "" {
			continue
		}
		for _, pattern := range []string{"/sys/fs/cgroup/*/*/" + container, "/sys/fs/cgroup/*/" + container, "/sys/fs/cgroup/*/*" + container + "*"} {
			if left, _ := filepath.Glob(pattern); len(left) > 0 {
				c.violation("rollout %s: cgroups left: %v", id, left)
			}
		}
		mounts, _ := os.ReadFile("/proc/self/mounts")
		if strings.Contains(string(mounts), container) {
			c.violation("rollout %s: mounts of its container are left", id)
		}
	}
	c.runRoot()
	if left, _ := filepath.Glob(filepath.Join(c.server.data, "*.tmp*")); len(left) > 0 {
		c.violation("files left: %v", left)
	}
}
