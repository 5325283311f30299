package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"proctor/internal/client"
	"proctor/internal/config"
	"proctor/internal/evalrun"
	"proctor/internal/rollouts"
	"proctor/tasks"
)

// benchRun is what a run of scripted rollouts costs over its commands. The keys are stable.
type benchRun struct {
	Rollouts  int     `json:"rollouts"`
	Calls     int     `json:"calls"`      // commands a rollout
	CommandMS float64 `json:"command_ms"` // of one command alone in a sandbox, the median
	OwnS      float64 `json:"own_s"`      // all commands on all processors, and nothing else
	WallS     float64 `json:"wall_s"`     // the run, from the first create to the last delete
	Overhead  float64 `json:"overhead"`   // wall over own, less 1; at most 0.15 is wanted
	Busy      float64 `json:"busy"`       // share of the processors' time that was not idle; at least 0.85 is wanted
}

// newBenchRun measures an evaluation run.
func newBenchRun() *cobra.Command {
	var asJSON bool
	n, calls, concurrency, loops, boxd := 64, 8, 8, 400_000, ""
	cmd := &cobra.Command{
		Use:   "run",
		Short: "What a run of scripted rollouts costs over its commands' own time",
		Long: `Starts a server and a scripted model, runs rollouts whose commands keep a processor busy, and compares the time of the whole
with that of the commands: one of them is timed alone in a sandbox first. Figures mean something on a machine that does nothing else.`,
		Example: `  proctor bench run
  proctor bench run --rollouts 16 --calls 4 --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := os.MkdirTemp("", "proctor-bench")
			if err != nil {
				return infra(err)
			}
			defer func() { _ = os.RemoveAll(dir) }() // a leftover in the temporary folder harms nobody
			b := &benchRun{Rollouts: n, Calls: calls}
			if err := b.measure(cmd.Context(), dir, boxd, concurrency, loops); err != nil {
				return infra(err)
			}
			return b.print(cmd.OutOrStdout(), asJSON)
		},
	}
	f := cmd.Flags()
	f.IntVar(&n, "rollouts", n, "rollouts")
	f.IntVar(&calls, "calls", calls, "commands a rollout")
	f.IntVar(&concurrency, "concurrency", concurrency, "rollouts at once")
	f.IntVar(&loops, "loops", loops, "how long a command counts; 400,000 take about a second")
	f.StringVar(&boxd, "boxd", "", "the box agent's binary (default: boxd beside this program)")
	f.BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// measure runs the benchmark in a folder of its own.
func (b *benchRun) measure(ctx context.Context, dir, boxd string, concurrency, loops int) (err error) {
	cfg := config.Default()
	cfg.Listen, cfg.Data, cfg.LogLevel = "127.0.0.1:0", filepath.Join(dir, "server"), "warn"
	if boxd != "" {
		cfg.Boxd = boxd
	}
	var list []*tasks.Task
	var ids []string
	for i := range b.Rollouts {
		id := fmt.Sprintf("work-%d", i)
		list, ids = append(list, &tasks.Task{ID: id, Instruction: "Work.", Image: baseImage, Workdir: "/srv"}), append(ids, id)
	}
	r, err := startLocal(ctx, cfg, list)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.stop(true)) }()
	c := client.New(r.url, r.key)
	command := fmt.Sprintf("i=0; while ((i < %d)); do ((i += 1)); done", loops)
	if err := b.alone(ctx, c, command); err != nil {
		return err
	}
	model := httptest.NewServer(counting(command, b.Calls))
	defer model.Close()
	runner := &evalrun.Runner{Dir: filepath.Join(dir, "run"), Client: c, Endpoint: evalrun.NewEndpoint(model.URL, ""), Concurrency: concurrency, NoPatches: true}
	before, began := processorTimes(), time.Now()
	rep, err := runner.Run(ctx, evalrun.Plan{Tasks: ids, N: 1, Model: "scripted", BaseURL: model.URL, Protocol: evalrun.Tools, NoGrade: true})
	if err != nil {
		return err
	}
	b.WallS = time.Since(began).Seconds()
	if done := rep.Failures[evalrun.Ungraded]; done != b.Rollouts || rep.Calls != b.Rollouts*(b.Calls+1) { // submit is a call
		return fmt.Errorf("%d of %d rollouts ended well, with %d calls", done, b.Rollouts, rep.Calls)
	}
	b.Busy = processorTimes().busySince(before)
	b.OwnS = b.CommandMS / 1000 * float64(b.Rollouts*b.Calls) / float64(runtime.NumCPU())
	b.Overhead = b.WallS/b.OwnS - 1
	return nil
}

// alone times the command in a sandbox where nothing else runs.
func (b *benchRun) alone(ctx context.Context, c *client.Client, command string) error {
	made, err := c.Create(ctx, rollouts.CreateRequest{TaskID: "work-0"})
	if err != nil {
		return err
	}
	var all []time.Duration
	for i := range 6 {
		began := time.Now()
		if _, err := c.Call(ctx, made.ID, made.AgentToken, "", "bash", map[string]any{"command": command}); err != nil {
			return err
		}
		if i > 0 { // the first warms up
			all = append(all, time.Since(began))
		}
	}
	b.CommandMS = ms(median(all))
	return c.Delete(ctx, made.ID)
}

// counting is a model that calls the same command n times, then submits.
func counting(command string, n int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Messages []struct {
				Role string `json:"role"`
			} `json:"messages"`
		}
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		turn := 0
		for _, m := range req.Messages {
			if m.Role == "assistant" {
				turn++
			}
		}
		name, args := "bash", map[string]string{"command": command}
		if turn >= n {
			name, args = "submit", map[string]string{}
		}
		text, err := json.Marshal(args)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		call := map[string]any{"id": fmt.Sprint(turn), "type": "function", "function": map[string]any{"name": name, "arguments": string(text)}}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"message": map[string]any{"role": "assistant", "tool_calls": []any{call}}}}}) // the client may have left
	})
}

// processors are the kernel's ticks of all processors since the start, from /proc/stat.
type processors struct{ idle, all float64 }

func processorTimes() processors {
	var p processors
	body, err := os.ReadFile("/proc/stat")
	if err != nil {
		return p // elsewhere than on Linux the share is not known
	}
	line, _, _ := strings.Cut(string(body), "\n")
	for i, field := range strings.Fields(line) {
		var v float64
		if _, err := fmt.Sscan(field, &v); err != nil || i > 8 { // guest time is part of user time
			continue
		}
		p.all += v
		if i == 4 || i == 5 { // idle, waiting for a disk
			p.idle += v
		}
	}
	return p
}

func (p processors) busySince(b processors) float64 {
	if p.all <= b.all {
		return 0
	}
	return 1 - (p.idle-b.idle)/(p.all-b.all)
}

func (b *benchRun) print(out io.Writer, asJSON bool) error {
	if asJSON {
		return writeJSON(out, b)
	}
	_, err := fmt.Fprintf(out, "%s of %s of %.0f ms: %.1f s for %.1f s of commands, %+.1f %%; processors busy %.1f %%\n",
		plural(b.Rollouts, "rollout"), plural(b.Calls, "command"), b.CommandMS, b.WallS, b.OwnS, 100*b.Overhead, 100*b.Busy)
	return err
}
