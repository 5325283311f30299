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
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"proctor/internal/client"
	"proctor/internal/config"
	"proctor/internal/evalrun"
	"proctor/tasks"
)

// benchRun is what a run of scripted rollouts costs over its commands. The keys are stable.
type benchRun struct {
	Rollouts  int     `json:"rollouts"`
	Calls     int     `json:"calls"`      // commands a rollout
	CommandMS float64 `json:"command_ms"` // processor time of one command, bare
	OwnS      float64 `json:"own_s"`      // all commands bare, as many at once as there are rollouts at once
	WallS     float64 `json:"wall_s"`     // the run, from the first create to the last delete
	Overhead  float64 `json:"overhead"`   // wall over own, less 1; at most 0.15 is wanted
	Busy      float64 `json:"busy"`       // share of the processors' time that was not idle; at least 0.85 is wanted
	ServerS   float64 `json:"server_s"`   // processor time of server, model and runner, which share a process
	Share     float64 `json:"share"`      // of that in all commands' processor time; what load beside it does not change
}

// newBenchRun measures an evaluation run.
func newBenchRun() *cobra.Command {
	var asJSON bool
	n, calls, concurrency, loops, boxd := 64, 8, 8, 400_000, ""
	cmd := &cobra.Command{
		Use:   "run",
		Short: "What a run of scripted rollouts costs over its commands' own time",
		Long: `Starts a server and a scripted model, runs rollouts whose commands keep a processor busy, and compares the time of the whole
with that of the same commands bare: half of them before the run and half after it, as many at once as there are rollouts at once.
Where other programs use the machine too, both suffer from them; the share of the server's processor time in the commands' does not.`,
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
	all := b.Rollouts * b.Calls
	own, cpu, err := bare(ctx, command, all/2, concurrency)
	if err != nil {
		return err
	}
	model := httptest.NewServer(counting(command, b.Calls))
	defer model.Close()
	runner := &evalrun.Runner{Dir: filepath.Join(dir, "run"), Client: c, Endpoint: evalrun.NewEndpoint(model.URL, ""), Concurrency: concurrency, NoPatches: true}
	before, mine, began := processorTimes(), processTime(unix.RUSAGE_SELF), time.Now()
	rep, err := runner.Run(ctx, evalrun.Plan{Tasks: ids, N: 1, Model: "scripted", BaseURL: model.URL, Protocol: evalrun.Tools, NoGrade: true})
	if err != nil {
		return err
	}
	b.WallS, b.ServerS = time.Since(began).Seconds(), (processTime(unix.RUSAGE_SELF) - mine).Seconds()
	b.Busy = processorTimes().busySince(before)
	if done := rep.Failures[evalrun.Ungraded]; done != b.Rollouts || rep.Calls != b.Rollouts*(b.Calls+1) { // submit is a call
		return fmt.Errorf("%d of %d rollouts ended well, with %d calls", done, b.Rollouts, rep.Calls)
	}
	rest, more, err := bare(ctx, command, all-all/2, concurrency)
	if err != nil {
		return err
	}
	b.OwnS, b.CommandMS = (own + rest).Seconds(), ms(cpu+more)/float64(all)
	b.Overhead, b.Share = b.WallS/b.OwnS-1, b.ServerS/(cpu+more).Seconds()
	return nil
}

// bare runs a command n times in shells of this machine, some at once, and gives the time by the clock and
// the processor time.
func bare(ctx context.Context, command string, n, atOnce int) (wall, cpu time.Duration, err error) {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(atOnce, 1))
	before, began := processTime(unix.RUSAGE_CHILDREN), time.Now()
	for range n {
		g.Go(func() error { return exec.CommandContext(ctx, "bash", "-c", command).Run() }) //nolint:gosec // ours
	}
	err = g.Wait()
	return time.Since(began), processTime(unix.RUSAGE_CHILDREN) - before, err
}

// processTime is the processor time of this process, or of those that it started and waited for.
func processTime(who int) time.Duration {
	var u unix.Rusage
	if unix.Getrusage(who, &u) != nil {
		return 0 // there is no other error than a who that does not exist
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
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
	_, err := fmt.Fprintf(out, "%s of %s of %.0f ms: %.1f s for %.1f s of the commands bare, %+.1f %%; processors busy %.1f %%; the server's processor time is %.1f %% of the commands'\n",
		plural(b.Rollouts, "rollout"), plural(b.Calls, "command"), b.CommandMS, b.WallS, b.OwnS, 100*b.Overhead, 100*b.Busy, 100*b.Share)
	return err
}
