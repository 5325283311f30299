package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"proctor/internal/config"
)

// drainTime is how long SIGTERM waits for running calls before they are recorded as interrupted.
const drainTime = 20 * time.Second

// newServe runs the server.
func newServe() *cobra.Command {
	var file string
	flags := config.Default()
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the server",
		Long: `Runs the server: the trainer plane and the agent plane over HTTP.

At first start it makes a trainer key, kept in DIR/keys/trainer.key (mode 0600), or takes PROCTOR_TRAINER_KEY.
When it can take requests it writes the ready file: {"url", "pid", "version"}. SIGTERM drains: no new rollouts,
running calls finish or are recorded as interrupted, sandboxes are kept for re-attachment unless --on-exit=remove.

Settings come from --config FILE (YAML), then PROCTOR_* variables, then flags, each over the one before.`,
		Example: `  proctor serve --data /var/lib/proctor --tasks testdata/tasks
  proctor serve --listen 127.0.0.1:0 --ready-file /tmp/ready.json
  proctor serve --judge-url http://127.0.0.1:8000/v1 --judge-model qwen3`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := settings(cmd, file, flags)
			if err != nil {
				return usage(err)
			}
			return serve(cmd.Context(), cfg, newLogger(cfg))
		},
	}
	serveFlags(cmd, &file, &flags)
	return cmd
}

// serveFlags declares the flags that settings can be given by.
func serveFlags(cmd *cobra.Command, file *string, c *config.Config) {
	f := cmd.Flags()
	f.StringVar(file, "config", "", "YAML file of settings")
	f.StringVar(&c.Listen, "listen", c.Listen, "address to listen on; port 0 picks a free one")
	f.StringVar(&c.CompatListen, "compat-listen", c.CompatListen, "loopback `ADDRESS` for OpenEnv and NeMo-Gym clients, which send no key; empty for none")
	f.StringVar(&c.Data, "data", c.Data, "data folder: store, keys, state of prepared images")
	f.StringVar(&c.Engine, "engine", c.Engine, "sandbox engine: docker, oci")
	f.StringVar(&c.OCI.Runtime, "oci-runtime", c.OCI.Runtime, "OCI runtime of the oci engine, a name or path (default: the first of runc, crun, runsc)")
	f.StringVar(&c.OCI.Store, "oci-store", c.OCI.Store, "folder of the oci engine for unpacked images and sandboxes (default /var/lib/initd)")
	f.StringSliceVar(&c.Tasks, "tasks", nil, "task files or folders")
	f.StringSliceVar(&c.Packs, "packs", nil, "rule packs beside the built-in ones")
	f.StringVar(&c.Classifier, "classifier", "", "`FILE` of a model of proctor classifier train (default: the built-in one)")
	f.StringVar(&c.Boxd, "boxd", c.Boxd, "the box agent's binary (default: boxd beside this program)")
	f.StringVar(&c.ReadyFile, "ready-file", "", "file to write once requests are taken")
	f.StringVar(&c.OnExit, "on-exit", c.OnExit, "what SIGTERM does to sandboxes: keep, remove")
	f.StringVar(&c.Preset, "preset", c.Preset, "which confirmed hacks are blocked: balanced, strict, observe")
	f.StringVar(&c.Witness, "witness", c.Witness, "what the kernel does about opens of protected files: observe, deny, off")
	f.IntVar(&c.MaxRollouts, "max-rollouts", c.MaxRollouts, "rollouts open at once (0: the default, 256)")
	f.IntVar(&c.PoolMax, "pool-max", c.PoolMax, "most sandboxes kept ready before they are asked for (0: none)")
	f.DurationVar(&c.Lease, "lease", c.Lease, "time without a call or heartbeat after which a rollout is closed")
	f.StringVar(&c.LogLevel, "log-level", c.LogLevel, "debug, info, warn, error")
	f.StringVar(&c.LogFormat, "log-format", c.LogFormat, "text, json")
	f.StringVar(&c.Answers, "answers", c.Answers, "how blocked calls are answered: decoy, or explicit: the agent is told that it was not run")
	f.StringVar(&c.Judge.URL, "judge-url", "", "OpenAI-compatible base URL of the judge (default: the built-in heuristic)")
	f.StringVar(&c.Judge.Model, "judge-model", "", "model that the judge's endpoint serves")
	f.DurationVar(&c.Judge.Timeout, "judge-timeout", c.Judge.Timeout, "longest wait for an opinion")
	f.StringVar(&c.Judge.OnUnsure, "judge-on-unsure", c.Judge.OnUnsure, "execute, decoy, hold")
	f.StringVar(&c.Judge.OnFailure, "judge-on-failure", c.Judge.OnFailure, "execute, decoy, hold")
	f.StringVar(&c.PackageIndex, "package-index", "", "package index that tasks with a package_index see as it was at a time, as pip's --index-url")
	f.StringVar(&c.NPMIndex, "npm-index", "", "npm registry that tasks with a package_index see as it was at a time, as npm's registry setting")
	f.StringVar(&c.Egress.Private, "egress-private", "", "ranges that allowlists may lead to though they are not public, joined by commas")
	f.IntVar(&c.Egress.MaxMB, "egress-max-mb", 0, "megabytes that a rollout may send and receive by its allowlist (0: the default, 4096)")
	f.StringVar(&c.Judge.OnOutage, "judge-on-outage", c.Judge.OnOutage, "execute, decoy, hold")
}

// settings lays the flags that were given over file and variables.
func settings(cmd *cobra.Command, file string, flags config.Config) (config.Config, error) {
	if file == "" {
		file = os.Getenv("PROCTOR_CONFIG")
	}
	c, err := config.Load(file, os.Getenv)
	if err != nil {
		return c, err
	}
	for name, lay := range map[string]func(){
		"listen": func() { c.Listen = flags.Listen }, "data": func() { c.Data = flags.Data }, "engine": func() { c.Engine = flags.Engine },
		"oci-runtime": func() { c.OCI.Runtime = flags.OCI.Runtime }, "oci-store": func() { c.OCI.Store = flags.OCI.Store },
		"tasks": func() { c.Tasks = flags.Tasks }, "classifier": func() { c.Classifier = flags.Classifier }, "packs": func() { c.Packs = flags.Packs }, "boxd": func() { c.Boxd = flags.Boxd },
		"ready-file": func() { c.ReadyFile = flags.ReadyFile }, "on-exit": func() { c.OnExit = flags.OnExit }, "preset": func() { c.Preset = flags.Preset },
		"compat-listen": func() { c.CompatListen = flags.CompatListen },
		"answers":       func() { c.Answers = flags.Answers },
		"witness":       func() { c.Witness = flags.Witness },
		"pool-max":      func() { c.PoolMax = flags.PoolMax },
		"max-rollouts":  func() { c.MaxRollouts = flags.MaxRollouts }, "lease": func() { c.Lease = flags.Lease },
		"log-level": func() { c.LogLevel = flags.LogLevel }, "log-format": func() { c.LogFormat = flags.LogFormat },
		"judge-url": func() { c.Judge.URL = flags.Judge.URL }, "judge-model": func() { c.Judge.Model = flags.Judge.Model },
		"judge-timeout":   func() { c.Judge.Timeout = flags.Judge.Timeout },
		"judge-on-unsure": func() { c.Judge.OnUnsure = flags.Judge.OnUnsure }, "judge-on-failure": func() { c.Judge.OnFailure = flags.Judge.OnFailure },
		"package-index": func() { c.PackageIndex = flags.PackageIndex }, "npm-index": func() { c.NPMIndex = flags.NPMIndex }, "egress-private": func() { c.Egress.Private = flags.Egress.Private },
		"egress-max-mb":   func() { c.Egress.MaxMB = flags.Egress.MaxMB },
		"judge-on-outage": func() { c.Judge.OnOutage = flags.Judge.OnOutage },
	} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
			lay()
		}
	}
	return c, c.Check()
}

// newLogger logs to stderr as the settings say.
func newLogger(c config.Config) *slog.Logger {
	level := map[string]slog.Level{"debug": slog.LevelDebug, "warn": slog.LevelWarn, "error": slog.LevelError}[c.LogLevel]
	options := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, options))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, options))
}

// serve runs a server until ctx ends, then drains it.
func serve(ctx context.Context, cfg config.Config, log *slog.Logger) error {
	listener, err := listen(ctx, cfg.Listen)
	if err != nil {
		return err
	}
	s, err := openServer(ctx, cfg, log, tweak{})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	running, err := s.start(listener)
	if err != nil {
		return errors.Join(err, s.close(false))
	}
	s.packs.onHangup(ctx)
	log.Info("serving", "url", running.url, "data", cfg.Data)
	select {
	case <-ctx.Done():
		log.Info("draining")
		return running.stop(cfg.OnExit == "remove")
	case err := <-running.failed:
		return errors.Join(infra(err), running.stop(false))
	}
}

// listen takes the address, and says what to do where it is taken.
func listen(ctx context.Context, address string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, infra(fmt.Errorf("cannot listen on %s: %w; choose another with --listen, port 0 picks a free one", address, err))
	}
	return l, nil
}

// running is a server that takes requests.
type running struct {
	*server
	url    string
	http   *http.Server
	failed chan error
	ready  []string // files that say so
	compat *compatListener
}

// start takes requests on listener and writes the ready files.
func (s *server) start(listener net.Listener) (*running, error) {
	r := &running{server: s, url: "http://" + listener.Addr().String(), failed: make(chan error, 2)}
	r.http = &http.Server{Handler: s.handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug)}
	go func() {
		if err := r.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			r.failed <- err
		}
	}()
	var err error
	if r.compat, err = serveCompat(context.Background(), s.cfg.CompatListen, s.open, s.log, r.failed); err != nil {
		return nil, errors.Join(err, r.http.Close())
	}
	ready, err := json.Marshal(map[string]any{"url": r.url, "pid": os.Getpid(), "version": version})
	if err != nil {
		return nil, err
	}
	r.ready = []string{filepath.Join(s.cfg.Data, "server.json")} // clients on this machine find the server by it
	if s.cfg.ReadyFile != "" {
		r.ready = append(r.ready, s.cfg.ReadyFile)
	}
	for _, path := range r.ready {
		if err := writeAtomic(path, append(ready, '\n'), 0o644); err != nil {
			return nil, errors.Join(infra(fmt.Errorf("write %s: %w", path, err)), r.http.Close())
		}
	}
	return r, nil
}

// stop drains: no new rollouts, running calls finish or are recorded as interrupted.
func (r *running) stop(remove bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	for _, path := range r.ready {
		_ = os.Remove(path)
	}
	drained := r.manager.Drain(ctx)
	if errors.Is(drained, context.DeadlineExceeded) {
		r.log.Warn("calls still run; they are taken up at the next start")
		drained = nil
	}
	drained = errors.Join(drained, r.compat.close())
	shutdown := r.http.Shutdown(ctx)
	if errors.Is(shutdown, context.DeadlineExceeded) {
		shutdown = r.http.Close()
	}
	return errors.Join(drained, shutdown, r.close(remove))
}
