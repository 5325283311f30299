package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"proctor/internal/client"
	"proctor/internal/config"
	"proctor/internal/evalrun"
	"proctor/tasks"
)

// runOptions are the flags of run that are no server's.
type runOptions struct {
	plan        evalrun.Plan
	out         string
	found       string // data folder of a server on this machine
	concurrency int
	local       bool
	retryFailed bool
	asJSON      bool
	wall        time.Duration
	modelWait   time.Duration
	modelTries  int
}

// newRun runs an evaluation.
func newRun() *cobra.Command {
	var file string
	var o runOptions
	flags := config.Default()
	flags.Listen, flags.LogLevel = "127.0.0.1:0", "warn"
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run a model, or an agent, on tasks, and grade what it does",
		Long: `Run makes n attempts at every task, each in a rollout of its own, grades them, and writes scores, predictions and reports.

A model behind an OpenAI-compatible endpoint (--base-url, --model; key in PROCTOR_MODEL_API_KEY or OPENAI_API_KEY) is driven by the
reference loop: tool calls, or one bash block a reply for models without them; near --context the talk is summed up. An outside
agent (--agent CMD) is run once an attempt with PROCTOR_URL, PROCTOR_ROLLOUT, PROCTOR_AGENT_TOKEN, PROCTOR_TASK, PROCTOR_WORKDIR,
PROCTOR_ATTEMPT and PROCTOR_INSTRUCTION_FILE; it has no trainer key.

With PROCTOR_URL set, that server's tasks are run, by id; else a server is started in this process, with its data in the run folder,
and tasks are files, folders or sets. A run that was stopped or killed goes on when it is started again with the same folder: no
attempt, call or reply is made twice, but for the one reply that was under way. What an attempt ends of without a reward (endpoint down,
slow or malformed, agent's command failing, machine) is recorded with its class and left; --retry-failed makes it again.

Exit status: 0 all attempts have a reward, 1 some failed by the task's or the agent's doing, or a task could not be read, 2 usage, 3
some failed for the endpoint or the machine, or the run could not go on.`,
		Example: `  proctor run --tasks swebench.jsonl --model m --base-url http://127.0.0.1:8000/v1 -n 4 --concurrency 16 --out runs/m
  proctor run --tasks tasks/ --agent './my-agent.sh' --out runs/mine
  PROCTOR_URL=http://127.0.0.1:8080 proctor run --tasks interval-merge --model m --base-url http://127.0.0.1:8000/v1`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := settings(cmd, file, flags)
			if err != nil {
				return usage(err)
			}
			for name, value := range map[string]*string{"listen": &cfg.Listen, "log-level": &cfg.LogLevel} {
				if !cmd.Flags().Lookup(name).Changed { // a run's defaults, not the server's
					*value = cmd.Flags().Lookup(name).DefValue
				}
			}
			o.found = cfg.Data
			if !cmd.Flags().Lookup("data").Changed {
				cfg.Data = filepath.Join(o.out, "server")
			}
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), cfg)
		},
	}
	serveFlags(cmd, &file, &flags)
	o.flags(cmd)
	for _, hidden := range []string{"ready-file", "on-exit", "listen"} {
		_ = cmd.Flags().MarkHidden(hidden) // they have no meaning here
	}
	return cmd
}

// flags declares the flags of a run.
func (o *runOptions) flags(cmd *cobra.Command) {
	f, p := cmd.Flags(), &o.plan
	f.StringVar(&o.out, "out", "run", "run `FOLDER`; one that holds a run already is gone on with")
	f.IntVarP(&p.N, "attempts", "n", 1, "attempts at each task")
	f.IntVar(&o.concurrency, "concurrency", 4, "attempts at once")
	f.StringVar(&p.Model, "model", "", "model that the endpoint serves")
	f.StringVar(&p.BaseURL, "base-url", "", "OpenAI-compatible base URL of the model's endpoint")
	f.StringVar(&p.Protocol, "protocol", evalrun.Auto, "how the model makes calls: tools, text, or auto (tools, and text where the endpoint refuses them)")
	f.Float64Var(&p.Temperature, "temperature", 0, "sampling temperature (0: the endpoint's default)")
	f.StringVar(&p.Agent, "agent", "", "shell `COMMAND` of an outside agent, in place of a model's endpoint")
	f.StringVar(&p.Mode, "mode", "", "enforce (default), shadow, off")
	f.IntVar(&p.Budget.Turns, "max-turns", 100, "replies an attempt may take (0: no bound)")
	f.IntVar(&p.Budget.Tokens, "max-tokens", 0, "tokens an attempt may take, prompts and replies together (0: no bound)")
	f.Float64Var(&p.Budget.Cost, "max-cost", 0, "cost of an attempt (0: no bound)")
	f.DurationVar(&o.wall, "max-wall", time.Hour, "time that the agent's part of an attempt may take (0: no bound)")
	f.IntVar(&p.Budget.Context, "context", 100_000, "tokens of a prompt near which the talk is summed up (0: never)")
	f.Float64Var(&p.Prices.In, "price-in", 0, "price of a million prompt tokens")
	f.Float64Var(&p.Prices.Out, "price-out", 0, "price of a million reply tokens")
	f.DurationVar(&o.modelWait, "model-timeout", 10*time.Minute, "longest wait for one reply")
	f.IntVar(&o.modelTries, "model-tries", 6, "how often a request is sent before the attempt fails")
	f.BoolVar(&o.retryFailed, "retry-failed", false, "make attempts again that ended without a reward")
	f.BoolVar(&p.NoGrade, "no-grade", false, "record attempts, and grade none")
	f.BoolVar(&o.local, "local", false, "start a server in this process even where PROCTOR_URL is set")
	f.BoolVar(&o.asJSON, "json", false, "print one JSON document")
}

// run runs the evaluation.
func (o *runOptions) run(ctx context.Context, out, errs io.Writer, cfg config.Config) error {
	o.plan.Preset, o.plan.Budget.Seconds = cfg.Preset, o.wall.Seconds()
	if len(cfg.Tasks) == 0 {
		return usage(errors.New("no tasks: name some with --tasks"))
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return infra(err)
	}
	began := time.Now()
	c, problems, stop, err := o.server(ctx, errs, cfg)
	if err != nil {
		return err
	}
	watch := newRunWatch(os.Stderr)
	runner := &evalrun.Runner{Dir: o.out, Client: c, Concurrency: o.concurrency, RetryFailed: o.retryFailed, Watch: watch.see}
	if o.plan.Agent == "" {
		key := os.Getenv("PROCTOR_MODEL_API_KEY")
		if key == "" {
			key = os.Getenv("OPENAI_API_KEY")
		}
		runner.Endpoint = evalrun.NewEndpoint(o.plan.BaseURL, key)
		runner.Endpoint.Timeout, runner.Endpoint.Tries = o.modelWait, o.modelTries
	}
	report, err := runner.Run(ctx, o.plan)
	watch.end()
	err = errors.Join(runError(err), stop(err == nil))
	if report == nil {
		return err
	}
	if perr := o.print(out, report, time.Since(began)); perr != nil {
		return errors.Join(err, infra(perr))
	}
	if err != nil {
		return err
	}
	return runStatus(report, problems)
}

// runError gives an error of a run its exit status.
func runError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, evalrun.ErrOtherRun):
		return usage(err)
	case errors.Is(err, context.Canceled):
		return infra(errors.New("stopped; start it again with the same folder to go on"))
	}
	return infra(err)
}

// runStatus fails where attempts have no reward, or tasks could not be read.
func runStatus(r *evalrun.Report, problems int) error {
	lost := r.Failures[evalrun.FailEndpoint] + r.Failures["infra"]
	others := r.Done - r.Graded - lost - r.Failures[evalrun.Ungraded]
	switch {
	case lost > 0:
		return infra(fmt.Errorf("%d of %d attempts have no reward, %d of them for the endpoint or the machine; --retry-failed makes them again", r.Done-r.Graded, r.Attempts, lost))
	case others > 0:
		return failed(fmt.Errorf("%d of %d attempts have no reward", others, r.Attempts))
	case problems > 0:
		return failed(fmt.Errorf("%s could not be read; the others were run", plural(problems, "task")))
	}
	return nil
}

// server finds the server to run on, or starts one, and puts the tasks' ids into the plan. It gives
// how many tasks could not be read, and what ends a server that was started.
func (o *runOptions) server(ctx context.Context, errs io.Writer, cfg config.Config) (*client.Client, int, func(bool) error, error) {
	nothing := func(bool) error { return nil }
	if os.Getenv("PROCTOR_URL") != "" && !o.local {
		c, err := client.Find(o.found, os.Getenv)
		if err != nil {
			return nil, 0, nothing, infra(err)
		}
		o.plan.Tasks = cfg.Tasks
		for _, id := range cfg.Tasks {
			if err := c.Do(ctx, "GET", "/v1/tasks/"+url.PathEscape(id), "", nil, nil); err != nil {
				return nil, 0, nothing, answered(fmt.Errorf("task %s of the server at %s: %w", id, c.URL, err))
			}
		}
		return c, 0, nothing, nil
	}
	list, problems := loadSets(ctx, cfg.Data, "", cfg.Tasks)
	for _, p := range problems {
		fmt.Fprintln(errs, p.String())
	}
	if len(list) == 0 {
		return nil, 0, nothing, usage(errors.New("no task could be read"))
	}
	for _, t := range list {
		o.plan.Tasks = append(o.plan.Tasks, t.ID)
	}
	r, err := startLocal(ctx, cfg, list)
	if err != nil {
		return nil, 0, nothing, err
	}
	// A run that was stopped keeps its sandboxes, since it may go on.
	return client.New(r.url, r.key), len(problems), func(finished bool) error { return r.stop(finished) }, nil
}

// startLocal starts a server in this process.
func startLocal(ctx context.Context, cfg config.Config, list []*tasks.Task) (*running, error) {
	listener, err := listen(ctx, cfg.Listen)
	if err != nil {
		return nil, err
	}
	cfg.Tasks = nil
	s, err := openServer(ctx, cfg, newLogger(cfg), tweak{tasks: list})
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	r, err := s.start(listener)
	if err != nil {
		return nil, errors.Join(err, s.close(false))
	}
	return r, nil
}
